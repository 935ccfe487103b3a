// Values in the debugger panel: the variables of a scope, and one that is open.

/** The variables of a scope, those in view. `act` has window(first, count, part), open(name) and edit(name). */
function scopeList(act) {
  let scope = { count: 0, first: 0, rows: [] };
  let wrote = new Set();
  let opened = "";
  let timer = 0;
  const high = 40;
  const seen = () => {
    const top = Math.floor(view.element.scrollTop / high);
    const last = Math.min(scope.count, top + Math.ceil(view.element.clientHeight / high) + 4);
    clearTimeout(timer);
    if (Math.max(0, top - 4) < scope.first || last > scope.first + scope.rows.length)
      timer = setTimeout(() => act.window(Math.max(0, top - 8), 24, part.value.trim()), 40);
  };
  const draw = (i) => {
    const line = scope.rows[i - scope.first];
    if (!line) return tag("div", { class: "fp-value fp-dim" }, "…");
    const marks = `${wrote.has(line.name) ? " fp-wrote" : ""}${line.name === opened ? " fp-cursor" : ""}`;
    const row = tag("button", { class: "fp-value" + marks, type: "button" }, ...valueCells(line));
    onClicks(row, () => act.open(line.name), () => act.edit(line.name));
    return row;
  };
  const view = virtualRows(high, draw);
  view.element.classList.add("fp-values");
  view.element.addEventListener("scroll", seen, { passive: true });
  const part = tag("input", { type: "search", placeholder: "filter", "aria-label": "filter variables" });
  part.oninput = () => act.window(0, 24, part.value.trim());
  const count = tag("span", { class: "fp-dim" });
  const element = tag(
    "section", { class: "fp-part fp-scope" },
    tag("div", { class: "fp-head" }, tag("h4", {}, "Variables"), count, part), view.element,
  );
  return {
    element,
    show(now, written, open) {
      scope = now;
      wrote = new Set(written);
      opened = open;
      count.textContent = scope.count === 1 ? "1 variable" : `${scope.count.toLocaleString("en")} variables`;
      view.element.style.height = Math.min(Math.max(scope.count, 1), 6) * high + 2 + "px";
      view.show(scope.count);
      seen();
    },
  };
}

/** The variable that is open. `act` has close(), view(at, row, column, rows, columns, axes), edit(text) and against(step). */
function openedValue(act) {
  const head = tag("div", { class: "fp-head" });
  const body = tag("div");
  const box = tag("input", { type: "text", placeholder: "a number, or an expression", "aria-label": "new value" });
  const form = tag("form", { class: "fp-add" }, box, tag("button", { type: "submit", title: "Set the value; stepping back undoes it" }, "set"));
  const element = tag("section", { class: "fp-part fp-opened", hidden: true }, head, body, form);
  const rows = 12;
  const columns = 10;
  let shown = null;
  let what = "new"; // which numbers of a difference are in the table
  let wanted = false; // whether the box for a new value gets the focus
  form.onsubmit = (event) => {
    event.preventDefault();
    if (box.value.trim()) act.edit(shown.line.name, box.value, shown.frame);
    box.value = "";
  };
  const go = (view, changes) => {
    const next = { ...view, ...changes };
    act.view(next.at, next.row, next.column, rows, columns, next.axes);
  };
  const steps = (page, what, most, total) => {
    const at = page.view[what];
    const last = Math.min(at + most, total);
    if (total <= most) return tag("span", { class: "fp-dim" }, what === "row" ? `${total} rows` : `${total} columns`);
    const button = (label, to, sign, can) =>
      tag("button", { type: "button", "aria-label": label, disabled: !can, onclick: () => go(page.view, { [what]: to }) }, sign);
    return tag(
      "span", { class: "fp-steps" },
      button(`earlier ${what}s`, Math.max(at - most, 0), "‹", at > 0),
      tag("span", {}, `${what}s ${at}–${last - 1} of ${total.toLocaleString("en")}`),
      button(`later ${what}s`, at + most, "›", last < total),
    );
  };
  const slices = (opened) => {
    const { shape, page } = opened;
    if (shape.length < 3) return null;
    const [down, across] = page.view.axes;
    const boxes = shape.map((size, axis) => {
      if (axis === down || axis === across) return ":";
      const input = tag("input", { type: "number", min: "0", max: String(size - 1), value: String(page.view.at[axis] ?? 0), "aria-label": `index of axis ${axis}` });
      input.onchange = () => {
        const at = shape.map((_, i) => page.view.at[i] ?? 0);
        at[axis] = Math.max(0, Math.min(size - 1, Number(input.value) || 0));
        go(page.view, { at, row: 0, column: 0 });
      };
      return input;
    });
    return tag("span", { class: "fp-slices" }, "slice [", ...boxes.flatMap((box, i) => (i ? [", ", box] : [box])), "]");
  };
  const axes = (opened) => {
    const { shape, page } = opened;
    if (shape.length < 2) return null;
    const choice = (which, label) => {
      const select = tag("select", { "aria-label": `axis of the ${label}` }, ...shape.map((size, axis) => tag("option", { value: axis }, `${axis} (${size})`)));
      select.value = String(page.view.axes[which]);
      select.onchange = () => {
        const next = [...page.view.axes];
        const other = Number(select.value);
        if (next[1 - which] === other) next[1 - which] = next[which]; // the two change places
        next[which] = other;
        go(page.view, { axes: next, row: 0, column: 0 });
      };
      return tag("label", {}, `${label} `, select);
    };
    return tag("span", { class: "fp-axes" }, choice(0, "rows"), choice(1, "columns"));
  };
  const table = (page, difference) => {
    const cells = (what !== "new" && difference?.pages?.[what]) || page.cells;
    const numbers = cells.flat().map(Number);
    const most = Math.max(...numbers.filter(Number.isFinite).map(Math.abs), 1e-300);
    const cell = (text, i, j) => {
      const value = Number(text);
      const bad = /nan|inf/i.test(text);
      const strong = Number.isFinite(value) ? Math.round((Math.abs(value) / most) * 45) : 0;
      const ground = `background:color-mix(in srgb, ${value < 0 ? "#3b82f6" : "#d97706"} ${strong}%, transparent)`;
      const changed = difference?.pages?.changed[i]?.[j] === "True";
      const { old, absolute, relative } = difference?.pages ?? {};
      const title = changed ? `${old[i][j]} → ${page.cells[i][j]}\nabsolute ${absolute[i][j]}\nrelative ${relative[i][j]}` : null;
      return tag("td", { class: [bad && "fp-bad", changed && "fp-changed"].filter(Boolean).join(" "), style: bad ? null : ground, title }, text);
    };
    const { rows: ownRows, columns: ownColumns } = page.names ?? {}; // of a saved page, which may lack some
    const rowName = (i) => ownRows?.[i] ?? (page.wraps ? (page.view.row + i) * 10 : page.view.row + i);
    const columnName = (j) => ownColumns?.[j] ?? page.view.column + j;
    return tag(
      "table", { class: "fp-cells" },
      tag("tr", {}, tag("td"), ...(page.cells[0] || []).map((_, j) => tag("th", { scope: "col" }, String(columnName(j))))),
      ...cells.map((line, i) => tag("tr", {}, tag("th", { scope: "row" }, String(rowName(i))), ...line.map((text, j) => cell(text, i, j)))),
    );
  };
  const against = (opened) => {
    const { difference } = opened;
    const step = tag("input", { type: "number", min: "0", value: difference ? String(difference.at) : "", placeholder: "step", "aria-label": "compare with step" });
    step.onchange = () => act.against(step.value === "" ? null : Math.max(0, Math.round(Number(step.value))));
    const parts = [tag("label", {}, "difference against step ", step)];
    if (difference?.pages) {
      const choice = tag("select", { "aria-label": "numbers in the table" },
        ...[["new", "new values"], ["old", "old values"], ["absolute", "absolute difference"], ["relative", "relative difference"]].map(([value, text]) => tag("option", { value }, text)));
      choice.value = what;
      choice.onchange = () => {
        what = choice.value;
        draw(shown);
      };
      parts.push(choice);
    }
    return tag("div", { class: "fp-line fp-against" }, ...parts);
  };
  const largest = (difference) => {
    if (!difference?.largest?.length) return null;
    const titles = ["index", "old", "new", "absolute", "relative"];
    return tag("div", { class: "fp-scroll" }, tag(
      "table", { class: "fp-cells fp-largest" },
      tag("tr", {}, ...titles.map((title) => tag("th", { scope: "col" }, title))),
      ...difference.largest.map((each) => tag("tr", {}, tag("th", { scope: "row" }, `[${each.index.join(", ")}]`), ...titles.slice(1).map((title) => tag("td", {}, each[title])))),
    ));
  };
  const picture = (src, label) => (src ? tag("img", { src, alt: label, title: label }) : null);
  const draw = (opened) => {
    const { line, page } = opened;
    const close = tag("button", { class: "fp-remove", type: "button", "aria-label": "close " + line.name, title: "close", onclick: act.close }, "×");
    head.replaceChildren(tag("h4", {}, line.name), tag("span", { class: "fp-facts" }, line.facts), close);
    const parts = [];
    if (line.statistics)
      parts.push(tag("div", { class: "fp-line" }, tag("span", { class: line.bad ? "fp-bad" : "" }, line.statistics),
        line.histogram.length ? bars(line.histogram) : null, tag("span", { class: "fp-dim" }, `${line.nbytes.toLocaleString("en")} bytes`)));
    if (opened.note) parts.push(tag("div", { class: "fp-line fp-dim" }, opened.note));
    if (opened.sequences) {
      const sequences = tag("div", { class: "fp-sequences", title: line.lod });
      sequences.innerHTML = opened.sequences; // drawn by the kernel from offsets alone
      parts.push(sequences);
    }
    if (page) {
      parts.push(tag("div", { class: "fp-line" }, axes(opened), slices(opened), steps(page, "row", rows, page.shape[0]), steps(page, "column", columns, page.shape[1])));
      parts.push(tag("div", { class: "fp-grid" }, tag("div", { class: "fp-scroll" }, table(page, opened.difference)), tag("div", { class: "fp-pictures" },
        picture(opened.picture, "the whole plane: blue is below 0, orange above, red is NaN"), picture(opened.image, "as an image"))));
    }
    if (page) {
      parts.push(against(opened));
      if (opened.difference) parts.push(tag("div", { class: "fp-line", role: "status" }, opened.difference.summary || opened.difference.problem), largest(opened.difference) ?? "");
    }
    parts.push(...opened.parts.map((part) => tag("div", { class: "fp-value" }, ...valueCells(part))));
    body.replaceChildren(...parts);
    form.hidden = opened.gone || !page;
  };
  return {
    element,
    show(opened) {
      shown = opened;
      element.hidden = !opened;
      if (opened) draw(opened);
      if (opened && wanted && !form.hidden) box.focus();
      wanted = false;
    },
    edit() {
      wanted = true;
      if (shown && !form.hidden) box.focus();
    },
  };
}
