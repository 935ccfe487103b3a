// The memory widget: the map of an arena that zooms, the pool over the runs, the owners of its memory.

function render({ model, el }) {
  const frame = framed(model, el, "memory");
  const { call, dispose } = watching(model);
  let at = 0;
  let arena = null;
  let edges = [];

  const words = tag("span", { class: "fm-words p-dim" });
  const state = tag("span", { class: "fm-state p-warn" });
  const choice = tag("select", { "data-local": true, "aria-label": "block", hidden: true });
  choice.onchange = () => ((at = Number(choice.value)), draw());
  const canvas = zoomCanvas({
    label: "map of the arena: operators from left to right, bytes upwards. Plus and minus zoom, arrows move, comma and full stop go from buffer to buffer, Enter selects",
    height: 300,
    margin: { left: 78, right: 12, top: 18, bottom: 40 },
    draw: drawMap,
    at: under,
    tip: describe,
    pick,
    next: (it, by) => arena && arena.buffers.length ? arena.buffers[(arena.buffers.indexOf(it) + by + arena.buffers.length) % arena.buffers.length] : null,
  });
  const name = (buffer) => buffer[0][0];
  const maker = (call_) => {
    let [low, high] = [0, arena.steps.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (arena.starts[middle] <= call_) low = middle;
      else high = middle - 1;
    }
    return arena.steps[low];
  };
  const opShort = (step) => `${step[0]} ${step[1]}`;
  const opText = (step) => `op ${step[0]} (${step[1]})`;

  const sorted = (columns, label, act, mark) => sortedTable({ label, height: 220, columns, pick: act, draw: mark });
  const buffers = sorted(
    [
      { title: "variable", text: name, wide: "minmax(90px, 1.5fr)" },
      { title: "bytes", text: (b) => bytesText(b[2]), number: (b) => b[2], class: "fc-right", wide: "76px" },
      { title: "from", text: (b) => opShort(maker(b[3])), number: (b) => -b[3], wide: "minmax(60px, 1fr)", class: "fc-dim" },
      { title: "until", text: (b) => opShort(maker(b[4])), number: (b) => -b[4], wide: "minmax(60px, 1fr)", class: "fc-dim" },
      { title: "cell", text: (b) => maker(b[3])[3].replace(/^cell /, ""), wide: "minmax(60px, 0.9fr)", class: "fc-dim fm-cell" },
    ],
    "buffers of the arena",
    (b) => (pick(b), canvas.show(edges[b[3]], edges[b[4] + 1])),
    (element, b) => element.classList.toggle("fc-picked", isPicked(b)),
  );
  const holders = sorted(
    [
      { title: "owner", text: (h) => h[0], wide: "minmax(70px, 1.6fr)" },
      { title: "bytes", text: (h) => bytesText(h[1]), number: (h) => h[1], class: "fc-right", wide: "76px" },
      { title: "blocks", text: (h) => h[2].toLocaleString("en"), number: (h) => h[2], class: "fc-right", wide: "46px" },
      { title: "kind", text: (h) => h[3], wide: "minmax(60px, 92px)", class: "fc-dim" },
    ],
    "owners of the pool's memory",
    (h) => call("pick", { block: 0, index: -1, name: h[0] }),
    (element, h) => element.classList.toggle("fc-picked", h[0] === (model.get("picked_things").name || null)),
  );
  const pool = plot("the pool over the runs", 132);
  const poolWords = tag("div", { class: "fm-pool-words p-dim" });
  const device = tag("div", { class: "fm-pool-words fm-device p-dim", hidden: true });
  const places = tag("select", { "data-local": true, "aria-label": "place" });
  let place = ""; // the selected one; else where the program ran
  places.onchange = () => ((place = places.value), drawPools());
  const empty = tag("div", { class: "fm-empty p-dim", hidden: true });
  frame.body.append(
    tag("div", { class: "fm-bar" }, tag("b", {}, "memory"), choice, words, state, zoomButtons(canvas)),
    canvas.element,
    empty,
    tag("div", { class: "fm-below" }, tag("section", {}, buffers.element), tag("section", {}, tag("div", { class: "fm-pool" }, tag("label", { class: "fm-place" }, tag("b", {}, "pool"), places), device, poolWords, pool.element), holders.element)),
  );

  function isPicked(buffer) {
    const { name: variable, ops = [] } = model.get("picked_things");
    if (variable) return buffer[5] && buffer[0].includes(variable);
    return ops.some(([block, index]) => block === arena.block && [maker(buffer[3])[0], maker(buffer[4])[0]].includes(index));
  }
  function pick(buffer) {
    call("pick", { block: arena.block, index: maker(buffer[3])[0], name: buffer[5] ? name(buffer) : "" });
  }
  function describe(buffer) {
    const [from, to] = [maker(buffer[3]), maker(buffer[4])];
    return [
      buffer[0].join(", "),
      `${bytesText(buffer[2])} at byte ${buffer[1].toLocaleString("en")}`,
      from === to ? `used by ${opText(from)}` : `from ${opText(from)} to ${opText(to)}`,
      from[3],
    ].filter(Boolean);
  }
  const toX = (v, view, box) => box.left + ((v - view[0]) / (view[1] - view[0])) * box.width;
  const toY = (v, view, box) => box.top + box.height - ((v - view[2]) / (view[3] - view[2])) * box.height;

  function under(x, y, view, box) {
    if (!arena || x < box.left || y < box.top || y > box.top + box.height) return null;
    const time = view[0] + ((x - box.left) / box.width) * (view[1] - view[0]);
    const byte = (view[2] + ((box.top + box.height - y) / box.height) * (view[3] - view[2])) * arena.size;
    const slack = ((view[3] - view[2]) * arena.size) / box.height; // a pixel
    const hits = arena.buffers.filter((b) => edges[b[3]] <= time && time < edges[b[4] + 1] && b[1] - slack <= byte && byte < b[1] + b[2] + slack);
    return hits.sort((a, b) => a[2] - b[2])[0] || null;
  }

  function drawMap(ctx, view, box, over) {
    if (!arena) return;
    const ink = ctx.ink;
    const [x, y] = [(v) => toX(v, view, box), (v) => toY(v / arena.size, view, box)];
    ctx.fillStyle = ctx.strokeStyle = ink;
    // round numbers of bytes
    let unit = 1;
    while ((arena.size * (view[3] - view[2])) / unit > 6) unit *= 2;
    ctx.textAlign = "right";
    for (let k = Math.ceil((view[2] * arena.size) / unit) * unit; k <= view[3] * arena.size; k += unit) {
      ctx.globalAlpha = 0.12;
      ctx.fillRect(box.left, Math.round(y(k)), box.width, 1);
      ctx.globalAlpha = 0.65;
      ctx.fillText(bytesText(k), box.left - 6, y(k) + 4);
    }
    ctx.textAlign = "left";
    ctx.save();
    ctx.beginPath();
    ctx.rect(box.left, box.top, box.width, box.height);
    ctx.clip();
    for (const buffer of arena.buffers) {
      const [left, right] = [x(edges[buffer[3]]), x(edges[buffer[4] + 1])];
      if (right < box.left || left > box.left + box.width) continue;
      const [low, high] = [y(buffer[1]), y(buffer[1] + buffer[2])];
      const [wide, tall] = [Math.max(right - left, 0.7), Math.max(low - high, 0.7)];
      const colour = ROLES[maker(buffer[3])[2]];
      const bright = buffer === over || isPicked(buffer);
      ctx.globalAlpha = bright ? 0.85 : buffer[5] ? 0.5 : 0.26;
      ctx.fillStyle = colour;
      ctx.fillRect(left, high, wide, tall);
      if (wide > 2 && tall > 2) {
        ctx.globalAlpha = 1;
        ctx.strokeStyle = bright ? ink : colour;
        ctx.lineWidth = bright ? 1.6 : 0.7;
        ctx.strokeRect(left + 0.5, high + 0.5, wide - 1, tall - 1);
      }
      if (tall >= 13) {
        ctx.globalAlpha = 1;
        ctx.fillStyle = ink;
        const start = Math.max(left, box.left) + 4;
        fitText(ctx, name(buffer), start, high + tall / 2 + 4, Math.min(right, box.left + box.width) - start - 2);
      }
    }
    // the bytes in use at each moment, and the peak
    ctx.globalAlpha = 0.85;
    ctx.strokeStyle = ink;
    ctx.lineWidth = 1.3;
    ctx.beginPath();
    arena.live.forEach((bytes, i) => {
      ctx.lineTo(x(edges[i]), y(bytes));
      ctx.lineTo(x(edges[i + 1]), y(bytes));
    });
    ctx.stroke();
    ctx.restore();
    const peak = x((edges[arena.peak_call] + edges[arena.peak_call + 1]) / 2);
    if (peak >= box.left && peak <= box.left + box.width) {
      ctx.globalAlpha = 1;
      ctx.strokeStyle = ctx.fillStyle = "#d97706";
      ctx.setLineDash([4, 3]);
      ctx.beginPath();
      ctx.moveTo(peak, box.top - 6);
      ctx.lineTo(peak, box.top + box.height);
      ctx.stroke();
      ctx.setLineDash([]);
      ctx.fillStyle = ink;
      ctx.textAlign = peak > box.left + box.width / 2 ? "right" : "left";
      ctx.fillText(`peak ${bytesText(arena.peak)}`, peak + (ctx.textAlign === "right" ? -5 : 5), box.top - 6);
    }
    drawOps(ctx, view, box, ink);
  }

  /** Below: roles as bars, indices or types of operators. */
  function drawOps(ctx, view, box, ink) {
    const base = box.top + box.height;
    const count = arena.steps.length;
    const each = box.width / (count * (view[1] - view[0]));
    const [first, last] = [Math.floor(view[0] * count), Math.min(count - 1, Math.ceil(view[1] * count))];
    let every = 1;
    while (every * each < 34) every *= every.toString().startsWith("2") ? 2.5 : 2;
    ctx.textAlign = "center";
    for (let i = first; i <= last; i++) {
      const left = Math.max(toX(i / count, view, box), box.left);
      const right = Math.min(toX((i + 1) / count, view, box), box.left + box.width);
      if (right <= left) continue;
      ctx.globalAlpha = 1;
      ctx.fillStyle = ROLES[arena.steps[i][2]];
      ctx.fillRect(left, base + 3, right - left + 0.4, 4);
      if (i % every) continue;
      ctx.fillStyle = ink;
      ctx.globalAlpha = 0.65;
      ctx.fillText(String(arena.steps[i][0]), (left + right) / 2, base + 19);
      if (each > 56) fitText(ctx, arena.steps[i][1], (left + right) / 2, base + 33, each);
    }
    ctx.globalAlpha = 1;
    ctx.textAlign = "left";
  }

  function draw() {
    const all = model.get("arenas");
    arena = all[Math.min(at, all.length - 1)] || null;
    const drawn = Boolean(arena && arena.buffers.length);
    canvas.element.hidden = !drawn;
    empty.hidden = drawn;
    empty.textContent = arena ? "The arena of this block is empty." : "The map is drawn after the first run.";
    choice.hidden = all.length < 2;
    choice.replaceChildren(...all.map((one, i) => tag("option", { value: i, selected: i === at }, `block ${one.block}`)));
    words.textContent = arena ? arena.words : "";
    if (arena) {
      const count = arena.steps.length || 1;
      edges = [];
      arena.steps.forEach((step, i) => {
        const calls = arena.starts[i + 1] - arena.starts[i];
        for (let k = 0; k < calls; k++) edges.push((i + k / calls) / count);
      });
      edges.push(1);
    }
    buffers.show(arena ? arena.buffers : []);
    canvas.redraw();
  }
  const drawPools = () => {
    const all = model.get("pools");
    const { points = [], peak = 0, words: text = "", device: named = "", holders: rows = [], ...one } = all.find((p) => p.place === place) || all[0] || {};
    const options = all.map((p) => tag("option", { value: p.place, selected: p.place === one.place }, p.place));
    if (all.map((p) => p.place).join() !== [...places.options].map((o) => o.value).join()) places.replaceChildren(...options);
    places.value = one.place || "";
    device.textContent = named;
    device.hidden = !named;
    poolWords.textContent = text;
    const top = points.map((p) => [p[0], peak]);
    pool.show([{ name: "used", points, kind: "p-forward" }, { name: "peak", points: top, kind: "fc-thin" }], { text: bytesText, zero: true });
    holders.show(rows);
  };
  const picked = () => {
    canvas.redraw();
    if (arena) buffers.reveal(isPicked);
    holders.redraw();
  };
  const drawState = () => (state.textContent = model.get("state"));
  const observers = { arenas: draw, pools: drawPools, picked_things: picked, state: drawState };
  for (const [trait, update] of Object.entries(observers)) {
    model.on(`change:${trait}`, update);
    update();
  }
  return () => {
    dispose();
    frame.dispose();
    canvas.dispose();
    for (const [trait, update] of Object.entries(observers)) model.off(`change:${trait}`, update);
  };
}

export default { render };
