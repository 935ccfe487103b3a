// The debugger panel: buttons, time, listing, stack, values, breakpoints and watches of a session.

function render({ model, el }) {
  const keys = {};
  const frame = framed(model, el, "panel", keys);
  const { root, body, say } = frame;
  root.setAttribute("aria-label", "debugger of a fluid program");
  root.setAttribute("role", "region");

  // ---- what is asked, and whether it is heard
  let asked = 0;
  const unheard = new Map();
  const deaf = tag("div", { class: "fp-note", role: "status", hidden: true });
  const tell = (name, more = {}) => {
    const n = ++asked;
    say("");
    unheard.set(n, setTimeout(() => {
      deaf.textContent = "The kernel is busy with a cell and hears the panel when that ends; interrupting it pauses the program.";
      deaf.hidden = false;
    }, 3000));
    ask(model, name, { asked: n, ...more });
  };
  const hear = (message) => {
    if ("heard" in message) {
      clearTimeout(unheard.get(message.heard));
      unheard.delete(message.heard);
      if (!unheard.size) deaf.hidden = true;
    }
    if ("ask" in message) ask(model, "answer");
  };
  model.on("msg:custom", hear);

  // ---- buttons
  const stand = () => model.get("stand") || {};
  const stopped = () => model.get("ended") || root.classList.contains("fw-dead");
  const can = (button) => {
    const { state, can_back } = stand();
    if (stopped() || !state || state === "idle") return false;
    if (button.pauses) return state === "running";
    if (state === "running") return false;
    return button.back ? can_back : state !== "done";
  };
  const press = (button) => can(button) && tell("move", { word: button.word });
  const bar = tag("div", { class: "fp-bar", role: "toolbar", "aria-label": "walk" });
  const buttons = model.get("buttons").map((move) => {
    const button = tag(
      "button", { type: "button", class: `fp-move fp-${move.word}`, title: move.tip, "aria-keyshortcuts": move.key },
      tag("span", { class: "fp-icon", "aria-hidden": "true" }, move.icon), tag("span", {}, move.label),
    );
    button.onclick = () => press(move);
    keys[move.key] = () => press(move);
    bar.append(button);
    return [move, button];
  });
  const byWord = new Map(buttons.map(([move]) => [move.word, move]));
  keys.ArrowRight = () => press(byWord.get("step"));
  keys.ArrowLeft = () => press(byWord.get("back"));

  // ---- state and time
  const state = tag("span", { class: "fp-state" });
  const count = tag("span", { class: "fp-count" });
  const reason = tag("span", { class: "fp-reason", role: "status", "aria-live": "polite" });
  const slider = tag("input", { type: "range", class: "fp-time", min: "0", max: "0", value: "0", "aria-label": "step" });
  const runs = tag("div", { class: "fp-runs", "aria-hidden": "true" });
  let dragging = false;
  slider.onpointerdown = () => (dragging = true);
  slider.onpointerup = () => (dragging = false);
  slider.onchange = () => (dragging = false);
  slider.oninput = () => tell("go", { at: Number(slider.value) });

  // ---- notes
  const note = tag("div", { class: "fp-note", role: "status", hidden: true });
  const waits = tag(
    "div", { class: "fp-note fp-waits", role: "status", hidden: true },
    tag("span", {}, "A cell waits for this run: continue to its end, and the cell goes on. "),
    tag("button", { type: "button", onclick: () => tell("leave") }, "stop the cell"),
  );
  const wrong = tag("pre", { class: "fp-wrong", role: "alert", hidden: true });

  // ---- parts
  const listing = programListing({
    mark: (block, index) => !stopped() && tell("mark", { block, index }),
    until: (block, index) => can(byWord.get("step")) && tell("until", { block, index }),
  });
  const counts = tag("span", { class: "fp-dim" });
  const stack = tag("div", { class: "fp-stack", role: "group", "aria-label": "call stack" });
  const values = tag("div", { class: "fp-list" });
  let chosen = -1;
  const scope = scopeList({
    window: (first, size, part) => !stopped() && tell("window", { first, count: size, part }),
    open: (name) => tell("open", { name, frame: chosen }),
    edit: (name) => edit(name, chosen),
  });
  const edit = (name, from) => {
    opened.edit();
    tell("open", { name, frame: from });
  };
  const opened = openedValue({
    close: () => tell("open", { name: "" }),
    view: (at, row, column, rows, columns, axes) => tell("view", { at, row, column, rows, columns, axes }),
    edit: (name, text, from) => tell("edit", { name, text, frame: from }),
    against: (step) => tell("against", { step }),
  });
  const stops = addable("Breakpoints", "op mul, var loss, nan, when loss.mean() > 3", "add a breakpoint", (text) => tell("break", { text }));
  const watches = addable("Watches", "a variable, or an expression", "add a watch", (text) => tell("watch", { text }));
  const source = sourceLines();
  const marker = cellMarker(model, root);
  const around = tag("section", { class: "fp-part" }, tag("h4", {}, "Here"), values);
  body.append(
    bar,
    tag("div", { class: "fp-said" }, state, count, reason),
    tag("div", { class: "fp-timeline" }, slider, runs),
    waits, note, deaf, wrong,
    tag(
      "div", { class: "fp-main" },
      tag("div", { class: "fp-left" },
        tag("section", { class: "fp-part fp-program" }, tag("div", { class: "fp-head" }, tag("h4", {}, "Program"), counts), listing.element),
        source.element,
        tag("div", { class: "fp-two" }, stops.element, watches.element)),
      tag("div", { class: "fp-right" }, tag("section", { class: "fp-part" }, tag("h4", {}, "Scopes"), stack), opened.element, around, scope.element),
    ),
  );

  // ---- drawing
  const drawListing = () => {
    const { rows = [], counts: words = "" } = JSON.parse(model.get("listing"));
    counts.textContent = words;
    listing.load(rows);
    listing.stops(model.get("stops"));
    listing.stand(stand());
  };
  const drawStand = () => {
    const s = stand();
    const running = s.state === "running";
    const word = model.get("ended") ? "ended" : s.error?.length ? "failed" : s.state;
    root.dataset.state = word;
    state.textContent = word;
    count.textContent = s.state === "idle" ? "" : `step ${s.at.toLocaleString("en")}`;
    reason.title = reason.textContent = running ? s.reason : [s.reason, s.place, s.device && `on ${s.device}`].filter(Boolean).join("  ·  ");
    for (const [move, button] of buttons) button.setAttribute("aria-disabled", String(!can(move)));
    slider.min = s.first;
    slider.max = Math.max(s.reached, s.at);
    slider.disabled = stopped() || running || s.state === "idle";
    if (!dragging) slider.value = s.at;
    slider.setAttribute("aria-valuetext", `step ${s.at} of ${s.reached}`);
    const wide = Math.max(s.reached - s.first, 1);
    runs.replaceChildren(...(s.runs.length > 1 ? s.runs : []).filter((at) => at >= s.first && at <= s.reached).map((at, i) =>
      tag("span", { class: "fp-run", style: `left:${(100 * (at - s.first)) / wide}%`, title: `a run begins at step ${at}` }, `run ${s.runs.length > 1 ? i : 0}`)));
    drawSource();
    if (running) return;
    wrong.hidden = !s.error?.length;
    wrong.replaceChildren(...s.error.flatMap((line) => [...pieces(line), "\n"]));
    listing.stand(s);
    drawStack();
  };
  const drawSource = () => {
    const s = stand();
    const paused = s.state === "paused" && !stopped();
    marker.show(paused ? model.get("cell") : "", s.source);
    if (s.state !== "running") source.show(s.source, s.place);
  };
  const drawStack = () => {
    const frames = stand().frames || [];
    const current = model.get("scope").frame ?? frames.length - 1;
    stack.replaceChildren(...frames.map((line, i) => {
      const button = tag("button", { type: "button", class: "fp-frame", "aria-pressed": String(i === current) },
        tag("span", { title: line.title }, line.title), tag("span", { class: "fp-dim", title: line.at }, line.at));
      button.onclick = () => {
        chosen = i === frames.length - 1 ? -1 : i;
        if (line.index >= 0) listing.reveal(line.block, line.index);
        tell("frame", { frame: chosen });
      };
      return button;
    }).reverse());
  };
  const drawValues = () => {
    const { wrote = [], reads = [] } = model.get("values");
    const lines = [...wrote.map((line) => ["wrote", line]), ...reads.map((line) => ["reads", line])];
    around.hidden = !lines.length;
    values.replaceChildren(...lines.map(([what, line]) => {
      const row = tag("button", { type: "button", class: `fp-value fp-${what}` }, ...valueCells(line, what));
      row.onclick = () => tell("open", { name: line.name });
      row.ondblclick = () => edit(line.name, -1);
      return row;
    }));
  };
  const drawScope = () => {
    const now = model.get("scope");
    if (now.rows) scope.show(now, stand().wrote || [], model.get("opened")?.line.name || "");
    drawStack();
  };
  const drawStops = () => {
    const all = model.get("stops");
    listing.stops(all);
    const times = (n) => (n === 1 ? "hit 1 time" : `hit ${n} times`);
    stops.show(all.map((stop) => [stop.text, times(stop.hits), () => tell("clear", { number: stop.number })]));
  };
  const drawWatches = () =>
    watches.show(model.get("watches").map(([text, value]) => [text, value, () => tell("unwatch", { text }), /\b(nan|inf)\b/.test(value)]));
  const drawNotes = () => {
    note.textContent = [model.get("note"), model.get("ended") ? "" : model.get("deaf")].filter(Boolean).join(" ");
    note.hidden = !note.textContent;
    waits.hidden = !model.get("waits");
  };
  const changes = {
    "change:listing": drawListing, "change:stand": drawStand, "change:scope": drawScope, "change:values": drawValues,
    "change:opened": () => (opened.show(model.get("opened")), drawScope()), "change:stops": drawStops, "change:watches": drawWatches,
    "change:cell": drawSource, "change:note": drawNotes, "change:deaf": drawNotes, "change:waits": drawNotes,
    "change:ended": () => (drawNotes(), drawStand()),
  };
  drawListing();
  drawNotes();
  if (stand().state) Object.values(changes).forEach((draw) => draw());
  for (const [event, draw] of Object.entries(changes)) model.on(event, draw);
  ask(model, "shown");
  return () => {
    for (const [event, draw] of Object.entries(changes)) model.off(event, draw);
    model.off("msg:custom", hear);
    unheard.forEach(clearTimeout);
    marker.clear();
    if (!stopped()) ask(model, "hidden");
    frame.dispose();
  };
}

export default { render };
