// Shared by all widgets. Each widget's own file follows in the same module and exports `{ render }`.

/** Characters that act on a terminal or reorder a line, as fluidnb.utils.escapes has them. */
const ACTING = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff]/gu;

/** A text in which these characters are Python's escapes; names may come from a file of unknown origin. */
function visible(text) {
  return text.replace(ACTING, (sign) => {
    const code = sign.codePointAt(0).toString(16);
    return sign === "\r" ? "\\r" : code.length > 2 ? "\\u" + code.padStart(4, "0") : "\\x" + code.padStart(2, "0");
  });
}

/** Attributes that are read as text. */
const READ = new Set(["title", "aria-label", "alt"]);

/** Make an element: `tag("button", { class: "x", onclick: f }, "text", otherElement)`; text never becomes markup. */
function tag(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === "function") element[key] = value;
    else if (value === true) element.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(key, READ.has(key) ? visible(String(value)) : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined).map((child) => (typeof child === "string" ? visible(child) : child)));
  return element;
}

/** Pieces of text with styles, as the pictures make them: [[text, style], ...]. */
function pieces(line) {
  return line.map(([text, style]) => (style ? tag("span", { class: "p-" + style }, text) : document.createTextNode(visible(text))));
}

/** A request to the kernel: calls `do_<name>` of the widget's Python class; without a kernel nothing happens. */
function ask(model, name, more = {}) {
  try {
    model.send({ do: name, ...more });
  } catch (gone) {
    console.debug("fluidnb:", gone); // the frame shows that the kernel is not running
  }
}

/**
 * Keep the keyboard focus inside an element when what has it is drawn anew: it goes to the control of the same kind with
 * the same label, else to the one in its place.
 */
function keepFocus(root) {
  const label = (control) => control.getAttribute("aria-label") ?? control.getAttribute("title") ?? control.textContent;
  const alike = (control) => [...root.querySelectorAll(control.localName + (control.classList[0] ? "." + CSS.escape(control.classList[0]) : ""))];
  let held = null;
  root.addEventListener("focusin", ({ target }) => (held = { target, label: label(target), like: alike(target) }));
  root.addEventListener("focusout", ({ target }) => setTimeout(() => target === held?.target && target.isConnected && (held = null)));
  const watcher = new MutationObserver(() => {
    const { activeElement } = root.getRootNode();
    if (!held || held.target.isConnected || !root.isConnected || (activeElement && activeElement !== document.body)) return;
    const now = alike(held.target);
    const place = Math.min(held.like.indexOf(held.target), now.length - 1);
    (now.find((control) => label(control) === held.label) ?? now[place] ?? root).focus({ preventScroll: true });
  });
  watcher.observe(root, { childList: true, subtree: true });
  return watcher;
}

/**
 * The frame of a widget: an element whose keys stay in it, a bar for messages, and a mark without a kernel.
 * `keys` maps a key, as KeyboardEvent.key, to a function; keys typed into inputs are not handled.
 * Gives { root, body, say, dispose }.
 */
function framed(model, el, name, keys = {}) {
  const bar = tag("div", { class: "fw-problem", role: "status", "aria-live": "polite", hidden: true });
  const body = tag("div", { class: "fw-body" });
  const root = tag("div", { class: `fluidnb-widget fw-${name}`, tabindex: "0", "data-lm-suppress-shortcuts": "true" }, body, bar);
  // The static rendering beside the widget is hidden; in JupyterLab without a gap.
  const rendering = `[data-fluidnb-static="${model.get("widget_id")}"]`;
  root.prepend(tag("style", {}, `${rendering}, .jp-OutputArea-child:has(${rendering}) { display: none; }`));
  const say = (sentence) => {
    bar.textContent = visible(sentence);
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
  const onMessage = (message) => {
    if ("problem" in message) say(message.problem);
  };
  // The model of a render function does not show whether its kernel runs; that of the widget manager does.
  const checkKernel = async () => {
    const own = await model.widget_manager?.get_model?.(model.get("widget_id"))?.catch(() => null);
    const dead = own?.comm_live === false;
    root.classList.toggle("fw-dead", dead);
    if (dead) say("The kernel is not running; the last state is shown.");
    // controls that need no kernel have data-local
    root.querySelectorAll(":is(button, input, select):not([data-local])").forEach((control) => (control.disabled ||= dead));
  };
  model.on("msg:custom", onMessage);
  model.on("comm_live_update", checkKernel);
  const watcher = keepFocus(root);
  el.append(root);
  checkKernel();
  return {
    root,
    body,
    say,
    dispose() {
      watcher.disconnect();
      model.off("msg:custom", onMessage);
      model.off("comm_live_update", checkKernel);
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
