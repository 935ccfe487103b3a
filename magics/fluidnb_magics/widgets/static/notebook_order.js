// Reports the ids of the notebook's cells, in order, whenever cells come, go or move. It draws nothing.

function ids(cells) {
  const found = [];
  for (const cell of cells) found.push(cell.id);
  return found;
}

async function initialize({ model }) {
  // The widget manager of JupyterLab and Notebook 7 belongs to one notebook; other front ends have none that we know.
  const context = model.widget_manager?.context;
  await context?.ready;
  const cells = context?.model?.cells;
  if (!cells?.changed) return undefined;
  const report = () => ask(model, "order", { ids: ids(cells) });
  cells.changed.connect(report);
  report();
  return () => cells.changed.disconnect(report);
}

export default { initialize };
