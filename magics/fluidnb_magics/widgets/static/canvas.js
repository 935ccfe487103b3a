// A canvas that zooms and pans: with the wheel once it has the focus, by dragging, and with keys.

const ROLES = { forward: "#3b82f6", backward: "#e5484d", optimizer: "#30a46c" };

/**
 * Make one. `draw(ctx, view, box)` draws `view` ([x0, x1, y0, y1] of the whole, which is 0 to 1) into `box`
 * ({ left, top, width, height } in pixels); `at(x, y)` gives the object under a pixel, `tip(it)` lines about it, `pick(it)`
 * is called when it is clicked, `next(it, by)` gives the one beside it for keys. `flat` keeps the second axis whole.
 * Gives { element, redraw(), fit(), show(x0, x1), view, zoom(factor) }.
 */
function zoomCanvas({ label, height, margin, flat = false, draw, at, tip, pick, next, moved = () => {} }) {
  const canvas = tag("canvas", { class: "fc-canvas", tabindex: "0", role: "application", "aria-label": label });
  const bubble = tag("div", { class: "fc-tip", hidden: true, role: "tooltip" });
  const live = tag("div", { class: "fc-status", "aria-live": "polite" });
  const element = tag("div", { class: "fc-zoom" }, canvas, bubble, live);
  canvas.style.height = height + "px";
  const view = [0, 1, 0, 1];
  let waiting = false;
  let over = null;

  const box = () => ({
    left: margin.left,
    top: margin.top,
    width: Math.max(canvas.clientWidth - margin.left - margin.right, 1),
    height: Math.max(canvas.clientHeight - margin.top - margin.bottom, 1),
  });
  const paint = () => {
    waiting = false;
    const scale = window.devicePixelRatio || 1;
    const [wide, high] = [canvas.clientWidth, canvas.clientHeight];
    if (!wide) return;
    canvas.width = wide * scale;
    canvas.height = high * scale;
    const ctx = canvas.getContext("2d");
    ctx.scale(scale, scale);
    const style = getComputedStyle(element);
    ctx.font = `11px ${style.getPropertyValue("--fw-mono") || "monospace"}`;
    ctx.ink = style.color;
    draw(ctx, view, box(), over);
  };
  const redraw = () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(paint);
  };
  /** Keep a pair inside 0 to 1 without changing how much it shows. */
  const inside = (i) => {
    const size = Math.min(1, Math.max(view[i + 1] - view[i], 1e-7));
    view[i] = Math.max(0, Math.min(view[i], 1 - size));
    view[i + 1] = view[i] + size;
  };
  const turn = () => {
    inside(0);
    inside(2);
    redraw();
    moved(view);
  };
  const zoomAt = (factor, x, y, both = true) => {
    const scale = (i, to) => {
      const spot = view[i] + (view[i + 1] - view[i]) * to;
      view[i] = spot - (spot - view[i]) * factor;
      view[i + 1] = spot + (view[i + 1] - spot) * factor;
    };
    if (both !== "y") scale(0, x);
    if (!flat && both) scale(2, y);
    turn();
  };
  const pan = (x, y) => {
    const [wide, high] = [view[1] - view[0], view[3] - view[2]];
    view[0] += x * wide;
    view[1] = view[0] + wide;
    view[2] += y * high;
    view[3] = view[2] + high;
    turn();
  };
  const fit = () => {
    view.splice(0, 4, 0, 1, 0, 1);
    turn();
  };
  const point = (it, x, y) => {
    if (it !== over) {
      over = it;
      redraw();
    }
    bubble.hidden = !it;
    canvas.style.cursor = it ? "pointer" : "grab";
    if (!it) return;
    bubble.replaceChildren(...tip(it).map((line, i) => tag("div", { class: i ? "p-dim" : "p-bold" }, line)));
    bubble.style.left = Math.max(4, Math.min(x + 14, element.clientWidth - bubble.offsetWidth - 4)) + "px";
    bubble.style.top = (y + 16 + bubble.offsetHeight > element.clientHeight ? Math.max(0, y - bubble.offsetHeight - 8) : y + 16) + "px";
  };

  let grip = null;
  let dragged = false;
  canvas.addEventListener("pointerdown", (event) => {
    grip = [event.offsetX, event.offsetY];
    dragged = false;
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!grip) return point(at(event.offsetX, event.offsetY, view, box()), event.offsetX, event.offsetY);
    const [x, y] = [event.offsetX - grip[0], event.offsetY - grip[1]];
    if (!dragged && Math.abs(x) + Math.abs(y) < 4) return;
    dragged = true;
    grip = [event.offsetX, event.offsetY];
    const { width, height: high } = box();
    pan(-x / width, flat ? 0 : y / high);
  });
  canvas.addEventListener("pointerup", (event) => {
    const it = dragged ? null : at(event.offsetX, event.offsetY, view, box());
    grip = null;
    if (it) pick(it);
  });
  canvas.addEventListener("pointerleave", () => grip || point(null));
  canvas.addEventListener("dblclick", fit);
  canvas.addEventListener(
    "wheel",
    (event) => {
      if (document.activeElement !== canvas && !event.ctrlKey) return; // the notebook scrolls
      event.preventDefault();
      const { left, top, width, height: high } = box();
      const factor = Math.exp(Math.max(-60, Math.min(60, event.deltaY || event.deltaX)) * 0.005);
      zoomAt(factor, (event.offsetX - left) / width, 1 - (event.offsetY - top) / high, event.shiftKey ? "y" : true);
    },
    { passive: false },
  );
  canvas.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const acts = {
      "+": () => zoomAt(0.7, 0.5, 0.5), "=": () => zoomAt(0.7, 0.5, 0.5), "-": () => zoomAt(1 / 0.7, 0.5, 0.5), 0: fit,
      ArrowLeft: () => pan(-0.15, 0), ArrowRight: () => pan(0.15, 0),
      ArrowUp: () => pan(0, flat ? 0 : 0.15), ArrowDown: () => pan(0, flat ? 0 : -0.15),
      Home: () => pan(-1e9, 0), End: () => pan(1e9, 0),
      ".": () => beside(1), ",": () => beside(-1), Enter: () => over && pick(over),
    };
    if (!(event.key in acts)) return;
    event.preventDefault();
    acts[event.key]();
  });
  const beside = (by) => {
    over = next(over, by);
    live.textContent = over ? tip(over).join(", ") : "";
    bubble.hidden = true;
    redraw();
  };
  new ResizeObserver(redraw).observe(canvas);
  const theme = new MutationObserver(redraw);
  theme.observe(document.body, { attributes: true });

  return {
    element,
    view,
    redraw,
    fit,
    zoom: (factor) => zoomAt(factor, 0.5, 0.5),
    show(x0, x1) {
      if (x0 >= view[0] && x1 <= view[1]) return redraw();
      const size = Math.max(x1 - x0, view[1] - view[0]);
      view[0] = (x0 + x1) / 2 - size / 2;
      view[1] = view[0] + size;
      turn();
    },
    dispose: () => theme.disconnect(),
  };
}

/** The buttons of a canvas. */
function zoomButtons(canvas) {
  return tag(
    "span",
    { class: "fc-buttons", role: "group", "aria-label": "zoom" },
    tag("button", { "data-local": true, title: "zoom in (+)", "aria-label": "zoom in", onclick: () => canvas.zoom(0.6) }, "+"),
    tag("button", { "data-local": true, title: "zoom out (-)", "aria-label": "zoom out", onclick: () => canvas.zoom(1 / 0.6) }, "−"),
    tag("button", { "data-local": true, title: "fit (0)", onclick: () => canvas.fit() }, "fit"),
  );
}

/** A text inside a box, cut to its width; nothing where it is too narrow. */
function fitText(ctx, text, x, y, width) {
  const length = Math.floor(width / 6.7);
  if (length < 3) return;
  ctx.fillText(text.length <= length ? text : text.slice(0, length - 1) + "…", x, y);
}

/**
 * A table whose columns sort: columns are { title, text(row), number(row), wide }; `draw` may add to a row's element.
 * Gives { element, show(rows), redraw(), reveal(row) }.
 */
function sortedTable({ label, columns, height, pick, draw = () => {}, by = 1 }) {
  let rows = [];
  let [column, down] = [by, true];
  let active = 0;
  const head = tag("div", { class: "fc-table-head", role: "row" });
  const list = virtualRows(22, (index) => {
    const row = rows[index];
    const cells = columns.map((one) => tag("span", { role: "cell", class: one.class || "" }, one.text(row)));
    const element = tag("div", { class: "fc-table-row", role: "row", title: columns[0].text(row) }, ...cells);
    element.classList.toggle("fc-active", index === active);
    element.onclick = () => ((active = index), pick(row), list.redraw());
    draw(element, row);
    return element;
  });
  const element = tag("div", { class: "fc-table", role: "table", "aria-label": label }, head, list.element);
  element.style.setProperty("--columns", columns.map((one) => one.wide || "max-content").join(" "));
  list.element.tabIndex = 0;
  list.element.setAttribute("role", "rowgroup");
  list.element.firstChild.setAttribute("role", "presentation");
  list.element.style.height = height + "px";
  list.element.addEventListener("keydown", (event) => {
    const moves = { ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8, Home: -rows.length, End: rows.length };
    if (event.key in moves) {
      active = Math.max(0, Math.min(active + moves[event.key], rows.length - 1));
      list.reveal(active);
      list.redraw();
    } else if (event.key === "Enter" && rows[active]) pick(rows[active]);
    else return;
    event.preventDefault();
  });
  const sort = () => {
    const one = columns[column];
    const value = one.number || one.text;
    const compare = (a, b) => (value(a) < value(b) ? -1 : value(a) > value(b) ? 1 : 0);
    rows.sort((a, b) => (down ? compare(b, a) : compare(a, b)));
    head.replaceChildren(
      ...columns.map((each, i) => {
        const mark = i === column ? (down ? " ▾" : " ▴") : "";
        const button = tag("button", { "data-local": true, onclick: () => ((down = i === column ? !down : Boolean(each.number)), (column = i), sort()) }, each.title + mark);
        return tag("span", { role: "columnheader", class: each.class || "", "aria-sort": i === column ? (down ? "descending" : "ascending") : "none" }, button);
      }),
    );
    list.show(rows.length);
  };
  return {
    element,
    redraw: list.redraw,
    reveal(fits) {
      const at = rows.findIndex(fits);
      if (at >= 0) {
        active = at;
        list.reveal(at);
      }
      list.redraw();
    },
    show(all) {
      rows = [...all];
      active = Math.min(active, Math.max(rows.length - 1, 0));
      sort();
    },
  };
}
