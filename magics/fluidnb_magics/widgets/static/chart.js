// Shared by the live widgets: small charts, plots over the runs, formats of numbers.

const SVG = "http://www.w3.org/2000/svg";

/** Make an SVG element. */
function svgTag(name, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

/** Bytes for people. */
function bytesText(size) {
  const units = ["bytes", "KB", "MB", "GB", "TB"];
  let at = 0;
  while (size >= 1024 && at < 4) [size, at] = [size / 1024, at + 1];
  return at ? `${size.toFixed(1)} ${units[at]}` : `${Math.round(size)} bytes`;
}

/** Nanoseconds for people. */
function timeText(ns) {
  if (ns < 1e6) return (ns / 1e3).toFixed(1) + " µs";
  return ns < 1e9 ? (ns / 1e6).toFixed(1) + " ms" : (ns / 1e9).toFixed(1) + " s";
}

/** A moment on an axis of time, exact enough to distinguish it from one that is `step` away. */
function momentText(ns, step) {
  const [unit, name] = ns < 1e6 && step < 1e6 ? [1e3, "µs"] : ns < 1e9 ? [1e6, "ms"] : [1e9, "s"];
  return `${(ns / unit).toFixed(Math.max(0, Math.min(6, Math.ceil(-Math.log10(step / unit) + 0.3))))} ${name}`;
}

/** A number in few characters. */
function shortText(value) {
  if (value === null || value === undefined) return "";
  const text = String(Number(value.toPrecision(3)));
  return text.length > 8 ? value.toExponential(1) : text;
}

/** Numbers as a line; null breaks it. */
function sparkLine(heights, width = 72, height = 18) {
  const top = Math.max(1, ...heights.filter((v) => v !== null));
  const across = (width - 2) / Math.max(heights.length - 1, 1);
  let path = "";
  let pen = "M";
  heights.forEach((v, i) => {
    if (v === null) return (pen = "M");
    path += `${pen}${(1 + i * across).toFixed(1)} ${(height - 2 - ((height - 4) * v) / top).toFixed(1)}`;
    pen = "L";
  });
  if (heights.length === 1) path += "h1";
  return svgTag("svg", { class: "fc-line", width, height, "aria-hidden": "true" }, svgTag("path", { d: path }));
}

/** Counts as bars. */
function histogramBars(counts, width = 72, height = 18) {
  const top = Math.max(1, ...counts);
  const step = width / Math.max(counts.length, 1);
  const bars = counts.map((n, i) => {
    const high = (height * n) / top;
    return svgTag("rect", { x: (i * step).toFixed(1), y: (height - high).toFixed(1), width: (step - 1).toFixed(1), height: high.toFixed(1) });
  });
  return svgTag("svg", { class: "fc-bars", width, height, "aria-hidden": "true" }, ...bars);
}

/**
 * A plot over the runs. Gives { element, show(series, options) }: series are { name, points: [[x, y], ...], kind }, kind is
 * a class; options are { band: [[x, low, high], ...], text: a function of a value, words: what to call x, zero: whether
 * the axis begins at 0 }.
 */
function plot(label, height = 110) {
  const element = tag("div", { class: "fc-plot", role: "img", "aria-label": label });
  let last = null;
  const paint = () => {
    if (!last) return;
    const [series, { band = [], text = shortText, words = "run", zero = false }] = last;
    const width = element.clientWidth;
    if (!width) return; // hidden
    const ys = [...series.flatMap((s) => s.points.map((p) => p[1])), ...band.flatMap((b) => [b[1], b[2]])].filter(Number.isFinite);
    const xs = series.flatMap((s) => s.points.map((p) => p[0]));
    if (!ys.length) return element.replaceChildren();
    if (zero) ys.push(0);
    let [low, high] = [Math.min(...ys), Math.max(...ys)];
    if (high <= low) [low, high] = [low - Math.max(Math.abs(low), 1) / 2, high + Math.max(Math.abs(high), 1) / 2];
    const [first, end] = [Math.min(...xs), Math.max(...xs)];
    const left = 8 + 7 * Math.max(text(low).length, text(high).length);
    const x = (v) => (left + ((width - left - 8) * (v - first)) / (end - first || 1)).toFixed(1);
    const y = (v) => (height - 20 - ((height - 32) * (v - low)) / (high - low)).toFixed(1);
    const path = (points) => {
      let pen = "M";
      return points.map((p) => (Number.isFinite(p[1]) ? `${pen}${x(p[0])} ${y(p[1])}${((pen = "L"), "")}` : ((pen = "M"), ""))).join("");
    };
    const inside = [low, (low + high) / 2, high].map((v) => svgTag("path", { class: "fc-grid", d: `M${left} ${y(v)}H${width - 8}` }));
    for (const v of [low, high])
      inside.push(svgTag("text", { x: left - 5, y: Number(y(v)) + 4, "text-anchor": "end" }, text(v)));
    inside.push(svgTag("text", { x: left, y: height - 4 }, `${words} ${first.toLocaleString("en")}`));
    if (end > first) inside.push(svgTag("text", { x: width - 8, y: height - 4, "text-anchor": "end" }, end.toLocaleString("en")));
    const fine = band.filter((b) => Number.isFinite(b[1]) && Number.isFinite(b[2]));
    if (fine.length > 1) {
      const back = [...fine].reverse().map((b) => `L${x(b[0])} ${y(b[1])}`);
      inside.push(svgTag("path", { class: "fc-band", d: path(fine.map((b) => [b[0], b[2]])) + back.join("") + "Z" }));
    }
    for (const one of series) {
      const [d, dot] = one.points.length > 1 ? [path(one.points), ""] : [path(one.points) + "h0.1", "fc-dot"];
      inside.push(svgTag("path", { class: `fc-curve ${one.kind || ""} ${dot}`, d }, svgTag("title", {}, one.name)));
    }
    const values = series.map((s) => `${s.name} ${text(s.points[s.points.length - 1][1] ?? NaN)}`).join(", ");
    element.setAttribute("aria-label", `${label}: ${values}`);
    element.replaceChildren(svgTag("svg", { width, height }, ...inside));
  };
  new ResizeObserver(() => requestAnimationFrame(paint)).observe(element);
  return {
    element,
    show(series, options = {}) {
      last = [series.filter((s) => s.points.length), options];
      paint();
    },
  };
}

/** Follows the kernel only while the widget is shown; gives { call, dispose }. */
function watching(model) {
  const view = Math.random().toString(36).slice(2);
  const call = (name, more) => ask(model, name, more);
  call("look", { view });
  return { call, dispose: () => call("leave", { view }) };
}
