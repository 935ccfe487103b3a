
// The program explorer: listing, search, folding, selection, graph, and what is highlighted.

const HEIGHT = 22; // pixels of a row
const SOON = 80; // milliseconds before a selection is sent, so that a key that is held down sends few requests

function render({ model, el }) {
  const frame = framed(model, el, "explorer", {
    "/": () => search.focus(),
    Escape: () => (search.value ? look("") : tree.focus()),
  });
  const { root, body, say } = frame;
  const off = [];
  const listen = (name, act) => {
    model.on(name, act);
    off.push(() => model.off(name, act));
  };

  /** A request to the kernel, if it runs; most functions do not need it. */
  const request = (name, more) => root.classList.contains("fw-dead") || ask(model, name, more);

  let program = Program.read(model.get("table"));
  let items = [];
  let cursor = -1; // among the items
  let chosen = null; // { row } or { variable, v } or { cell, rows }
  let lit = new Set(); // rows of a cell, or of a selection elsewhere
  let hits = [];
  let isHit = new Set();
  let roles = new Set();
  let graph = null; // { span, path } while a graph is shown
  let zoom = 1;
  const view = { fold: "", flipped: new Set(), keep: null };
  const past = []; // selections, as a browser keeps pages
  let present = -1;
  const sheets = new Map();
  let value = null;

  // ---- what there is to see

  const title = tag("span", { class: "fe-title" });
  const search = tag("input", { type: "search", class: "fe-search", "data-local": true, placeholder: "search  /", "aria-label": "search operators", title: "A word is a part of an operator's type, of a variable, of attribute=value or of a cell; with * and ? it must match as a whole; the prefixes op: var: attr: cell: choose the field.", oninput: () => look(search.value), spellcheck: "false" });
  const count = tag("span", { class: "fe-count p-dim", "aria-live": "polite" });
  const button = (text, label, act, more = {}) => tag("button", { "data-local": true, title: label, "aria-label": !/[a-z]/i.test(text) && label, onclick: act, ...more }, text);
  const before = button("↑", "previous match (Shift-Enter)", () => stepHits(-1));
  const after = button("↓", "next match (Enter)", () => stepHits(1));
  const only = tag("input", { type: "checkbox", "data-local": true, onchange: () => relist() });
  const finding = tag("span", { class: "fe-group", hidden: true }, before, after, count, tag("label", { class: "fe-only", title: "list only matches" }, only, "only"));
  const chips = ROLES.map((role) => button(role, `only ${role}`, () => { roles.has(role) ? roles.delete(role) : roles.add(role); relist(); }, { class: `fe-chip fe-${role}`, "aria-pressed": "false" }));
  const folds = tag("select", { "data-local": true, "aria-label": "fold", onchange: () => { view.fold = folds.value; view.flipped.clear(); relist(); } },
    ...[["", "fold nothing"], ["blocks", "fold blocks"], ["cells", "fold cells"], ["layers", "fold layers"]].map(([key, text]) => tag("option", { value: key }, text)));
  const cells = tag("select", { "data-local": true, "aria-label": "cell", onchange: () => cells.value && chooseCell(Number(cells.value) - 1) });
  const listButton = button("List", "the listing", () => showGraph(null), { class: "fe-tab", "aria-pressed": "true" });
  const graphButton = tag("button", { class: "fe-tab", title: "data flow, a level at a time", "aria-pressed": "false", onclick: () => showGraph({ span: "", path: [] }) }, "Graph");
  const position = tag("div", { class: "fe-position", hidden: true });
  const back = button("←", "back (Alt-Left)", () => travel(-1));
  const forth = button("→", "forward (Alt-Right)", () => travel(1));
  const card = tag("div", { class: "fe-pane", tabindex: "-1" });
  const rows = virtualRows(HEIGHT, draw);
  const tree = rows.element;
  for (const [key, text] of Object.entries({ role: "tree", tabindex: "0", "aria-label": "operators", "data-local": "" })) tree.setAttribute(key, text);
  const canvas = tag("div", { class: "fe-canvas", tabindex: "0", "aria-label": "graph; the wheel zooms when it has the focus, dragging moves it" });
  const path = tag("div", { class: "fe-path" });
  const zoomed = (by) => { zoom = by ? Math.min(4, Math.max(0.1, zoom * by)) : fit(); scale(); };
  const zooms = tag("span", { class: "fe-group fe-zoom" }, button("−", "zoom out", () => zoomed(0.8)), button("+", "zoom in", () => zoomed(1.25)), button("fit", "fit", () => zoomed(0)));
  const graphPane = tag("div", { class: "fe-graph", hidden: true }, path, canvas);
  body.append(
    tag("div", { class: "fe-bar" }, title, tag("span", { class: "fe-group" }, search, finding), tag("span", { class: "fe-group" }, ...chips), tag("span", { class: "fe-group" }, folds, cells), tag("span", { class: "fe-group fe-tabs" }, listButton, graphButton)),
    position,
    tag("div", { class: "fe-main" }, tree, graphPane, tag("div", { class: "fe-side" }, tag("div", { class: "fe-travel" }, back, forth), card)),
  );

  // ---- the listing

  function draw(k) {
    const item = items[k];
    const { row } = item;
    if ("head" in item) return tag("div", { class: "fe-row fe-head p-dim", role: "presentation" }, `block ${item.head}: no operator runs it`);
    const isIn = (rowsOf) => (item.isOp && item.isOpen) || !item.key || item.isOpen ? rowsOf.has(row) && item.isOp : within(item, rowsOf);
    const classes = ["fe-row", "fe-" + program.role(row)];
    if (k === cursor) classes.push("fe-sel");
    if (isIn(isHit)) classes.push("fe-hit");
    if (isIn(lit)) classes.push("fe-lit");
    if (k === nowItem()) classes.push("fe-now");
    const fold = item.key ? tag("span", { class: "fe-fold", "aria-hidden": "true", onclick: (event) => { event.stopPropagation(); flip(k); } }, item.isOpen ? "▾" : "▸") : tag("span", { class: "fe-fold" });
    const size = item.last - row + (item.isOp ? 0 : 1);
    const text = item.isOp ? program.line(row) : [[item.title, program.role(row)]];
    const hidden = item.key && !item.isOpen ? [[`  ${size.toLocaleString("en")} op${size === 1 ? "" : "s"}`, "dim"]] : [];
    const line = [...text, ...hidden];
    const facts = item.isOp ? program.facts(row) : "";
    const place = item.isOp ? program.word(row, PLACE) : "";
    const span = facts ? "" : place ? "; grid-column-end: span 2" : "; grid-column-end: -1"; // empty columns are its own
    const element = tag(
      "div",
      { class: classes.join(" "), role: "treeitem", id: `${root.id}-${k}`, "aria-level": String(item.depth + 1), "aria-selected": String(k === cursor), "aria-setsize": String(items.length), "aria-posinset": String(k + 1), onclick: () => pick(k), ondblclick: () => flip(k), title: line.map(([t]) => t).join("") + "\n" + program.word(row, PLACE) },
      tag("span", { class: "fe-name" }, program.name(row)),
      tag("span", { class: "fe-code", style: `padding-left: ${item.depth * 18}px${span}` }, fold, ...pieces(line)),
      facts && tag("span", { class: "fe-facts" }, facts),
      (facts || place) && tag("span", { class: "fe-place" }, place),
    );
    if (item.key) element.setAttribute("aria-expanded", String(item.isOpen));
    return element;
  }

  function within(item, set) {
    if (set.size < item.last - item.row) {
      for (const row of set) if (row >= item.row && row <= item.last) return true;
      return false;
    }
    for (let row = item.row; row <= item.last; row++) if (set.has(row)) return true;
    return false;
  }

  /** The item that shows a row: its own, or the fold around it; -1 if it is filtered out. */
  function itemOf(row) {
    let [low, high] = [0, items.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (items[middle].row <= row) low = middle + 1;
      else high = middle;
    }
    for (let k = low - 1; k >= 0; k--) {
      const item = items[k];
      if (item.isOp ? item.row === row || (item.last >= row && !item.isOpen) : item.key && !item.isOpen && item.last >= row) return k;
      if (item.isOp && item.depth === 0 && !items[k].key) return -1;
    }
    return -1;
  }

  function nowRow() {
    const op = model.get("position").op;
    return op ? program.find(op) : undefined;
  }
  const nowItem = () => (marks.now === undefined ? -1 : marks.item);
  const marks = {};

  /** Rebuild the listing; the cursor stays at its operator. */
  function relist() {
    const wanted = (i) => (!roles.size || roles.has(program.role(i))) && (!(only.checked && search.value.trim()) || isHit.has(i));
    view.keep = roles.size || (only.checked && search.value.trim()) ? kept(program, wanted) : null;
    items = listed(program, view);
    chips.forEach((chip, k) => chip.setAttribute("aria-pressed", String(roles.has(ROLES[k]))));
    cursor = chosen && "row" in chosen ? itemOf(chosen.row) : -1;
    mark();
    rows.show(items.length);
    active();
  }

  function mark() {
    marks.now = nowRow();
    marks.item = marks.now === undefined ? -1 : itemOf(marks.now);
  }

  function active() {
    if (cursor >= 0) tree.setAttribute("aria-activedescendant", `${root.id}-${cursor}`);
    else tree.removeAttribute("aria-activedescendant");
  }

  function flip(k, wanted = !items[k].isOpen) {
    const { key, isOpen } = items[k];
    if (!key || isOpen === wanted) return false;
    view.flipped.has(key) ? view.flipped.delete(key) : view.flipped.add(key);
    relist();
    return true;
  }

  /** Scroll to an operator, and unfold the blocks around it. */
  function reveal(row) {
    for (let k = itemOf(row); k >= 0 && (items[k].row !== row || !items[k].isOp); k = itemOf(row)) if (!flip(k, true)) break;
    const k = itemOf(row);
    if (k >= 0) rows.reveal(k);
    return k;
  }

  // ---- search

  function look(text, isNew = true) {
    if (search.value !== text) search.value = text;
    hits = matchingRows(program, text.trim());
    isHit = new Set(hits);
    relist();
    const from = Math.max(0, chosen && "row" in chosen ? chosen.row : 0);
    showHits();
    markGraph();
    if (isNew && hits.length) rows.reveal(Math.max(0, itemOf(hits.find((row) => row >= from) ?? hits[0])));
  }

  function showHits() {
    const at = chosen && "row" in chosen ? hits.indexOf(chosen.row) : -1;
    count.textContent = !search.value.trim() ? "" : at < 0 ? `${hits.length.toLocaleString("en")} found` : `${(at + 1).toLocaleString("en")} of ${hits.length.toLocaleString("en")}`;
    before.disabled = after.disabled = !hits.length;
    finding.hidden = !search.value.trim();
  }

  function stepHits(by) {
    if (!hits.length) return;
    const from = chosen && "row" in chosen ? chosen.row : -1;
    const next = by > 0 ? hits.find((row) => row > from) ?? hits[0] : hits.findLast((row) => row < from) ?? hits.at(-1);
    choose({ row: next });
  }

  // ---- what is selected

  function pick(k, isStep = false) {
    const item = items[k];
    if (!item || "head" in item) return;
    if (item.isOp) choose({ row: item.row }, { isStep });
    else {
      cursor = k; // a run is no operator: only the cursor goes there
      rows.reveal(k);
      rows.redraw();
      active();
    }
  }

  let sharing = 0;
  /** Select something; `isStep` takes the place of the step before, `isShared` is for what was selected elsewhere. */
  function choose(next, { isStep = false, isShared = false, isTravel = false } = {}) {
    chosen = next;
    value = null;
    lit = new Set(next.rows ?? []);
    if ("row" in next) {
      cursor = reveal(next.row);
      if (!sheets.has(program.word(next.row, TYPE))) soon("sheet", () => request("sheet", { type: program.word(next.row, TYPE), width: wide() }));
    } else if ("variable" in next) soon("value", () => request("value", { name: next.variable }));
    else if (next.rows.length) reveal(next.rows[0]);
    if (!isTravel) {
      const replaces = isStep && past[present]?.isStep;
      past.splice(replaces ? present : present + 1, Infinity, { ...next, isStep });
      present = past.length - 1;
    }
    clearTimeout(sharing);
    if (!isShared) sharing = setTimeout(share, SOON, next);
    rows.redraw();
    active();
    showHits();
    const hadFocus = card.contains(document.activeElement);
    drawCard();
    if (hadFocus) card.focus(); // the link that was followed is gone
    markGraph();
  }

  function share(next) {
    if ("row" in next) request("select", { block: program.rows[next.row][BLOCK], index: program.rows[next.row][INDEX] });
    else if ("variable" in next) request("select_variable", { name: next.variable });
    else request("select_cell", { title: next.cell.title });
  }

  /** Characters of a line in the card. */
  function wide() {
    const ruler = tag("span", { class: "fe-ruler" }, "0".repeat(100));
    card.append(ruler);
    const size = ruler.getBoundingClientRect().width / 100;
    ruler.remove();
    return Math.max(30, Math.floor((card.clientWidth - 26) / (size || 8)));
  }

  const waiting = {};
  function soon(what, act) {
    clearTimeout(waiting[what]);
    waiting[what] = setTimeout(act, SOON);
  }

  function travel(by) {
    const next = past[present + by];
    if (!next) return;
    present += by;
    choose(next, { isTravel: true });
  }

  function chooseCell(k) {
    const cell = model.get("cells")[k];
    choose({ cell, rows: rowsOf(cell) });
  }

  function rowsOf(cell) {
    const rows = [];
    for (const [block, first, last] of cell.spans)
      for (let index = first; index <= last; index++) {
        const row = program.find([block, index]);
        if (row !== undefined) rows.push(row);
      }
    return rows.sort((a, b) => a - b);
  }

  function drawCard() {
    back.disabled = present <= 0;
    forth.disabled = present >= past.length - 1;
    const go = (next) => choose(next);
    if (!chosen) card.replaceChildren(tag("p", { class: "fe-empty p-dim" }, "Select an operator to see its operation, the origin of its inputs and the uses of its outputs."));
    else if ("row" in chosen) card.replaceChildren(opCard(program, chosen.row, sheets.get(program.word(chosen.row, TYPE)), go));
    else if ("variable" in chosen) card.replaceChildren(varCard(program, chosen.v, value, go));
    else card.replaceChildren(cellCard(program, chosen.cell, chosen.rows, go));
  }

  /** Put what arrived into the card. The links stay the same elements: one that is being clicked keeps its click. */
  const late = (part) => card.querySelector(".fe-late").replaceWith(part);

  // ---- keys

  const page = () => Math.max(1, Math.floor(tree.clientHeight / HEIGHT) - 1);
  const move = (to) => items.length && pick(Math.min(items.length - 1, Math.max(0, to)), true);
  const keys = {
    ArrowDown: () => move(cursor + 1),
    ArrowUp: () => move(cursor < 0 ? 0 : cursor - 1),
    PageDown: () => move(cursor + page()),
    PageUp: () => move(cursor - page()),
    Home: () => move(0),
    End: () => move(items.length - 1),
    ArrowRight: () => items[cursor] && (flip(cursor, true) || (items[cursor].isOpen && move(cursor + 1))),
    ArrowLeft: () => {
      if (!items[cursor] || (items[cursor].isOpen && flip(cursor, false))) return;
      for (let k = cursor - 1; k >= 0; k--) if (items[k].depth < items[cursor].depth) return move(k);
    },
    Enter: () => items[cursor] && (items[cursor].isOp ? pick(cursor) : flip(cursor)),
    " ": () => items[cursor] && flip(cursor),
  };
  tree.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
    event.preventDefault();
    keys[event.key]();
  });
  root.addEventListener("keydown", (event) => {
    if (!event.altKey || !["ArrowLeft", "ArrowRight"].includes(event.key)) return;
    event.preventDefault();
    travel(event.key === "ArrowLeft" ? -1 : 1);
  });
  search.addEventListener("keydown", (event) => {
    if (event.key === "Enter") stepHits(event.shiftKey ? -1 : 1);
    else if (event.key === "Escape") search.value ? look("") : tree.focus();
    else if (event.key === "ArrowDown") tree.focus();
    else return;
    event.preventDefault();
  });

  // ---- the graph

  function showGraph(next) {
    if (graph && !next) request("cancel");
    graph = next;
    tree.hidden = Boolean(graph);
    graphPane.hidden = !graph;
    listButton.setAttribute("aria-pressed", String(!graph));
    graphButton.setAttribute("aria-pressed", String(Boolean(graph)));
    if (!graph) {
      rows.redraw();
      if (chosen && "row" in chosen) reveal(chosen.row);
      return;
    }
    const parts = ["", ...graph.path, ...(graph.span ? [graph.span] : [])];
    path.replaceChildren(
      ...parts.map((span, k) => tag("button", { class: "fe-link", disabled: k === parts.length - 1, onclick: () => showGraph({ span, path: parts.slice(1, k) }) }, span || program.title)),
      tag("span", { class: "p-dim fe-drawing" }, "drawing … "),
      tag("button", { class: "fe-cancel", onclick: () => request("cancel") }, "Cancel"),
    );
    request("graph", { span: graph.span });
  }

  function drawGraph(drawn) {
    if (!graph || drawn.span !== graph.span) return;
    path.querySelectorAll(".fe-drawing, .fe-cancel").forEach((element) => element.remove());
    path.append(tag("span", { class: "p-dim" }, [drawn.counts, drawn.why].filter(Boolean).join("   ")), zooms);
    canvas.replaceChildren();
    graph.drawn = drawn;
    if (!drawn.svg) return;
    const read = new DOMParser().parseFromString(drawn.svg, "text/html").querySelector("svg");
    canvas.append(read);
    graph.size = [read.getBoundingClientRect().width, read.getBoundingClientRect().height];
    scale();
    for (const node of canvas.querySelectorAll(`g[id^="${drawn.uid}op_"]`)) {
      const fold = drawn.folds[node.id];
      node.classList.add("fe-node");
      node.addEventListener("click", () => {
        if (moved) return;
        if (fold) showGraph({ span: fold, path: [...graph.path, ...(graph.span ? [graph.span] : [])] });
        else choose({ row: program.find(node.id.slice(drawn.uid.length + 3).split("_")) });
      });
    }
    for (const node of canvas.querySelectorAll(`g[id^="${drawn.uid}var_"]`)) {
      const variable = node.id.slice(drawn.uid.length + 4);
      const v = program.vars.findIndex(([name]) => name === variable);
      if (v < 0) continue;
      node.classList.add("fe-node");
      node.addEventListener("click", () => moved || choose({ variable, v }));
    }
    markGraph();
    const shown = canvas.querySelector(".fe-now, .fe-sel")?.getBoundingClientRect() ?? canvas.querySelector(".fe-node")?.getBoundingClientRect();
    const ground = canvas.getBoundingClientRect();
    if (shown) canvas.scrollBy(shown.x - ground.x - ground.width / 2, shown.y - ground.y - ground.height / 3);
  }

  const fit = () => Math.min(1, (canvas.clientWidth - 16) / graph.size[0], (canvas.clientHeight - 16) / graph.size[1]);
  function scale() {
    const drawing = canvas.querySelector("svg");
    if (drawing) [drawing.style.width, drawing.style.height] = graph.size.map((pixels) => pixels * zoom + "px");
  }

  function markGraph() {
    if (!graph?.drawn) return;
    const { uid } = graph.drawn;
    const at = (row) => row !== undefined && canvas.querySelector(`[id="${uid}op_${program.rows[row][BLOCK]}_${program.rows[row][INDEX]}"]`);
    canvas.querySelectorAll(".fe-sel, .fe-now").forEach((node) => node.classList.remove("fe-sel", "fe-now"));
    (chosen && "row" in chosen && at(chosen.row))?.classList?.add("fe-sel");
    (at(nowRow()) || null)?.classList.add("fe-now");
    if (chosen && "variable" in chosen) canvas.querySelector(`[id="${CSS.escape(uid + "var_" + chosen.variable)}"]`)?.classList.add("fe-sel");
    for (const node of canvas.querySelectorAll(`g[id^="${uid}op_"]`)) node.classList.toggle("fe-found", nodeRows(node).some((row) => isHit.has(row)));
    canvas.classList.toggle("fe-finding", Boolean(search.value.trim()));
  }

  /** The rows that a node of the graph stands for. */
  function nodeRows(node) {
    const own = program.find(node.id.slice(graph.drawn.uid.length + 3).split("_"));
    if (own === undefined) return [];
    const [, block, first, last] = /^(\d+)(?::(\d+)-(\d+))?$/.exec(graph.drawn.folds[node.id] ?? "") ?? [];
    if (block === undefined) return [own];
    const end = first === undefined ? program.ends[own] : program.ends[program.find([block, last])] ?? own;
    return Array.from({ length: end - own + 1 }, (_, i) => own + i);
  }

  // The graph is moved by dragging, and zoomed where the pointer is by the wheel, once it has the focus.
  let grip = null;
  let moved = false; // a drag is no click
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button) return;
    moved = false;
    grip = { x: event.clientX, y: event.clientY, left: canvas.scrollLeft, top: canvas.scrollTop };
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!grip) return;
    const [dx, dy] = [event.clientX - grip.x, event.clientY - grip.y];
    if (!moved && Math.hypot(dx, dy) < 4) return;
    if (!moved) canvas.setPointerCapture(event.pointerId);
    moved = true;
    [canvas.scrollLeft, canvas.scrollTop] = [grip.left - dx, grip.top - dy];
  });
  for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, () => (grip = null));
  canvas.addEventListener(
    "wheel",
    (event) => {
      if (!graph?.size || (document.activeElement !== canvas && !event.ctrlKey)) return; // the notebook scrolls
      event.preventDefault();
      const drawing = canvas.querySelector("svg").getBoundingClientRect();
      const [x, y] = [(event.clientX - drawing.x) / drawing.width, (event.clientY - drawing.y) / drawing.height];
      zoom = Math.min(4, Math.max(0.02, zoom * Math.exp(Math.max(-60, Math.min(60, -event.deltaY)) * 0.005)));
      scale();
      const now = canvas.querySelector("svg").getBoundingClientRect();
      canvas.scrollBy(now.x + x * now.width - event.clientX, now.y + y * now.height - event.clientY);
    },
    { passive: false },
  );

  // ---- what comes from outside

  function drawHead() {
    const left = program.left ? `   reading ${program.left.toLocaleString("en")} more …` : "";
    title.replaceChildren(tag("b", {}, program.title), tag("span", { class: "p-dim" }, "  " + program.counts + left));
    const known = model.get("cells");
    cells.replaceChildren(tag("option", { value: "" }, known.length ? "cell …" : "no cells"), ...known.map((cell, k) => tag("option", { value: String(k + 1) }, (cell.number ? `[${cell.number}] ` : "") + cell.title)));
    cells.disabled = !known.length;
  }

  /** Another version of the program: keep the selections that still exist. */
  function renew() {
    const old = program;
    program = Program.read(model.get("table"));
    const places = new Map();
    const same = (row) => {
      if (!places.size) program.rows.forEach((_, i) => places.set(program.identity(i), i));
      const there = program.find(old.rows[row]);
      return there !== undefined && program.identity(there) === old.identity(row) ? there : places.get(old.identity(row));
    };
    const again = (next) => {
      if ("row" in next) return { ...next, row: same(next.row) };
      if ("variable" in next) return { ...next, v: program.vars.findIndex(([name]) => name === next.variable) };
      const cell = model.get("cells").find(({ title: other }) => other === next.cell.title);
      return { ...next, cell, rows: cell ? rowsOf(cell) : [] };
    };
    const exists = (next) => !("row" in next && next.row === undefined) && next.v !== -1 && !("cell" in next && !next.cell);
    const kept = past.map(again);
    present = kept.slice(0, present + 1).filter(exists).length - 1;
    past.splice(0, Infinity, ...kept.filter(exists));
    const next = chosen && again(chosen);
    chosen = next && exists(next) ? next : null;
    lit = new Set(chosen?.rows ?? [...lit].map(same).filter((row) => row !== undefined));
    drawHead();
    look(search.value, false);
    drawCard();
    if (graph) showGraph(graph);
  }

  function follow() {
    const now = model.get("position");
    position.hidden = !now.state;
    position.textContent = now.state ? visible(now.text) : "";
    position.classList.toggle("fe-running", now.state === "running");
    mark();
    if (marks.now !== undefined) reveal(marks.now);
    mark();
    rows.redraw();
    markGraph();
  }

  function onMessage(message) {
    if (message.sheet) {
      sheets.set(message.sheet, message.lines);
      if (chosen && "row" in chosen && program.word(chosen.row, TYPE) === message.sheet) late(sheetPart(message.lines));
    } else if (message.value) {
      if (chosen?.variable !== message.value) return;
      value = message;
      late(valuePart(value));
    } else if (message.graph) drawGraph(message.graph);
    else if (message.chosen) chooseElsewhere(message.chosen);
  }

  function chooseElsewhere({ ops, variable, cell }) {
    const rows = ops.map((op) => program.find(op)).filter((row) => row !== undefined);
    const known = model.get("cells").find(({ title: other }) => other === cell);
    const v = variable ? program.vars.findIndex(([name]) => name === variable) : -1;
    if (known) choose({ cell: known, rows }, { isShared: true });
    else if (v >= 0) choose({ variable, v }, { isShared: true });
    else if (rows.length === 1) choose({ row: rows[0] }, { isShared: true });
    else if (rows.length) light(rows);
  }

  function light(selected) {
    lit = new Set(selected);
    reveal(selected[0]);
    rows.redraw();
  }

  /** In a notebook page: the cell that the user is in; its prompt has the number by which the kernel knows it. */
  function watchCells() {
    const notebook = el.closest(".jp-Notebook");
    if (!notebook) return;
    let last = "";
    const see = () => {
      const prompt = notebook.querySelector(".jp-Cell.jp-mod-active .jp-InputPrompt")?.textContent ?? "";
      if (prompt === last) return;
      last = prompt;
      const cell = model.get("cells").find(({ number }) => prompt.trim() === `[${number}]:`);
      const rows = cell ? rowsOf(cell) : [];
      if (rows.length) light(rows);
    };
    let due = 0;
    const watcher = new MutationObserver(() => (due ||= setTimeout(() => ((due = 0), see()), 100)));
    watcher.observe(notebook, { subtree: true, attributes: true, attributeFilter: ["class"] });
    off.push(() => watcher.disconnect());
  }

  root.id = `fluidnb-explorer-${Math.random().toString(36).slice(2)}`;
  listen("change:table", renew);
  listen("change:cells", drawHead);
  listen("change:position", follow);
  listen("msg:custom", onMessage);
  drawHead();
  relist();
  showHits();
  drawCard();
  follow();
  setTimeout(watchCells); // once it is in the page
  request("shown");
  if (model.get("graph")) showGraph({ span: "", path: [] });
  return () => {
    off.forEach((act) => act());
    request("hidden");
    frame.dispose();
  };
}

export default { render };
