// The notebook around a widget: its cells, through the document of the widget manager that the page gives to widgets.

/** The notebook's shared document, or null where the front end has none that a widget can write to. */
function notebookOf(model) {
  const shared = model.widget_manager?.context?.model?.sharedModel;
  return typeof shared?.insertCell === "function" ? shared : null;
}

/** The index of the cell with an id, -1 without one. */
function cellIndex(notebook, id) {
  return notebook.cells.findIndex((cell) => (cell.getId ? cell.getId() : cell.id) === id);
}

/** Wait for a true value of `check()`, for some time at most; gives it, or null. */
async function eventually(check, milliseconds = 4000) {
  const end = Date.now() + milliseconds;
  while (Date.now() < end) {
    const value = check();
    if (value) return value;
    await new Promise((go) => setTimeout(go, 25));
  }
  return null;
}

/** A promise of the end of the cell's next run: true; false when it did not begin. */
function runFinished(cell, begun) {
  return new Promise((done) => {
    const changed = (_, change) => {
      if (typeof change.executionCountChange?.newValue === "number") finish(true);
    };
    const finish = (finished) => {
      cell.changed.disconnect(changed);
      done(finished);
    };
    cell.changed.connect(changed);
    begun.then((began) => began || finish(false));
  });
}

/**
 * Run a cell as the user does: put the cursor into it and press Ctrl-Enter; where that key means something else, the
 * button of the toolbar. Whether it was pressed.
 */
async function pressRun(element, index, count) {
  const root = element.closest(".jp-Notebook");
  const find = () => {
    const cells = root.querySelectorAll(".jp-Cell");
    return root.querySelector(`.jp-Cell[data-windowed-list-index="${index}"]`) ?? (cells.length === count ? cells[index] : null);
  };
  const node = root && (await eventually(find));
  if (!node) return false;
  node.scrollIntoView({ block: "nearest" });
  const editor = await eventually(() => node.querySelector(".cm-content"));
  if (!editor) return false;
  editor.focus({ preventScroll: true });
  if (!(await eventually(() => node.classList.contains("jp-mod-active")))) return false;
  const key = new KeyboardEvent("keydown", { key: "Enter", code: "Enter", keyCode: 13, ctrlKey: true, bubbles: true, cancelable: true });
  editor.dispatchEvent(key);
  if (key.defaultPrevented) return true;
  const button = document.querySelector('.jp-NotebookPanel:not(.lm-mod-hidden) [data-command^="notebook:run-cell"]');
  button?.click();
  return Boolean(button);
}
