// The debugger panel: buttons, time, listing, stack, values, breakpoints and watches of a session.

function render({ model, el }) {
  const keys = {};
  const frame = framed(model, el, "panel", keys);
  const { root, body, say } = frame;
  root.setAttribute("aria-label", "debugger of a fluid program");
  root.setAttribute("role", "region");

  // ---- requests, and whether the kernel responds
  let requests = 0;
  const pending = new Map();
  const busy = tag("div", { class: "fp-note", role: "status", hidden: true });
  const request = (name, more = {}) => {
    const n = ++requests;
    say("");
    pending.set(n, setTimeout(() => {
      busy.textContent = "The kernel is busy with a cell and handles the panel when it ends; interrupting it pauses the program.";
      busy.hidden = false;
    }, 3000));
    ask(model, name, { request: n, ...more });
  };
  const onMessage = (message) => {
    if ("response" in message) {
      clearTimeout(pending.get(message.response));
      pending.delete(message.response);
      if (!pending.size) busy.hidden = true;
    }
    if ("ask" in message) ask(model, "answer");
  };
  model.on("msg:custom", onMessage);

  // ---- buttons
  const position = () => model.get("position") || {};
  const stopped = () => model.get("ended") || root.classList.contains("fw-dead");
  const can = (button) => {
    const { state, can_back } = position();
    if (stopped() || !state || state === "idle") return false;
    if (button.pauses) return state === "running";
    if (state === "running") return false;
    return button.back ? can_back : state !== "done";
  };
  const press = (button) => can(button) && request("move", { word: button.word });
  const bar = tag("div", { class: "fp-bar", role: "toolbar", "aria-label": "steps" });
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
  const role = tag("select", { class: "fp-role", "aria-label": "role of the training", title: "Go into a trainer or a parameter server  (%fluid attach)", hidden: true });
  role.onchange = () => request("attach", { role: role.value });
  bar.append(role);
  const drawRoles = () => {
    const names = model.get("roles");
    const chosen = model.get("role");
    role.hidden = !names.length;
    role.replaceChildren(...(chosen ? [] : [""]).concat(names).map((name) => tag("option", { value: name }, name || "attach to …")));
    role.value = chosen;
  };
  const byWord = new Map(buttons.map(([move]) => [move.word, move]));
  keys.ArrowRight = () => press(byWord.get("step"));
  keys.ArrowLeft = () => press(byWord.get("back"));
  const travel = (at) => !stopped() && !["idle", "running"].includes(position().state) && request("go", { at });
  keys.Home = () => travel(position().first);
  keys.End = () => travel(position().reached);

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
  slider.oninput = () => request("go", { at: Number(slider.value) });

  // ---- notes
  const note = tag("div", { class: "fp-note", role: "status", hidden: true });
  const waits = tag(
    "div", { class: "fp-note fp-waits", role: "status", hidden: true },
    tag("span", {}, "A cell waits for this run: continue to its end, and the cell continues. "),
    tag("button", { type: "button", onclick: () => request("leave") }, "stop the cell"),
  );
  const wrong = tag("pre", { class: "fp-wrong", role: "alert", hidden: true });

  // ---- parts
  const listing = programListing({
    mark: (block, index) => !stopped() && request("mark", { block, index }),
    until: (block, index) => can(byWord.get("step")) && request("until", { block, index }),
  });
  const counts = tag("span", { class: "fp-dim" });
  const stack = tag("div", { class: "fp-stack", role: "group", "aria-label": "call stack" });
  const values = tag("div", { class: "fp-list" });
  let chosen = -1;
  const scope = scopeList({
    window: (first, size, part) => !stopped() && request("window", { first, count: size, part }),
    open: (name) => request("open", { name, frame: chosen }),
    edit: (name) => edit(name, chosen),
  });
  const edit = (name, from) => {
    opened.edit();
    request("open", { name, frame: from });
  };
  const opened = openedValue({
    close: () => request("open", { name: "" }),
    view: (at, row, column, rows, columns, axes) => request("view", { at, row, column, rows, columns, axes }),
    edit: (name, text, from) => request("edit", { name, text, frame: from }),
    against: (step) => request("against", { step }),
  });
  const stops = addable("Breakpoints", model.get("examples") ?? "op mul, var loss, nan, when loss.mean() > 3", "add a breakpoint", (text) => request("break", { text }));
  const watches = addable("Watches", "a variable, or an expression", "add a watch", (text) => request("watch", { text }));
  const source = sourceLines();
  const marker = cellMarker(model, root);
  const around = tag("section", { class: "fp-part" }, tag("h4", {}, "Here"), values);
  const text = tag("pre", { class: "fp-c", tabindex: "0", "aria-label": "C functions of the next operator" });
  const code = tag("details", { class: "fp-part fp-code" }, tag("summary", {}, "Show C"), text);
  code.ontoggle = () => !stopped() && request("code", { shown: code.open });
  body.append(
    bar,
    tag("div", { class: "fp-status" }, state, count, reason),
    tag("div", { class: "fp-timeline" }, slider, runs),
    waits, note, busy, wrong,
    tag(
      "div", { class: "fp-main" },
      tag("div", { class: "fp-left" },
        tag("section", { class: "fp-part fp-program" }, tag("div", { class: "fp-head" }, tag("h4", {}, "Program"), counts), listing.element),
        source.element,
        code,
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
    listing.position(position());
  };
  const drawPosition = () => {
    const s = position();
    const running = s.state === "running";
    const word = model.get("ended") ? "ended" : s.error?.length ? "failed" : s.state;
    root.dataset.state = word;
    state.textContent = word;
    count.textContent = s.state === "idle" ? "" : `step ${s.at.toLocaleString("en")}`;
    reason.title = reason.textContent = visible(running ? s.reason : [s.reason, s.location, s.device && `on ${s.device}`].filter(Boolean).join("  ·  "));
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
    listing.position(s);
    drawStack();
  };
  const drawSource = () => {
    const s = position();
    const paused = s.state === "paused" && !stopped();
    marker.show(paused ? model.get("cell") : "", s.source);
    if (s.state !== "running") source.show(s.source, s.location);
  };
  const drawStack = () => {
    const frames = position().frames || [];
    const current = model.get("scope").frame ?? frames.length - 1;
    stack.replaceChildren(...frames.map((line, i) => {
      const button = tag("button", { type: "button", class: "fp-frame", "aria-pressed": String(i === current) },
        tag("span", { title: line.title }, line.title), tag("span", { class: "fp-dim", title: line.at }, line.at));
      button.onclick = () => {
        chosen = i === frames.length - 1 ? -1 : i;
        if (line.index >= 0) listing.reveal(line.block, line.index);
        request("frame", { frame: chosen });
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
      onClicks(row, () => request("open", { name: line.name }), () => edit(line.name, -1));
      return row;
    }));
  };
  const drawScope = () => {
    const now = model.get("scope");
    if (now.rows) scope.show(now, position().wrote || [], model.get("opened")?.line.name || "");
    drawStack();
  };
  const drawStops = () => {
    const all = model.get("stops");
    listing.stops(all);
    const times = (n) => (n === 1 ? "hit 1 time" : `hit ${n} times`);
    stops.show(all.map((stop) => [stop.text, times(stop.hits), () => request("clear", { number: stop.number })]));
  };
  const drawWatches = () =>
    watches.show(model.get("watches").map(([text, value]) => [text, value, () => request("unwatch", { text }), /\b(nan|inf)\b/.test(value)]));
  const drawNotes = () => {
    note.textContent = [model.get("note"), model.get("ended") ? "" : model.get("unanswered")].filter(Boolean).join(" ");
    note.hidden = !note.textContent;
    waits.hidden = !model.get("waits");
  };
  const changes = {
    "change:listing": drawListing, "change:position": drawPosition, "change:scope": drawScope, "change:values": drawValues,
    "change:opened": () => (opened.show(model.get("opened")), drawScope()), "change:stops": drawStops, "change:watches": drawWatches,
    "change:code": () => (text.textContent = visible(model.get("code"))),
    "change:cell": drawSource, "change:note": drawNotes, "change:unanswered": drawNotes, "change:waits": drawNotes,
    "change:roles": drawRoles, "change:role": drawRoles,
    "change:ended": () => (drawNotes(), drawPosition()),
  };
  drawListing();
  drawNotes();
  if (position().state) Object.values(changes).forEach((draw) => draw());
  for (const [event, draw] of Object.entries(changes)) model.on(event, draw);
  ask(model, "shown");
  return () => {
    for (const [event, draw] of Object.entries(changes)) model.off(event, draw);
    model.off("msg:custom", onMessage);
    pending.forEach(clearTimeout);
    marker.clear();
    if (!stopped()) ask(model, "hidden");
    frame.dispose();
  };
}

export default { render };
