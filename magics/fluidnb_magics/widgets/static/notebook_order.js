// Reports the ids of the notebook's cells, in order, whenever cells are added, removed or moved; draws nothing.

async function initialize({ model }) {
  // The widget manager of JupyterLab and Notebook 7 belongs to one notebook; other front ends have none.
  const context = model.widget_manager?.context;
  await context?.ready;
  const cells = context?.model?.cells;
  if (!cells?.changed) return undefined;
  const report = () => ask(model, "order", { ids: Array.from(cells, (cell) => cell.id) });
  cells.changed.connect(report);
  report();
  return () => cells.changed.disconnect(report);
}

export default { initialize };
