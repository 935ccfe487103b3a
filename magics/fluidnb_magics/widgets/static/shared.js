// What all widgets share. Each widget's own file follows in the same module and exports `{ render }`.

/** Make an element: `tag("button", { class: "x", onclick: f }, "text", otherElement)`; text never becomes markup. */
function tag(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === "function") element[key] = value;
    else if (value === true) element.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(key, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

/** Pieces of text with styles, as the pictures make them: [[text, style], ...]. */
function pieces(line) {
  return line.map(([text, style]) => (style ? tag("span", { class: "p-" + style }, text) : document.createTextNode(text)));
}

/** Ask the kernel to do something: calls `do_<name>` of the widget's Python class. A kernel that is gone is not asked. */
function ask(model, name, more = {}) {
  try {
    model.send({ do: name, ...more });
  } catch (gone) {
    console.debug("fluidnb:", gone); // the frame says that the kernel is gone
  }
}

/**
 * The frame of a widget: an element whose keys stay in it, a bar for sentences, and a mark when the kernel is gone.
 * `keys` maps a key, as KeyboardEvent.key, to a function; keys typed into inputs are left to them.
 * Gives { root, body, say, dispose }.
 */
function framed(model, el, name, keys = {}) {
  const bar = tag("div", { class: "fw-problem", role: "status", "aria-live": "polite", hidden: true });
  const body = tag("div", { class: "fw-body" });
  const root = tag("div", { class: `fluidnb-widget fw-${name}`, tabindex: "0", "data-lm-suppress-shortcuts": "true" }, body, bar);
  // The static face beside the widget is for when there is no widget; it leaves no gap where the front end is JupyterLab.
  const still = `[data-fluidnb-face="${model.get("face_id")}"]`;
  root.prepend(tag("style", {}, `${still}, .jp-OutputArea-child:has(${still}) { display: none; }`));
  const say = (sentence) => {
    bar.textContent = sentence;
    bar.hidden = !sentence;
  };
  root.addEventListener("keydown", (event) => {
    event.stopPropagation(); // JupyterLab's own shortcuts
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest("input, select, textarea, [contenteditable]")) return;
    const act = keys[event.key];
    if (act) {
      event.preventDefault();
      act(event);
    }
  });
  const hear = (message) => {
    if ("problem" in message) say(message.problem);
  };
  // What a render function gets of the model does not say whether its kernel is there; the widget manager's does.
  const look = async () => {
    const own = await model.widget_manager?.get_model?.(model.get("face_id"))?.catch(() => null);
    const dead = own?.comm_live === false;
    root.classList.toggle("fw-dead", dead);
    if (dead) say("The kernel is gone; its last state is shown.");
    // what needs no kernel says so with data-local
    root.querySelectorAll(":is(button, input, select):not([data-local])").forEach((control) => (control.disabled ||= dead));
  };
  model.on("msg:custom", hear);
  model.on("comm_live_update", look);
  el.append(root);
  look();
  return {
    root,
    body,
    say,
    dispose() {
      model.off("msg:custom", hear);
      model.off("comm_live_update", look);
    },
  };
}

/**
 * A list of any length of which only the rows in view exist. `draw(index)` makes the element of a row; all are `height`
 * pixels high. Gives { element, show(count), redraw(), reveal(index) }.
 */
function virtualRows(height, draw) {
  const inner = tag("div", { class: "fw-rows-all" });
  const element = tag("div", { class: "fw-rows" }, inner);
  let count = 0;
  let drawn = new Map();
  let waiting = false;
  const paint = () => {
    waiting = false;
    const first = Math.max(0, Math.floor(element.scrollTop / height) - 8);
    const last = Math.min(count, Math.ceil((element.scrollTop + (element.clientHeight || 400)) / height) + 8);
    for (const [index, row] of drawn)
      if (index < first || index >= last) {
        row.remove();
        drawn.delete(index);
      }
    for (let index = first; index < last; index++) {
      if (drawn.has(index)) continue;
      const row = draw(index);
      row.style.position = "absolute";
      row.style.top = index * height + "px";
      row.style.height = height + "px";
      drawn.set(index, row);
      inner.append(row);
    }
  };
  const soon = () => {
    if (!waiting) {
      waiting = true;
      requestAnimationFrame(paint);
    }
  };
  element.addEventListener("scroll", soon, { passive: true });
  new ResizeObserver(soon).observe(element);
  const redraw = () => {
    drawn.forEach((row) => row.remove());
    drawn = new Map();
    paint();
  };
  return {
    element,
    redraw,
    show(rows) {
      count = rows;
      inner.style.height = rows * height + "px";
      redraw();
    },
    reveal(index) {
      const top = index * height;
      if (top < element.scrollTop || top + height > element.scrollTop + element.clientHeight)
        element.scrollTop = Math.max(0, top - element.clientHeight / 3);
      soon();
    },
  };
}
