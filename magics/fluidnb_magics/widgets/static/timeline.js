// The timeline widget: operators over time in lanes, and sums of the visible part.

const LANE = 26;
const MOST_LANES = 14;
const GROUPS = {
  depth: { title: "nothing", of: (op, lane) => lane },
  type: { title: "type", of: (op) => op[0] },
  role: { title: "role", of: (op) => op[1] },
  cell: { title: "cell", of: (op) => op[5].replace(/^cell /, "") || "no cell" },
  block: { title: "block", of: (op) => `block ${op[2]}` },
  place: { title: "place", of: (op) => op[7] },
};

function render({ model, el }) {
  const frame = framed(model, el, "timeline");
  const watch = watching(model);
  let data;
  let count;
  let length;
  let reach; // for each operator, the latest end of those before it and its own
  let by = "depth";
  let lanes = [];
  let laneOf = [];
  let hidden = 0;

  const words = tag("span", { class: "p-dim" });
  const groups = tag("select", { "data-local": true, "aria-label": "group by" }, ...Object.entries(GROUPS).map(([key, one]) => tag("option", { value: key }, one.title)));
  groups.onchange = () => ((by = groups.value), layOut());
  const canvas = zoomCanvas({
    label: "operators over time. Plus and minus zoom, arrows move, comma and full stop go from operator to operator, Enter selects",
    height: 120,
    margin: { left: 118, right: 12, top: 8, bottom: 24 },
    flat: true,
    draw,
    at: under,
    tip: describe,
    pick,
    next: (it, step) => {
      if (!count) return null;
      const i = it ? (it.i + step + count) % count : 0;
      canvas.show(data.start[i] / length, data.end[i] / length);
      return { i };
    },
    moved: () => soon(),
  });
  const sums = sortedTable({
    label: "sums of the visible part",
    height: 198,
    by: 2,
    columns: [
      { title: "group", text: (row) => row.name, wide: "minmax(90px, 1.4fr)" },
      { title: "share", text: (row) => `${(100 * row.share).toFixed(1)}%`, number: (row) => row.share, wide: "minmax(90px, 1.6fr)", class: "ft-share" },
      { title: "time", text: (row) => timeText(row.own), number: (row) => row.own, wide: "76px", class: "fc-right" },
      { title: "calls", text: (row) => row.calls.toLocaleString("en"), number: (row) => row.calls, wide: "56px", class: "fc-right" },
      { title: "longest", text: (row) => timeText(data.end[row.longest] - data.start[row.longest]), number: (row) => data.end[row.longest] - data.start[row.longest], wide: "76px", class: "fc-right" },
      { title: "cell", text: (row) => data.ops[data.op[row.longest]][5].replace(/^cell /, ""), wide: "minmax(70px, 1.2fr)", class: "fc-dim" },
    ],
    pick: (row) => {
      canvas.show(data.start[row.longest] / length, data.end[row.longest] / length);
      pick({ i: row.longest });
    },
    draw: (element, row) => {
      element.style.setProperty("--share", `${100 * row.share}%`);
      element.style.setProperty("--colour", ROLES[row.role]);
      element.classList.toggle("fc-picked", row.picked);
    },
  });
  const clocks = tag("div");
  const total = tag("span", { class: "ft-total p-dim", "aria-live": "polite" });
  frame.body.append(
    tag("div", { class: "ft-bar" }, tag("b", {}, "timeline"), words, tag("label", {}, "group by ", groups), total, zoomButtons(canvas)),
    clocks,
    canvas.element,
    tag("div", { class: "ft-below" }, sums.element),
  );

  function load() {
    data = model.get("timeline");
    count = data.start.length;
    length = data.length || 1;
    reach = [];
    for (let i = 0, far = 0; i < count; i++) reach.push((far = Math.max(far, data.end[i])));
    clocks.replaceChildren(...data.clocks.map((clock) => tag("div", { class: "ft-clock p-dim" }, clock)));
  }
  function layOut() {
    const group = GROUPS[by].of;
    const times = new Map();
    const names = Array.from({ length: count }, (_, i) => group(data.ops[data.op[i]], data.lanes[data.lane[i]]));
    names.forEach((name, i) => times.set(name, (times.get(name) || 0) + data.own[i]));
    const all = [...times.keys()];
    if (by === "depth") all.sort((a, b) => data.lanes.indexOf(a) - data.lanes.indexOf(b));
    else all.sort(by === "block" ? (a, b) => a.localeCompare(b, "en", { numeric: true }) : (a, b) => times.get(b) - times.get(a));
    lanes = all.slice(0, MOST_LANES);
    hidden = all.length - lanes.length;
    const places = new Map(lanes.map((name, i) => [name, i]));
    laneOf = names.map((name) => places.get(name) ?? -1);
    canvas.element.querySelector("canvas").style.height = 8 + 24 + Math.max(lanes.length, 1) * LANE + "px";
    const sum = `${count.toLocaleString("en")} operators, ${timeText(data.length)}${data.runs.length > 1 ? `, ${data.runs.length} runs` : ""}`;
    words.textContent = [count && sum, model.get("state")].filter(Boolean).join(", ");
    canvas.redraw();
    add();
  }

  const isPicked = (op) => {
    const { ops = [], name } = model.get("picked_things");
    return name ? op[6].includes(name) : ops.some(([block, index]) => block === op[2] && index === op[3]);
  };
  function pick({ i }) {
    const op = data.ops[data.op[i]];
    ask(model, "pick", { block: op[2], index: op[3] });
  }
  function describe({ i }) {
    const op = data.ops[data.op[i]];
    const whole = data.end[i] - data.start[i];
    const own = data.own[i] < whole ? `, ${timeText(data.own[i])} self` : "";
    const where = data.clocks.length ? ` on ${op[7] === "host" ? "the host" : op[7]}` : "";
    return [op[4], timeText(whole) + where + own, `at ${timeText(data.start[i])}`, op[5]].filter(Boolean);
  }
  /** The first operator that may end after a moment; operators are in the order of their starts. */
  function from(moment) {
    let [low, high] = [0, count];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (reach[middle] < moment) low = middle + 1;
      else high = middle;
    }
    return low;
  }
  function under(x, y, view, box) {
    const lane = Math.floor((y - box.top) / LANE);
    if (x < box.left || lane < 0 || lane >= lanes.length) return null;
    const pixel = ((view[1] - view[0]) * length) / box.width;
    const moment = view[0] * length + (x - box.left) * pixel;
    let best = null;
    for (let i = from(moment - pixel); i < count && data.start[i] <= moment + pixel; i++)
      if (laneOf[i] === lane && data.end[i] >= moment - pixel && (best === null || data.end[i] - data.start[i] < data.end[best] - data.start[best])) best = i;
    return best === null ? null : { i: best };
  }

  function draw(ctx, view, box, over) {
    const ink = ctx.ink;
    const [begin, end] = [view[0] * length, view[1] * length];
    const scale = box.width / (end - begin);
    const base = box.top + lanes.length * LANE;
    ctx.fillStyle = ink;
    lanes.forEach((name, lane) => {
      ctx.globalAlpha = lane % 2 ? 0 : 0.04;
      ctx.fillRect(0, box.top + lane * LANE, box.left + box.width, LANE);
      ctx.globalAlpha = 0.75;
      fitText(ctx, name, 8, box.top + lane * LANE + 17, box.left - 14);
    });
    ctx.save();
    ctx.beginPath();
    ctx.rect(box.left, 0, box.width, base);
    ctx.clip();
    const picked = data.ops.map(isPicked);
    const far = new Map(); // in each lane, the pixel up to which narrow boxes of a role were drawn
    const marks = [];
    for (let i = from(begin); i < count && data.start[i] <= end; i++) {
      const lane = laneOf[i];
      if (lane < 0 || data.end[i] < begin) continue;
      const op = data.ops[data.op[i]];
      const left = box.left + (data.start[i] - begin) * scale;
      const wide = (data.end[i] - data.start[i]) * scale;
      const bright = picked[data.op[i]] || (over && over.i === i);
      if (wide < 0.6 && !bright) {
        const key = lane + op[1];
        if (left - (far.get(key) ?? -9) < 0.5) continue;
        far.set(key, left);
      }
      const top = box.top + lane * LANE + 3;
      if (bright) marks.push([left, wide, top]);
      ctx.fillStyle = ROLES[op[1]];
      ctx.globalAlpha = wide > 2 ? 0.5 : 0.8;
      ctx.fillRect(left, top, Math.max(wide, 0.6), LANE - 6);
      if (wide > 3) {
        ctx.globalAlpha = 1;
        ctx.strokeStyle = ROLES[op[1]];
        ctx.lineWidth = 0.8;
        ctx.strokeRect(left + 0.5, top + 0.5, wide - 1, LANE - 7);
        ctx.fillStyle = ink;
        const start = Math.max(left, box.left) + 4;
        fitText(ctx, op[0], start, top + 14, Math.min(left + wide, box.left + box.width) - start - 2);
      }
    }
    ctx.globalAlpha = 1;
    ctx.strokeStyle = ink;
    ctx.lineWidth = 1.8;
    for (const [left, wide, top] of marks) ctx.strokeRect(left, top, Math.max(wide, 2), LANE - 6);
    ctx.setLineDash([3, 3]);
    ctx.lineWidth = 1;
    ctx.globalAlpha = 0.5;
    for (const start of data.runs.slice(1)) {
      const left = Math.round(box.left + (start - begin) * scale) + 0.5;
      ctx.beginPath();
      ctx.moveTo(left, 0);
      ctx.lineTo(left, base);
      ctx.stroke();
    }
    ctx.restore();
    ctx.fillStyle = ink;
    for (let k = 0; k <= 4; k++) {
      const left = box.left + (k * box.width) / 4;
      ctx.globalAlpha = 0.4;
      ctx.fillRect(left, base, 1, 4);
      ctx.globalAlpha = 0.65;
      ctx.textAlign = k === 0 ? "left" : k === 4 ? "right" : "center";
      ctx.fillText(momentText(begin + (k * (end - begin)) / 4, (end - begin) / 4), left, base + 17);
    }
    ctx.textAlign = "left";
    ctx.globalAlpha = 1;
  }

  /** The sums of the visible part; of operators that its edges cut, the part inside counts. */
  function add() {
    const [begin, end] = [canvas.view[0] * length, canvas.view[1] * length];
    const group = GROUPS[by === "depth" ? "type" : by].of;
    const rows = new Map();
    let whole = 0;
    for (let i = from(begin); i < count && data.start[i] <= end; i++) {
      const inside = Math.min(data.end[i], end) - Math.max(data.start[i], begin);
      if (inside < 0) continue;
      const took = data.end[i] - data.start[i];
      const own = data.own[i] * (took ? inside / took : 1);
      const op = data.ops[data.op[i]];
      const name = group(op, data.lanes[data.lane[i]]);
      const row = rows.get(name) || { name, own: 0, calls: 0, longest: i, role: op[1], picked: false };
      row.own += own;
      row.calls += 1;
      row.picked ||= isPicked(op);
      if (took > data.end[row.longest] - data.start[row.longest]) row.longest = i;
      rows.set(name, row);
      whole += own;
    }
    for (const row of rows.values()) row.share = row.own / (whole || 1);
    sums.show(rows.values());
    const part = end - begin < length * 0.999 ? `visible ${timeText(end - begin)}, ` : "";
    const left = hidden > 0 ? `, ${hidden} smaller group${hidden > 1 ? "s" : ""} not drawn` : "";
    total.textContent = `${part}${timeText(whole)} in operators${left}`;
  }
  let waiting = 0;
  const soon = () => {
    clearTimeout(waiting);
    waiting = setTimeout(add, 80);
  };
  const picked = () => {
    const i = data.op.findIndex((op) => isPicked(data.ops[op]));
    if (i >= 0) canvas.show(data.start[i] / length, data.end[i] / length);
    canvas.redraw();
    add();
  };
  const renewed = () => {
    load();
    layOut();
  };
  model.on("change:picked_things", picked);
  model.on("change:timeline change:state", renewed);
  renewed();
  return () => {
    frame.dispose();
    watch.dispose();
    model.off("change:timeline change:state", renewed);
    canvas.dispose();
    model.off("change:picked_things", picked);
  };
}

export default { render };
