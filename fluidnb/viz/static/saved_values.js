// Values of a saved session: pages of their elements, pictures of their planes, as the kernel makes them for the panel.

const WRAP = 10; // elements of a row of a tensor with one axis
const SIDE = 96; // rows and columns of a picture

/** The elements of a value as text, in order; those that the file has. */
function elementsOf(value) {
  value.elements ??= value.cells ? value.cells.split(" ") : [];
  return value.elements;
}

/** The indices along an axis of the elements that the file has. */
function indicesOf(value, axis) {
  return value.kept ? value.kept[axis] : Array.from({ length: value.shape[axis] }, (_, i) => i);
}

/** Whether some elements are not in the file. */
function isThinned(value) {
  return Boolean(value.kept);
}

/** The place of the index that is nearest to one. */
function nearest(indices, wanted) {
  let best = 0;
  indices.forEach((index, i) => {
    if (Math.abs(index - wanted) < Math.abs(indices[best] - wanted)) best = i;
  });
  return best;
}

/** A plane of a value: { rows, columns (their indices), axes, at, text(i, j), wraps }. */
function planeOf(value, view) {
  const elements = elementsOf(value);
  const axes = value.shape.length;
  if (axes < 2) {
    const names = axes ? indicesOf(value, 0) : [0];
    const rows = Array.from({ length: Math.ceil(elements.length / WRAP) }, (_, i) => names[i * WRAP]);
    const columns = Array.from({ length: Math.min(elements.length, WRAP) }, (_, i) => i);
    return { rows, columns, axes: null, at: [], wraps: true, text: (i, j) => elements[i * WRAP + j] };
  }
  const chosen = view.axes ?? [axes - 2, axes - 1];
  const indices = value.shape.map((_, axis) => indicesOf(value, axis));
  const strides = indices.map((_, axis) => indices.slice(axis + 1).reduce((all, list) => all * list.length, 1));
  const places = indices.map((list, axis) => nearest(list, view.at[axis] ?? 0));
  const start = places.reduce((sum, place, axis) => sum + (chosen.includes(axis) ? 0 : place * strides[axis]), 0);
  const [down, across] = chosen;
  const isWhole = indices.every((list) => list.length);
  return {
    rows: isWhole ? indices[down] : [],
    columns: isWhole ? indices[across] : [],
    axes: chosen,
    at: places.map((place, axis) => indices[axis][place] ?? 0),
    wraps: false,
    text: (i, j) => elements[start + i * strides[down] + j * strides[across]],
  };
}

/** The visible part of a plane, as the panel's table shows it. */
function pageOf(plane, view) {
  const [height, width] = [plane.rows.length, plane.columns.length];
  const row = Math.max(0, Math.min(view.row, height - 1));
  const column = Math.max(0, Math.min(view.column, width - 1));
  const cells = [];
  for (let i = row; i < Math.min(row + view.rows, height); i++) {
    const line = [];
    for (let j = column; j < Math.min(column + view.columns, width); j++) if (plane.text(i, j) !== undefined) line.push(plane.text(i, j));
    cells.push(line);
  }
  const names = { rows: plane.rows.slice(row, row + view.rows), columns: plane.columns.slice(column, column + view.columns) };
  return { view: { ...view, axes: plane.axes, at: plane.at, row, column }, shape: [height, width], cells, wraps: plane.wraps, names };
}

/** A number from its text; NaN where it is none. */
const numberOf = (text) => (text === "True" ? 1 : text === "False" ? 0 : Number(text === "inf" ? Infinity : text === "-inf" ? -Infinity : text));

/** The picture of a plane as a data URL: blue is below 0, orange above, red is not finite; empty for a few elements. */
function pictureOf(plane) {
  const every = (list) => (list.length <= SIDE ? list.map((_, i) => i) : Array.from({ length: SIDE }, (_, i) => Math.round((i * (list.length - 1)) / (SIDE - 1))));
  const [rows, columns] = [every(plane.rows), every(plane.columns)];
  if (plane.wraps || rows.length < 2 || columns.length < 2 || plane.rows.length * plane.columns.length <= 8) return "";
  const numbers = rows.flatMap((i) => columns.map((j) => numberOf(plane.text(i, j))));
  const fine = numbers.filter(Number.isFinite).map(Math.abs);
  const signs = numbers.filter(Number.isFinite).map(Math.sign);
  const top = fine.reduce((a, b) => Math.max(a, b), 0);
  const least = new Set(signs).size > 1 || !fine.length ? 0 : fine.reduce((a, b) => Math.min(a, b), Infinity);
  const low = least === top ? 0 : least;
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [columns.length, rows.length];
  const context = canvas.getContext("2d");
  const image = context.createImageData(columns.length, rows.length);
  numbers.forEach((number, k) => {
    const colour = !Number.isFinite(number) ? [229, 72, 77, 255] : [...(number < 0 ? [59, 130, 246] : [217, 119, 6]), (255 * (Math.abs(number) - low)) / (top - low || 1)];
    image.data.set(colour, 4 * k);
  });
  context.putImageData(image, 0, 0);
  return canvas.toDataURL();
}

/** The differences of the visible elements of a value from another one of its shape; null where they cannot be compared. */
function differenceOf(value, old, plane, view, at) {
  if (!old) return { at, problem: `no value at step ${at}` };
  if (String(old.shape) !== String(value.shape) || String(old.kept) !== String(value.kept)) return { at, problem: `another shape at step ${at}` };
  const before = elementsOf(old);
  const now = elementsOf(value);
  const short = (number) => String(Number(number.toPrecision(5)));
  const shown = pageOf(planeOf(old, view), view).cells;
  const page = pageOf(plane, view).cells;
  const each = (act) => page.map((line, i) => line.map((text, j) => act(text, shown[i][j])));
  const distance = (a, b) => Math.abs(numberOf(a) - numberOf(b));
  const changed = now.filter((text, i) => text !== before[i]).length;
  const pages = {
    old: shown,
    absolute: each((a, b) => short(distance(a, b))),
    relative: each((a, b) => short(distance(a, b) / (Math.abs(numberOf(b)) || 1))),
    changed: each((a, b) => (a === b ? "False" : "True")),
  };
  const part = isThinned(value) ? " of those in this file" : "";
  return { at, pages, largest: [], summary: `${changed.toLocaleString("en")} of ${now.length.toLocaleString("en")} elements${part} differ from step ${at}` };
}
