// The scope explorer: a tree of scopes whose rows are read as they come into view, and one tensor in detail.

const ROW = 24;
const CELL = { width: 92, height: 21, head: 64 };
const TALLEST = 4e6; // pixels of a list that a browser scrolls well

/** A place as commands name it. */
const placeText = (where) => where.replace(/^CUDAPlace\((\d+)\)$/, "cuda:$1");

function render({ model, el }) {
  const frame = framed(model, el, "scope", {
    "/": () => search.focus(),
    Escape: () => (search.value ? find("") : call("shut")),
  });
  const { call, dispose } = watching(model);
  const folds = new Map();
  const known = new Map();
  let items = [];
  let active = 0;
  let requested = "";

  // The bar.
  const search = tag("input", { "data-local": true, type: "search", class: "fs-search", placeholder: "search variables", "aria-label": "search variables" });
  const count = tag("span", { class: "fs-count p-dim" });
  const state = tag("span", { class: "fs-state p-dim" });
  const bar = tag("div", { class: "fs-bar" }, tag("b", {}, "scopes"), search, count, state);
  const find = (text) => {
    search.value = text;
    layOut();
  };
  search.oninput = () => layOut();
  search.onkeydown = (event) => {
    if (event.key === "Escape") find("");
    if (event.key === "ArrowDown" || event.key === "Enter") {
      event.preventDefault();
      list.element.focus();
    }
  };

  // The tree.
  const list = virtualRows(ROW, drawRow);
  Object.entries({ tabindex: "0", role: "tree", "aria-label": "scopes and variables", class: "fw-rows fs-tree" }).forEach(([key, value]) => list.element.setAttribute(key, value));

  function layOut() {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const fits = (name) => words.every((word) => name.toLowerCase().includes(word));
    let [all, shown] = [0, 0];
    const rows = [];
    const walk = (scope, path, depth, few) => {
      all += scope.names.length;
      const names = words.length ? scope.names.filter(fits) : scope.names;
      shown += names.length;
      const head = { path, title: scope.title, size: names.length, depth, open: words.length ? true : (folds.get(path) ?? few) };
      const at = rows.push(head);
      if (head.open) for (const name of names) rows.push({ key: `${path}|${name}`, name, depth: depth + 1 });
      const before = shown;
      scope.kids.forEach((kid, i) => {
        const inner = path ? `${path}.${i}` : String(i);
        if (head.open) walk(kid, inner, depth + 1, scope.kids.length <= 3);
        else tally(kid);
      });
      if (words.length && !names.length && shown === before) rows.splice(at - 1);
    };
    const tally = (scope) => {
      all += scope.names.length;
      shown += scope.names.length;
      scope.kids.forEach(tally);
    };
    const outline = model.get("outline");
    if (outline.names) walk(outline, "", 0, true);
    items = rows;
    active = Math.min(active, Math.max(items.length - 1, 0));
    count.textContent = words.length ? `${shown.toLocaleString("en")} of ${all.toLocaleString("en")}` : `${all.toLocaleString("en")} variable${all === 1 ? "" : "s"}`;
    empty.hidden = items.length > 0 && all > 0;
    empty.textContent = words.length && all ? "No match." : "No values yet: run a program.";
    list.element.style.setProperty("--tall", Math.max(4, Math.min(items.length + 1, 16)) * ROW + "px");
    list.show(items.length);
    see();
  }

  function drawRow(index) {
    const item = items[index];
    const chosen = model.get("picked_names");
    const id = `fs-${index}`;
    if (!item.key) {
      const fold = tag("span", { class: "fs-fold", "aria-hidden": "true" }, item.open ? "▾" : "▸");
      const words = `${item.size.toLocaleString("en")} variable${item.size === 1 ? "" : "s"}`;
      const row = tag("div", { class: "fs-row fs-scope", role: "treeitem", id, "aria-level": item.depth + 1, "aria-expanded": String(item.open) }, fold, tag("b", {}, item.title), tag("span", { class: "p-dim" }, words));
      row.style.setProperty("--depth", item.depth);
      row.classList.toggle("fs-active", index === active);
      row.onclick = () => (point(index), turn(item));
      return row;
    }
    const facts = known.get(item.key) || {};
    const row = tag(
      "div",
      { class: "fs-row fs-var", role: "treeitem", id, "aria-level": item.depth + 1, title: item.name, "data-key": item.key },
      tag("span", { class: "fs-name" }, item.name),
      tag("span", { class: "fs-facts", title: facts.where ? `${facts.facts} on ${facts.where}` : "" }, facts.facts || "", facts.where ? tag("i", {}, placeText(facts.where)) : null),
      tag("span", { class: "fs-spark" }, facts.line && facts.line.length > 1 ? sparkLine(facts.line) : null),
      tag("span", { class: "fs-histogram" }, facts.histogram && facts.histogram.length ? histogramBars(facts.histogram) : null),
      tag("span", { class: "fs-statistics" + (facts.warn ? " p-warn" : "") }, facts.statistics ? (facts.about ? "≈ " : "") + facts.statistics : ""),
    );
    row.style.setProperty("--depth", item.depth);
    row.classList.toggle("fs-active", index === active);
    row.classList.toggle("fs-new", Boolean(facts.changed));
    row.classList.toggle("fs-picked", (chosen.names || []).includes(item.name));
    row.classList.toggle("fs-open", model.get("opened").key === item.key);
    row.setAttribute("aria-selected", String(model.get("opened").key === item.key));
    if (facts.changed) row.setAttribute("aria-description", "changed");
    row.onclick = () => (point(index), call("open", { key: item.key }));
    return row;
  }

  function turn(item) {
    if (search.value) return;
    folds.set(item.path, !item.open);
    layOut();
  }

  function point(index) {
    active = Math.max(0, Math.min(index, items.length - 1));
    list.element.setAttribute("aria-activedescendant", `fs-${active}`);
    list.reveal(active);
    list.redraw();
  }

  list.element.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const page = Math.max(1, Math.floor(list.element.clientHeight / ROW) - 1);
    const item = items[active];
    const moves = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -items.length, End: items.length };
    if (event.key in moves) point(active + moves[event.key]);
    else if (event.key === "Enter" || event.key === " ") item && (item.key ? call("open", { key: item.key }) : turn(item));
    else if (event.key === "ArrowRight" && item && !item.key && !item.open) turn(item);
    else if (event.key === "ArrowLeft" && item && !item.key && item.open) turn(item);
    else if (event.key === "ArrowLeft" && item) point(items.findLastIndex((other, i) => i < active && other.depth < item.depth));
    else return;
    event.preventDefault();
  });

  /** Request the rows in view, when they changed. */
  function see() {
    const first = Math.max(0, Math.floor(list.element.scrollTop / ROW) - 2);
    const last = Math.ceil((list.element.scrollTop + (list.element.clientHeight || 360)) / ROW) + 2;
    const keys = items.slice(first, last).flatMap((item) => item.key || []);
    if (JSON.stringify(keys) === requested) return;
    requested = JSON.stringify(keys);
    call("see", { keys });
  }
  let later = 0;
  list.element.addEventListener("scroll", () => {
    clearTimeout(later);
    later = setTimeout(see, 40);
  });

  // The foot.
  const empty = tag("div", { class: "fs-empty p-dim" });
  const growth = plot("bytes", 76);
  const words = tag("span", { class: "p-dim" });
  const foot = tag("details", { class: "fs-growth" }, tag("summary", {}, tag("b", {}, "growth "), words), growth.element);
  const detail = tensorPane(model, call);
  const main = tag("div", { class: "fs-main" }, tag("div", { class: "fs-left" }, list.element, empty), detail.element);
  frame.body.append(bar, main, foot);

  const rows = () => {
    for (const [key, row] of Object.entries(model.get("rows").rows || {})) known.set(key, row);
    list.redraw();
  };
  const opened = () => {
    const opened = model.get("opened");
    main.classList.toggle("fs-split", Boolean(opened.key));
    detail.show(opened);
    list.redraw();
  };
  const picked = () => {
    const { names = [], all } = model.get("picked_names");
    if (all && !(model.get("opened").name === names[0])) {
      if (!items.some((item) => item.name === names[0]) && search.value) find("");
      const at = items.findIndex((item) => item.name === names[0]);
      if (at >= 0) active = at;
      if (at >= 0) list.reveal(at);
    }
    list.redraw();
  };
  const drawState = () => {
    state.textContent = model.get("state");
    const { bytes = [], words: text = "" } = model.get("growth");
    words.textContent = text;
    if (bytes.length) growth.show([{ name: "bytes", points: bytes, kind: "p-forward" }], { text: bytesText, zero: true });
  };
  const observers = { outline: layOut, rows, opened, picked_names: picked, state: drawState, growth: drawState };
  for (const [name, update] of Object.entries(observers)) model.on(`change:${name}`, update);
  rows();
  layOut();
  opened();
  picked();
  drawState();
  return () => {
    dispose();
    frame.dispose();
    for (const [name, update] of Object.entries(observers)) model.off(`change:${name}`, update);
  };
}

/** One tensor: facts, pictures, its history, and its elements page by page. Gives { element, show(opened) }. */
function tensorPane(model, call) {
  const element = tag("section", { class: "fs-detail", "aria-label": "the opened tensor", hidden: true });
  const name = tag("b", { class: "fs-title" });
  const shut = tag("button", { title: "close (Esc)", "aria-label": "close", onclick: () => call("shut") }, "×");
  const facts = tag("div", { class: "fs-about" });
  const lod = tag("div", { class: "fs-lod" });
  const parts = tag("label", { class: "fs-parts" });
  const bars = tag("div", { class: "fs-figure" });
  const history = plot("mean and deviation", 96);
  const trend = tag("div", { class: "fs-figure fs-way" }, tag("div", { class: "p-dim" }, "mean ± deviation"), history.element);
  const pictures = tag("div", { class: "fs-pictures" });
  const axes = tag("div", { class: "fs-axes" });
  const grid = valueGrid((row, column, rows, columns) => look({ row, column, rows, columns }));
  element.append(tag("div", { class: "fs-head" }, name, shut), facts, lod, parts, tag("div", { class: "fs-figures" }, bars, trend, pictures), axes, grid.element);
  let now = {};
  let drawnAxes = "";

  function look(change) {
    const size = grid.visibleSize();
    call("view", { axes: now.axes || null, at: now.at || [], row: 0, column: 0, ...size, ...change });
  }

  function drawAxes() {
    const key = JSON.stringify([now.key, now.part, now.shape, now.axes]);
    if (key === drawnAxes) return;
    drawnAxes = key;
    const shape = now.shape || [];
    if (shape.length < 2) return axes.replaceChildren();
    const select = (which) => {
      const options = shape.map((n, axis) => tag("option", { value: axis, selected: now.axes[which] === axis }, `axis ${axis} (${n.toLocaleString("en")})`));
      const box = tag("select", {}, ...options);
      box.onchange = () => {
        const chosen = [...now.axes];
        const axis = Number(box.value);
        if (chosen[1 - which] === axis) chosen[1 - which] = chosen[which];
        chosen[which] = axis;
        look({ axes: chosen });
      };
      return tag("label", {}, which ? "columns " : "rows ", box);
    };
    const others = shape.flatMap((n, axis) => {
      if (now.axes.includes(axis) || n < 2) return [];
      const slide = tag("input", { type: "range", min: 0, max: n - 1, value: now.at[axis], "aria-label": `axis ${axis}` });
      const number = tag("input", { type: "number", min: 0, max: n - 1, value: now.at[axis], "aria-label": `index of axis ${axis}` });
      const go = (value) => {
        slide.value = number.value = value;
        const at = [...now.at];
        at[axis] = Number(value);
        now = { ...now, at };
        look({ at, row: now.row, column: now.column });
      };
      slide.oninput = () => go(slide.value);
      number.onchange = () => go(number.value);
      return [tag("label", { class: "fs-slice" }, `axis ${axis} at `, number, slide, tag("span", { class: "p-dim" }, ` of ${n.toLocaleString("en")}`))];
    });
    axes.replaceChildren(select(0), select(1), ...others);
  }

  function drawPictures() {
    const figures = Object.entries(now.pictures || {}).map(([what, { url, size, range }]) => {
      const [rows, columns] = what === "plane" ? now.size : size;
      const scale = Math.min(12, 120 / rows, 240 / columns);
      const image = tag("img", { src: url, alt: `${what}, ${rows} by ${columns}, ${shortText(range[0])} to ${shortText(range[1])}` });
      image.style.width = Math.max(columns * scale, 40) + "px"; // a plane with very long sides is drawn wider
      image.style.height = Math.max(rows * scale, 24) + "px";
      const box = tag("div", { class: "fs-picture" }, image);
      if (what === "plane") {
        box.title = "click to go there";
        box.onclick = (event) => {
          const spot = image.getBoundingClientRect();
          grid.go(Math.floor(((event.clientY - spot.top) / spot.height) * rows), Math.floor(((event.clientX - spot.left) / spot.width) * columns));
        };
        const mark = tag("div", { class: "fs-window" });
        const seen = [now.row / rows, now.column / columns, (now.cells.length || 1) / rows, (now.cells[0] || [0]).length / columns];
        ["top", "left", "height", "width"].forEach((side, i) => (mark.style[side] = 100 * seen[i] + "%"));
        if (seen[2] < 1 || seen[3] < 1) box.append(mark);
      }
      return tag("div", { class: "fs-figure" }, tag("div", { class: "p-dim" }, what === "plane" ? "heat map" : "image"), box);
    });
    pictures.replaceChildren(...figures);
  }

  return {
    element,
    show(opened) {
      element.hidden = !opened.key;
      if (!opened.key) return;
      const fresh = opened.key !== now.key || opened.part !== now.part;
      now = opened;
      name.textContent = opened.part >= 0 ? `${opened.name} [${opened.part}]` : opened.name;
      element.classList.toggle("fs-gone", opened.gone);
      const text = [opened.gone ? "removed" : opened.facts, opened.bytes, opened.scope, opened.where].filter(Boolean).join("  ·  ");
      facts.replaceChildren(tag("div", { class: "p-dim" }, text), tag("div", { class: "fs-numbers" + (opened.warn ? " p-warn" : "") + (opened.changed ? " fs-new" : "") }, opened.statistics || ""));
      lod.innerHTML = opened.lod || ""; // boxes that the kernel drew of numbers
      lod.hidden = !opened.lod;
      if (fresh) {
        const box = tag("input", { type: "number", min: 0, max: opened.parts - 1, value: Math.max(opened.part, 0) });
        box.onchange = () => call("open", { key: opened.key, part: Number(box.value) });
        parts.replaceChildren("part ", box, tag("span", { class: "p-dim" }, ` of ${opened.parts}`));
      }
      parts.hidden = !opened.parts;
      const counts = opened.histogram || [];
      bars.hidden = !counts.length;
      if (counts.length) {
        const ends = tag("div", { class: "fs-ends p-dim" }, tag("span", {}, shortText(opened.range[0])), tag("span", {}, shortText(opened.range[1])));
        bars.replaceChildren(tag("div", { class: "p-dim" }, "histogram"), histogramBars(counts, 160, 72), ends);
      }
      const track = opened.history || [];
      trend.hidden = !track.length;
      const band = track.filter((p) => p[1] !== null).map(([x, mean, std]) => [x, mean - std, mean + std]);
      if (track.length) history.show([{ name: "mean", points: track.map((p) => [p[0], p[1] ?? NaN]), kind: "p-forward" }], { band });
      drawPictures();
      drawAxes();
      grid.show(opened, fresh);
      if (fresh && opened.cells) look({ row: 0, column: 0 });
    },
  };
}

/** The elements of a plane of any size, of which only those in view exist. */
function valueGrid(want) {
  const pane = tag("table", { class: "fs-cells" });
  const inner = tag("div", { class: "fs-grid-all" }, pane);
  const element = tag("div", { class: "fs-grid", tabindex: "0", role: "region", "aria-label": "elements" }, inner);
  let [height, width] = [0, 0];
  let opened = {};
  let before = new Map();
  let texts = new Map();
  let [row, column] = [0, 0];
  let waiting = false;

  const visibleSize = () => ({
    rows: Math.max(4, Math.floor((element.clientHeight || 300) / CELL.height)),
    columns: Math.max(2, Math.ceil(((element.clientWidth || 600) - CELL.head) / CELL.width) + 1),
  });
  const tall = () => Math.min((height + 1) * CELL.height, TALLEST);
  const spot = () => {
    const { rows, columns } = visibleSize();
    const most = Math.max(tall() - element.clientHeight, 1);
    const down = Math.max(height - rows + 2, 0);
    const at = tall() < TALLEST ? Math.round(element.scrollTop / CELL.height) : Math.round((element.scrollTop / most) * down);
    return [Math.min(at, Math.max(height - 1, 0)), Math.min(Math.round(element.scrollLeft / CELL.width), Math.max(width - columns + 2, 0))];
  };

  function paint() {
    waiting = false;
    const { rows, columns } = visibleSize();
    const heads = [];
    for (let c = column; c < Math.min(width, column + columns); c++) heads.push(tag("th", { scope: "col" }, opened.wraps ? `+${c}` : String(c)));
    const lines = [tag("tr", {}, tag("td", { class: "fs-corner" }), ...heads)];
    const far = Math.max(...(opened.range || []).map((v) => Math.abs(v ?? 0)), 1e-30);
    for (let r = row; r < Math.min(height, row + rows); r++) {
      const line = tag("tr", {}, tag("th", { scope: "row" }, String(opened.wraps ? r * 10 : r)));
      for (let c = column; c < Math.min(width, column + columns); c++) {
        const text = texts.get(r * width + c);
        const cell = tag("td", {}, text ?? "");
        const value = Number(text);
        if (text !== undefined && Number.isFinite(value)) {
          cell.style.setProperty("--share", `${Math.round(34 * Math.min(1, Math.abs(value) / far))}%`);
          cell.classList.add(value < 0 ? "fs-below" : "fs-above");
        } else if (text !== undefined && text !== "") cell.classList.add("p-warn");
        const old = before.get(r * width + c);
        if (old !== undefined && text !== undefined && old !== text) cell.classList.add("fs-new");
        line.append(cell);
      }
      lines.push(line);
    }
    pane.replaceChildren(tag("tbody", {}, ...lines));
  }

  element.addEventListener("scroll", () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      const [r, c] = spot();
      waiting = false;
      if (r === row && c === column) return;
      [row, column] = [r, c];
      paint();
      want(row, column, visibleSize().rows, visibleSize().columns);
    });
  });
  new ResizeObserver(() => opened.cells && requestAnimationFrame(paint)).observe(element);

  return {
    element,
    visibleSize,
    go(r, c) {
      const most = tall() - element.clientHeight;
      element.scrollTop = tall() < TALLEST ? r * CELL.height : (r / Math.max(height - visibleSize().rows + 2, 1)) * most;
      element.scrollLeft = c * CELL.width;
    },
    show(value, fresh) {
      element.hidden = !value.cells;
      if (!value.cells) return;
      const same = JSON.stringify([value.key, value.part, value.axes, value.at, value.size]) === JSON.stringify([opened.key, opened.part, opened.axes, opened.at, opened.size]);
      if (value.update !== opened.update || !same) [before, texts] = [same ? texts : new Map(), new Map()];
      opened = value;
      [height, width] = value.size;
      inner.style.height = tall() + "px";
      inner.style.width = CELL.head + width * CELL.width + "px";
      element.style.height = Math.min(height + 1.8, 15) * CELL.height + "px";
      if (fresh || !same) element.scrollTo(0, 0);
      if (fresh || !same) [row, column] = [0, 0];
      value.cells.forEach((line, i) => line.forEach((text, j) => texts.set((value.row + i) * width + value.column + j, text)));
      paint();
    },
  };
}

export default { render };
