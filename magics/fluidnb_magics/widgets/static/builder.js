// The builder: recipes, the fields of a draft, its preview; it writes the line into a cell and runs it.

const SHOWN = 80; // rows of the list; the search finds the others

function render({ model, el }) {
  const frame = framed(model, el, "builder", { "/": () => search.focus() });
  const search = tag("input", { class: "fb-search", type: "search", placeholder: "search names and descriptions", "aria-label": "search" });
  const list = tag("div", { class: "fb-list", role: "listbox", tabindex: "0", "aria-label": "recipes" });
  const draft = tag("div", { class: "fb-draft" });
  frame.body.append(tag("div", { class: "fb-sides" }, tag("div", { class: "fb-side" }, search, list), draft));

  let form = null; // the form of the draft that is shown
  let serial = 0; // the number of the last request; it makes each response a new one
  const state = () => model.get("state");
  const busy = (is) => draft.setAttribute("aria-busy", String(is));
  let waiting = null; // the last change while a response is pending
  const request = (name, more) => {
    if (frame.root.classList.contains("fw-dead")) return;
    if (draft.getAttribute("aria-busy") === "true") waiting = [name, more];
    else {
      busy(true);
      ask(model, name, { ...more, serial: ++serial });
    }
  };
  const answered = () => {
    const next = waiting;
    waiting = null;
    busy(false);
    if (next) request(...next);
  };
  const refused = (message) => "problem" in message && answered();

  let moving = false; // whether the cursor goes to the first field of the next draft
  let shown; // the recipe of the draft that is shown
  const choose = (name) => {
    moving = true;
    mark(name);
    request("choose", { name, location: state().location, cell: state().cell });
  };
  const drawList = () => {
    const matches = model.get("matches");
    const chosen = state().recipe?.name;
    const rows = matches.slice(0, SHOWN).map(([name, group, about]) =>
      tag(
        "div",
        { class: "fb-row", role: "option", "data-name": name, "aria-selected": String(name === chosen), title: about, onclick: () => choose(name) },
        group === "layer" ? null : tag("span", { class: "fb-group" }, group),
        tag("code", {}, name),
        tag("span", { class: "fb-about" }, about),
      ),
    );
    if (!matches.length) rows.push(tag("div", { class: "fb-more" }, "no match"));
    if (matches.length > SHOWN) rows.push(tag("div", { class: "fb-more" }, `${matches.length - SHOWN} more; search narrows the list`));
    list.replaceChildren(...rows);
  };
  const mark = (name) => list.querySelectorAll(".fb-row").forEach((row) => row.setAttribute("aria-selected", String(row.dataset.name === name)));
  search.addEventListener("input", () => ask(model, "search", { text: search.value }));
  const choosing = (event) => {
    const rows = [...list.querySelectorAll(".fb-row")];
    const at = rows.findIndex((row) => row.getAttribute("aria-selected") === "true");
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && rows.length) {
      event.preventDefault();
      const row = rows[Math.min(rows.length - 1, Math.max(0, at + step))];
      mark(row.dataset.name);
      row.scrollIntoView({ block: "nearest" });
    } else if (event.key === "Enter" && rows.length) {
      choose(rows[Math.max(0, at)].dataset.name);
    }
  };
  search.addEventListener("keydown", choosing);
  list.addEventListener("keydown", choosing);

  const drawDraft = () => {
    const now = state();
    serial = Math.max(serial, now.serial);
    if (waiting) return answered();
    busy(false);
    // A response to something else leaves the row where the arrow keys took it.
    if (now.recipe?.name !== shown) mark(now.recipe?.name);
    shown = now.recipe?.name;
    if (!now.recipe) {
      form = null;
      draft.replaceChildren(tag("div", { class: "fb-empty" }, "Choose a layer on the left; its line is inserted into a %%fluid cell."));
    } else if (form?.serves(now)) form.update(now);
    else {
      form = draftForm(model, now, el, request, () => draft.getAttribute("aria-busy") === "true");
      draft.replaceChildren(form.element);
      form.update(now);
    }
    if (moving) form?.focus();
    moving = false;
  };
  const drawPage = () => form?.page(model.get("page"));

  model.on("change:matches", drawList);
  model.on("change:state", drawDraft);
  model.on("change:page", drawPage);
  model.on("msg:custom", refused);
  drawList();
  drawDraft();
  // Other cells may have run meanwhile: update when the widget gets the focus.
  frame.root.addEventListener("focusin", (event) => {
    if (!frame.root.contains(event.relatedTarget)) form?.again();
  });
  return () => {
    model.off("change:matches", drawList);
    model.off("change:state", drawDraft);
    model.off("change:page", drawPage);
    model.off("msg:custom", refused);
    frame.dispose();
  };
}

/**
 * The form of a draft; `request(name, more)` sends a request to the kernel, `busy()`: whether a response is pending.
 * Gives { element, serves(state), update(state), again(), page(lines), focus() }.
 */
function draftForm(model, first, el, request, busy) {
  const recipe = first.recipe;
  const fields = recipe.arguments.map((argument) => field(argument, () => send()));
  const rows = (needed) => fields.filter((f) => f.argument.required === needed).flatMap((f) => [f.label, f.element]);
  const optional = fields.filter((f) => !f.argument.required).length;
  const page = tag("pre", { class: "fb-page", hidden: true, tabindex: "0" });
  const result = tag("input", { "aria-label": "name of the result", spellcheck: "false" });
  const location = tag("select", { "aria-label": "block", onchange: () => send({ cell: "" }) });
  const cell = tag("select", { "aria-label": "cell", onchange: () => send() });
  const wrongResult = tag("div", { class: "fb-wrong", hidden: true });
  const preview = tag("pre", { class: "fb-preview", role: "status", "aria-live": "polite" });
  const insert = tag("button", { class: "fb-insert", onclick: () => write() }, "Insert");
  const status = tag("span", { class: "fb-status", role: "status" });
  const more = tag("button", { class: "fb-all", onclick: () => showPage() }, "Documentation");
  let typedResult = null; // null: as suggested
  let writing = false;

  const drawPage = (lines) => {
    page.hidden = !lines.length;
    page.replaceChildren(...lines.flatMap((line) => [...pieces(line), "\n"]));
  };
  const showPage = () => {
    if (!page.hidden) page.hidden = true;
    else if (model.get("page").length) drawPage(model.get("page"));
    else ask(model, "page");
  };
  const values = () => Object.fromEntries(fields.map((f) => [f.argument.name, f.value()]));
  const draft = (changes = {}) => ({ name: recipe.name, values: values(), result: typedResult, location: location.value, cell: cell.value, ...changes });
  const send = (changes) => request("draft", draft(changes));
  result.addEventListener("input", () => {
    typedResult = result.value.trim() || null;
    send();
  });
  const element = tag(
    "div",
    { style: "display: contents" },
    tag("div", { class: "fb-title", "data-name": recipe.name }, tag("code", {}, recipe.call), tag("span", {}, recipe.summary), more),
    page,
    tag("div", { class: "fb-fields" }, ...rows(true)),
    optional ? tag("details", {}, tag("summary", {}, `${optional} optional arguments`), tag("div", { class: "fb-fields" }, ...rows(false))) : null,
    tag("div", { class: "fb-where" }, tag("label", {}, "result", result), tag("label", {}, "in", location), tag("label", {}, "cell", cell)),
    wrongResult,
    preview,
    tag("div", { class: "fb-actions" }, insert, status),
  );
  element.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && event.target.matches("input")) {
      event.preventDefault();
      write();
    }
  });

  const write = async () => {
    if (writing) return;
    writing = insert.disabled = true;
    status.textContent = "";
    try {
      if (!(await eventually(() => !busy()))) {
        status.textContent = "The kernel is busy; insert when the shapes are shown.";
        return;
      }
      const now = model.get("state");
      if (!now.line || now.refused) return;
      const [id, sentence] = await put(model, el, now);
      status.textContent = sentence;
      typedResult = null;
      if (id) request("choose", { name: recipe.name, location: now.location, cell: id });
    } finally {
      insert.disabled = false;
      // Back from the cell; still writing, so that no update is requested.
      element.closest(".fw-builder").focus({ preventScroll: true });
      writing = false;
    }
  };

  return {
    element,
    serves: (now) => now.recipe.name === recipe.name,
    again: () => writing || send(),
    focus: () => (fields.find((f) => f.argument.required && !f.argument.kind.startsWith("variable")) ?? fields[0])?.focus(),
    page: drawPage,
    update(now) {
      fields.forEach((f) => f.update(now));
      if (document.activeElement !== result) result.value = now.result;
      options(location, now.locations, now.location);
      options(cell, [["", "new cell"], ...now.cells], now.cell);
      location.closest("label").hidden = now.locations.length < 2;
      wrongResult.textContent = now.problems.result ?? "";
      wrongResult.hidden = !now.problems.result;
      const line = tag("span", { class: "fb-line" }, now.line ? now.line + "\n" : "");
      const waits = now.line ? [] : [tag("span", { class: "p-dim" }, "The shapes are shown here when the fields above are filled.")];
      preview.replaceChildren(line, ...waits, ...now.preview.flatMap((row, i) => [...(i ? ["\n"] : []), ...pieces(row)]));
      insert.disabled = writing || !now.line || now.refused;
    },
  };
}

/** A field of the form: a choice among variables, a check box, or text. */
function field(argument, changed) {
  const id = `fb-${argument.name}-${Math.random().toString(36).slice(2)}`;
  const label = tag("label", { for: id, class: argument.required ? "fb-needed" : "" }, argument.name);
  const control = tag("div", { class: "fb-control" });
  const wrong = tag("div", { class: "fb-wrong", hidden: true });
  const doc = tag("div", { class: "fb-doc" }, argument.doc);
  const element = tag("div", { class: "fb-field" }, control, doc, wrong);
  const several = argument.kind === "variables";
  let touched = false;
  const change = () => {
    touched = true;
    changed();
  };
  const inputs = () => [...control.querySelectorAll("input, select")];
  if (argument.kind === "bool") control.append(tag("input", { id, type: "checkbox", onchange: change, checked: argument.default === "True" }));
  else if (argument.kind.startsWith("variable")) control.append(tag("select", { id, onchange: change }));
  else {
    const known = argument.choices.length ? tag("datalist", { id: id + "-known" }, ...argument.choices.map((c) => tag("option", { value: c }))) : null;
    const text = tag("input", { id, list: known ? known.id : null, placeholder: argument.default, spellcheck: "false", autocomplete: "off" });
    text.addEventListener("input", change);
    control.append(...[text, known].filter(Boolean));
  }
  const value = () => {
    const [box] = inputs();
    if (argument.kind === "bool") return touched || argument.required ? (box.checked ? "True" : "False") : "";
    return several ? inputs().map((each) => each.value) : box.value;
  };
  const chooseAmong = (rows, chosen) => {
    const selected = several ? [...[].concat(chosen ?? []).filter(Boolean), ""] : [chosen ?? ""];
    while (inputs().length < selected.length) control.append(tag("select", { onchange: change, "aria-label": `another ${argument.name}` }));
    inputs().slice(selected.length).forEach((extra) => extra.remove());
    const first = rows.filter(([, , fits, named]) => fits && named);
    const others = rows.filter(([, , fits, named]) => !fits && named);
    const unnamed = rows.filter(([, , , named]) => !named);
    inputs().forEach((each, i) => {
      const nothing = i ? "add another" : argument.required ? "choose" : "none";
      options(each, [["", nothing], ...first], selected[i], { "others in reach": others, "without a Python name": unnamed });
    });
  };
  return {
    argument,
    label,
    element,
    value,
    focus: () => inputs()[0]?.focus({ preventScroll: true }),
    update(now) {
      const typed = now.values[argument.name];
      if (argument.kind.startsWith("variable")) chooseAmong(now.choices[argument.name], typed);
      else if (argument.kind !== "bool" && document.activeElement !== inputs()[0] && typed !== undefined) inputs()[0].value = typed;
      if (now.fresh) clear();
      const problem = now.problems[argument.name] ?? "";
      const shown = problem && (touched || typed);
      wrong.textContent = shown ? problem : "";
      wrong.hidden = !shown;
      element.classList.toggle("fb-bad", Boolean(shown));
    },
  };
  function clear() {
    if (argument.kind === "bool") inputs()[0].checked = argument.default === "True";
    else if (!argument.kind.startsWith("variable")) inputs()[0].value = "";
    touched = false;
  }
}

/** Set the options of a select: rows [value, text], and groups of them; equal options are not replaced. */
function options(select, rows, chosen, groups = {}) {
  const key = JSON.stringify([rows, groups]);
  if (select.dataset.rows !== key) {
    select.dataset.rows = key;
    const option = ([value, text]) => tag("option", { value }, text);
    const grouped = Object.entries(groups).filter(([, inside]) => inside.length);
    select.replaceChildren(...rows.map(option), ...grouped.map(([label, inside]) => tag("optgroup", { label }, ...inside.map(option))));
  }
  select.value = chosen ?? "";
}

/** Put the line into its cell and run it. Gives the cell's id, empty if it did not run, and a sentence for the user. */
async function put(model, el, now) {
  const notebook = notebookOf(model);
  if (!notebook) {
    await navigator.clipboard?.writeText(`${now.head}\n${now.line}`);
    return ["", "This front end does not let widgets write cells; the text of the cell is on the clipboard."];
  }
  let index = now.cell ? cellIndex(notebook, now.cell) : -1;
  let cell = notebook.cells[index];
  if (cell) cell.setSource(`${cell.getSource().replace(/\s+$/, "")}\n${now.line}`);
  else {
    index = 1 + Math.max(cellIndex(notebook, model.get("home")), ...now.known.map((id) => cellIndex(notebook, id)));
    cell = notebook.insertCell(index || notebook.cells.length, { cell_type: "code", source: `${now.head}\n${now.line}`, metadata: { trusted: true } });
    index = index || notebook.cells.length - 1;
  }
  const finished = await runFinished(cell, pressRun(el, index, notebook.cells.length));
  return finished ? [cell.getId ? cell.getId() : cell.id, ""] : ["", "The line is in its cell; run it."];
}

export default { render };
