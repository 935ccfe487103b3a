// Parts of the debugger panel: the listing of the program, bars, lines of values, lists with a box to add to them.

/**
 * Call `once` at a click, and `twice` at the second press of a double click, wherever on the page that press lands: the
 * answer to the first click may have drawn the row anew, or moved it from under the pointer.
 */
function onClicks(element, once, twice) {
  const settings = { capture: true, once: true };
  const stop = (event) => {
    if (event.detail < 2) return false;
    event.preventDefault(); // what is under the pointer now does not take the focus
    event.stopPropagation();
    return true;
  };
  element.onclick = (event) => event.detail > 1 || once(); // a second click that began elsewhere is not for this row
  element.onmousedown = (event) => {
    if (event.detail !== 1) return;
    addEventListener("mousedown", (next) => stop(next) && (addEventListener("click", stop, settings), twice()), settings);
  };
}

/** A histogram as bars. */
function bars(counts) {
  const top = Math.max(...counts, 1);
  const step = 64 / counts.length;
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("class", "fp-bars");
  svg.setAttribute("viewBox", "0 0 64 14");
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", "histogram");
  counts.forEach((count, i) => {
    const bar = document.createElementNS(svg.namespaceURI, "rect");
    const high = count ? Math.max((14 * count) / top, 1) : 0;
    for (const [key, value] of Object.entries({ x: i * step, y: 14 - high, width: step - 0.6, height: high }))
      bar.setAttribute(key, value.toFixed(1));
    svg.append(bar);
  });
  return svg;
}

/** The cells of a variable: its name and what it is, below that its numbers; `what` says what happens to it. */
function valueCells(line, what = "") {
  return [
    tag("span", { class: "fp-name", title: line.name }, what ? tag("span", { class: "fp-what" }, what) : null, line.name),
    tag("span", { class: "fp-facts", title: [line.facts, line.lod].filter(Boolean).join("  ") }, line.facts + (line.lod ? "  " + line.lod : "")),
    tag("span", { class: line.bad ? "fp-numbers fp-bad" : "fp-numbers", title: line.statistics }, line.statistics),
    line.histogram.length ? bars(line.histogram) : tag("span"),
  ];
}

/**
 * The listing of the program. `act` has mark(block, index) and until(block, index).
 * Gives { element, load(rows), position(position), stops(stops), reveal(block, index) }.
 */
function programListing(act) {
  let rows = [];
  let places = new Map();
  let position = {};
  let dots = new Map();
  let cursor = -1;
  const key = (block, index) => block + ":" + index;
  const mine = "fp-" + Math.random().toString(36).slice(2) + "-"; // several panels may be on a page
  const is = (spot, row) => spot && spot[0] === row[1] && spot[1] === row[2];
  const atEnd = () => position.state !== "idle" && !position.here && position.frames?.length && position.frames[position.frames.length - 1].block;
  const draw = (i) => {
    const [depth, block, index, role, text, facts, place] = rows[i];
    if (index < 0) return tag("div", { class: "fp-op fp-title" }, ...pieces(text));
    const stops = dots.get(key(block, index)) || [];
    const sure = stops.some((stop) => stop.spot);
    const dot = sure ? "●" : stops.length ? "○" : "";
    const here = is(position.here, rows[i]);
    const last = atEnd() === block && !places.has(key(block, index + 1));
    const gutter = tag("span", { class: "fp-gutter", title: stops.map((s) => s.text).join(", ") || "stop here" }, dot);
    if (dot) Object.entries({ role: "img", "aria-label": "breakpoint" }).forEach(([k, v]) => gutter.setAttribute(k, v));
    gutter.onclick = (event) => {
      event.stopPropagation();
      act.mark(block, index);
    };
    const marks = `${here ? " fp-here" : ""}${is(position.ran, rows[i]) ? " fp-ran" : ""}${last ? " fp-end" : ""}`;
    const row = tag(
      "div",
      { class: `fp-op${marks}${i === cursor ? " fp-cursor" : ""}`, role: "option", id: mine + key(block, index),
        "aria-selected": String(i === cursor), title: [text.map((p) => p[0]).join(""), facts, place].filter(Boolean).join("\n") },
      gutter,
      tag("span", here ? { class: "fp-arrow", role: "img", "aria-label": "next" } : { class: "fp-arrow" }, here ? "▶" : ""),
      tag("span", { class: "fp-number" }, String(index)),
      tag("span", { class: "fp-text", style: `padding-left:${depth * 16}px` }, ...pieces(text)),
      tag("span", { class: "fp-facts" }, facts),
      tag("span", { class: "p-place" }, place),
    );
    row.onclick = () => {
      cursor = i;
      view.redraw();
    };
    return row;
  };
  const view = virtualRows(20, draw);
  Object.entries({ role: "listbox", tabindex: "0", "aria-label": "program: arrows choose, Enter sets a breakpoint, u runs there" }).forEach(([k, v]) => view.element.setAttribute(k, v));
  view.element.classList.add("fp-listing");
  const move = (to) => {
    cursor = Math.max(0, Math.min(rows.length - 1, to));
    view.reveal(cursor);
    view.redraw();
    const row = rows[cursor];
    view.element.setAttribute("aria-activedescendant", mine + key(row[1], row[2]));
  };
  const keys = {
    ArrowDown: () => move(cursor + 1),
    ArrowUp: () => move(cursor - 1),
    PageDown: () => move(cursor + 15),
    PageUp: () => move(cursor - 15),
    Home: () => move(0),
    End: () => move(rows.length - 1),
    Enter: () => rows[cursor]?.[2] >= 0 && act.mark(rows[cursor][1], rows[cursor][2]),
    u: () => rows[cursor]?.[2] >= 0 && act.until(rows[cursor][1], rows[cursor][2]),
  };
  view.element.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !keys[event.key] || !rows.length) return;
    event.preventDefault();
    event.stopPropagation();
    keys[event.key]();
  });
  const reveal = (block, index) => {
    const at = places.get(key(block, index));
    if (at !== undefined) view.reveal(at);
  };
  new ResizeObserver(() => position.here && reveal(...position.here)).observe(view.element);
  return {
    element: view.element,
    reveal,
    load(all) {
      rows = all;
      places = new Map(rows.map((row, i) => [key(row[1], row[2]), i]));
      cursor = -1;
      view.element.style.height = Math.min(Math.max(rows.length, 4), 21) * 20 + 2 + "px";
      view.show(rows.length);
    },
    position(now) {
      const moved = String(now.here) !== String(position.here);
      position = now;
      if (moved && now.here) reveal(...now.here);
      view.redraw();
    },
    stops(all) {
      dots = new Map();
      for (const stop of all)
        for (const spot of stop.ops) {
          const at = key(...spot);
          dots.set(at, [...(dots.get(at) || []), stop]);
        }
      view.redraw();
    },
  };
}

/** A list with a box to add to it. Gives { element, show(rows) }; each row is [text, more, remove]. */
function addable(title, hint, label, add) {
  const list = tag("div", { class: "fp-list" });
  const box = tag("input", { type: "text", placeholder: hint, "aria-label": label });
  const form = tag("form", { class: "fp-add" }, box, tag("button", { type: "submit", title: label }, "add"));
  form.onsubmit = (event) => {
    event.preventDefault();
    if (box.value.trim()) add(box.value);
    box.value = "";
  };
  const element = tag("section", { class: "fp-part" }, tag("h4", {}, title), list, form);
  return {
    element,
    show(rows) {
      list.replaceChildren(
        ...rows.map(([text, more, remove, bad]) =>
          tag(
            "div",
            { class: "fp-item" },
            tag("span", { class: "fp-name", title: text }, text),
            tag("span", { class: bad ? "fp-numbers fp-bad" : "fp-numbers", title: more }, more),
            tag("button", { class: "fp-remove", "aria-label": `remove ${text}`, title: "remove", onclick: remove }, "×"),
          ),
        ),
      );
    },
  };
}

/** The user's code around a line. Gives { element, show(source, place) }. */
function sourceLines() {
  const title = tag("h4");
  const lines = tag("div", { class: "fp-lines", tabindex: "0", "aria-label": "source" });
  const element = tag("section", { class: "fp-part fp-source", hidden: true }, title, lines);
  return {
    element,
    show(source, place) {
      element.hidden = !source;
      if (!source) return;
      title.textContent = visible(place);
      lines.replaceChildren(...source.lines.map((text, i) => {
        const here = source.first + i === source.line;
        return tag("div", { class: here ? "fp-here" : "", "aria-current": here ? "true" : null },
          tag("span", { class: "fp-number" }, String(source.first + i)), text);
      }));
      const here = lines.querySelector(".fp-here");
      lines.scrollTop = here.offsetTop - lines.offsetTop - (lines.clientHeight - here.offsetHeight) / 2;
    },
  };
}

/** Marks a line in the notebook's own editors. Gives { show(id, source), clear() }; a cell that was edited is not marked. */
function cellMarker(model, root) {
  const name = "fluidnb-paused-" + Math.random().toString(36).slice(2);
  const rule = tag("style");
  root.prepend(rule);
  const clear = () => {
    rule.textContent = "";
    document.querySelectorAll("." + name).forEach((node) => node.classList.remove(name));
  };
  const cellNode = (index, count) => {
    const notebook = root.closest(".jp-Notebook") ?? document.querySelector(".jp-NotebookPanel:not(.lm-mod-hidden) .jp-Notebook");
    const nodes = notebook?.querySelectorAll(".jp-Cell") ?? [];
    return notebook?.querySelector(`.jp-Cell[data-windowed-list-index="${index}"]`) ?? (nodes.length === count ? nodes[index] : null);
  };
  return {
    clear,
    show(id, source) {
      clear();
      const notebook = id && source ? notebookOf(model) : null;
      const index = notebook ? cellIndex(notebook, id) : -1;
      const line = index < 0 ? undefined : notebook.cells[index].getSource().split("\n")[source.line - 1];
      if (line === undefined || line.trim() !== source.lines[source.line - source.first].trim()) return;
      const node = cellNode(index, notebook.cells.length);
      node?.classList.add(name);
      rule.textContent = `.${name} .cm-content > .cm-line:nth-child(${source.line}) { background: color-mix(in srgb, #d97706 25%, transparent); box-shadow: inset 3px 0 0 #d97706; }`;
    },
  };
}
