// A saved session: what the kernel of a debugger panel does, over recorded steps.

/** A model as widgets have it, without a kernel: `answer(message)` handles what the page sends. */
class SavedModel {
  constructor(traits, answer) {
    this.traits = traits;
    this.answer = answer;
    this.listeners = new Map();
  }
  get(name) {
    return this.traits[name];
  }
  set(traits) {
    const changed = Object.keys(traits).filter((name) => JSON.stringify(traits[name]) !== JSON.stringify(this.traits[name]));
    Object.assign(this.traits, traits);
    for (const name of changed) this.emit("change:" + name);
  }
  emit(event, ...what) {
    for (const act of [...(this.listeners.get(event) ?? [])]) act(...what);
  }
  on(event, act) {
    this.listeners.set(event, [...(this.listeners.get(event) ?? []), act]);
  }
  off(event, act) {
    this.listeners.set(event, (this.listeners.get(event) ?? []).filter((other) => other !== act));
  }
  send(message) {
    this.answer(message);
    if ("request" in message) this.emit("msg:custom", { response: message.request });
  }
}

/** Breakpoints that recorded steps can answer: kind -> how it stops, before an operator or after a step that wrote. */
const STOPS = {
  at: { before: (what, step) => what === step.here.join(":") },
  op: { before: (what, step) => fits(what, step.type) },
  block: { before: (what, step, last) => what === String(step.here[0]) && last?.here?.[0] !== step.here[0] },
  var: { after: (what, step) => step.wrote.some((name) => fits(what, name)) },
  nan: { after: (what, step) => step.bad },
};

/** Whether a text matches a pattern with * and ?. */
function fits(pattern, text) {
  return new RegExp("^" + pattern.replace(/[\\^$.|+()[\]{}]/g, "\\$&").replace(/\*/g, ".*").replace(/\?/g, ".") + "$", "s").test(text);
}

/**
 * A session over recorded steps. `saved` has { here, runs, steps, values, stops, sources }, `listing` and `buttons` are as the
 * panel has them; `moved(player)` is called after each move, `opens(name)` when a variable is opened.
 */
class Player {
  constructor(saved, listing, buttons, moved, opens) {
    Object.assign(this, { saved, moved, opens });
    this.runs = saved.runs;
    this.steps = saved.steps.map((step) => {
      const { position } = step;
      const wrote = new Map(step.wrote.map(([, name, value]) => [name, value]));
      const bad = position.wrote.some((name) => wrote.has(name) && wrote.get(name) >= 0 && saved.values[wrote.get(name)].line.bad);
      return { ...position, bad, type: step.type };
    });
    this.first = this.steps[0].at;
    this.last = this.steps.at(-1).at;
    this.k = saved.here;
    this.reason = this.steps[this.k].reason;
    this.stops = [];
    this.number = 0;
    for (const { text } of saved.stops) this.parse(text) && this.add(text);
    if (this.steps.some((step) => step.bad) && !this.stops.some((stop) => stop.kind === "nan")) this.add("nan");
    this.window = { frame: -1, first: 0, count: 24, part: "" };
    this.open = { name: "", frame: -1, view: null, against: null };
    this.states = new Map(); // number of a scope -> { upTo, values (name -> index) }
    this.model = new SavedModel({ widget_id: "saved", buttons, listing, code: "", cell: "", note: "", unanswered: "", waits: false, ended: false, roles: [], role: "", opened: null, examples: "op mul, var loss, nan", ...this.traits() }, (message) => this.answer(message));
  }

  // ---- what is where

  /** The variables of a scope at a step: name -> index of the value, in the order in which they got their first one. */
  variables(scope, k = this.k) {
    let state = this.states.get(scope);
    if (!state || state.upTo > k) this.states.set(scope, (state = { upTo: -1, values: new Map() }));
    for (; state.upTo < k; state.upTo++)
      for (const [number, name, value] of this.saved.steps[state.upTo + 1].wrote)
        if (number === scope) value < 0 ? state.values.delete(name) : state.values.set(name, value);
    return state.values;
  }

  /** A valid index of a scope. */
  frame(frame) {
    const last = this.saved.steps[this.k].scopes.length - 1;
    return frame >= 0 && frame <= last ? frame : last;
  }

  /** The value of a variable as seen from a scope; undefined without one. */
  find(name, frame = -1, k = this.k) {
    const { scopes } = this.saved.steps[k];
    for (let i = Math.min(this.frame(frame), scopes.length - 1); i >= 0; i--) {
      const value = this.variables(scopes[i], k).get(name);
      if (value !== undefined) return this.saved.values[value];
    }
    return undefined;
  }

  /** The steps that wrote a variable. */
  writes(name) {
    return this.steps.filter((step) => step.wrote.includes(name)).map((step) => step.at);
  }

  // ---- what the panel shows

  position() {
    const step = this.steps[this.k];
    const source = step.source === null ? null : this.saved.sources[step.source];
    return { ...step, reason: this.reason, runs: this.runs, first: this.first, reached: this.last, can_back: this.k > 0, source };
  }

  scope() {
    const frame = this.frame(this.window.frame);
    const part = this.window.part.toLowerCase();
    const all = [...this.variables(this.saved.steps[this.k].scopes[frame])].filter(([name]) => name.toLowerCase().includes(part));
    const first = Math.max(0, Math.min(this.window.first, all.length - 1));
    return { frame, count: all.length, first, rows: all.slice(first, first + Math.min(this.window.count, 60)).map(([, value]) => this.saved.values[value].line) };
  }

  values() {
    const lines = (names) => names.slice(0, 60).flatMap((name) => this.find(name)?.line ?? []);
    return { wrote: lines(this.steps[this.k].wrote), reads: lines(this.steps[this.k].reads) };
  }

  opened() {
    const { name, frame, against } = this.open;
    if (!name) return null;
    const value = this.find(name, frame);
    if (!value) return { line: { name, facts: "no value here", lod: "", statistics: "", histogram: [], bad: false, nbytes: 0 }, frame: this.frame(frame), shape: [], page: null, parts: [], gone: true };
    const whole = { line: value.line, frame: this.frame(frame), shape: value.shape, parts: value.parts ?? [], sequences: value.sequences ?? "", image: "", gone: false };
    if (value.cells === undefined) return { ...whole, page: null };
    const view = this.open.view && Math.max(...(this.open.view.axes ?? [0])) < Math.max(value.shape.length, 1) ? this.open.view : { axes: null, at: [], row: 0, column: 0, rows: 12, columns: 10 };
    const plane = planeOf(value, view);
    const kept = value.kept?.map((indices) => indices.length) ?? [];
    const note = !value.kept ? "" : value.cells ? `thinned: this file has ${kept.join("×")} of ${value.shape.join("×")} elements, evenly spaced; the statistics are of all` : "thinned: this file has the statistics, and no elements";
    const difference = against === null ? null : differenceOf(value, this.at(against) < 0 ? undefined : this.find(name, frame, this.at(against)), plane, view, against);
    return { ...whole, page: value.cells ? pageOf(plane, view) : null, picture: value.cells ? pictureOf(plane) : "", note, difference };
  }

  /** The index of the position at a step, that at the beginning of a run where there are two; -1 without one. */
  at(step) {
    return this.steps.findLastIndex(({ at }) => at === step);
  }

  rows() {
    return this.stops.map(({ number, text, hits, kind, what }) => {
      const spot = kind === "at" ? what.split(":").map(Number) : null;
      return { number, text, hits, spot, ops: spot ? [spot] : [] };
    });
  }

  traits() {
    const watches = this.saved.steps[this.k].watches;
    return { watches, stops: this.rows(), scope: this.scope(), values: this.values(), opened: this.opened(), position: this.position() };
  }

  // ---- moves

  go(k, reason) {
    this.k = Math.max(0, Math.min(k, this.steps.length - 1));
    const ends = this.k === this.steps.length - 1;
    const step = this.steps[this.k];
    this.reason = ends && (step.state === "done" || step.error.length) ? step.reason : ends && !reason.startsWith("breakpoint") ? reason + "; the recording ends here" : reason;
    this.model.set(this.traits());
    this.moved(this);
  }

  /** Go on in a direction until `over(k)`. */
  until(by, over, reason) {
    let k = this.k + by;
    while (k > 0 && k < this.steps.length - 1 && !over(k)) k += by;
    const back = by < 0 ? " back" : "";
    this.go(k, k <= 0 ? "the beginning of the recording" : reason + back);
  }

  /** The first stop at a step: before its operator, or, going `by` 1, after the step that led there. */
  stopAt(k, by) {
    const after = this.steps[by > 0 ? k : k + 1];
    return this.stops.find(({ kind, what }) => {
      const { before, after: wrote } = STOPS[kind];
      return before ? this.steps[k].here && before(what, this.steps[k], this.steps[k - 1]) : after && wrote(what, after);
    });
  }

  resume(by) {
    for (let k = this.k + by; k >= 0 && k < this.steps.length; k += by) {
      const stop = this.stopAt(k, by);
      if (!stop) continue;
      stop.hits += by > 0 ? 1 : 0;
      return this.go(k, `breakpoint ${stop.text}${by < 0 ? ", backwards" : ""}`);
    }
    return by > 0 ? this.go(this.steps.length - 1, "the end") : this.go(0, "the beginning of the recording");
  }

  move(word) {
    const depth = (k) => this.steps[k].frames.length;
    const here = depth(this.k);
    const moves = {
      step: () => this.go(this.k + 1, "after 1 step"),
      back: () => this.go(this.k - 1, this.k > 1 ? "after 1 step back" : "the beginning of the recording"),
      next: () => this.until(1, (k) => depth(k) <= here, "after 1 operator"),
      rnext: () => this.until(-1, (k) => depth(k) <= here, "after 1 operator"),
      out: () => this.until(1, (k) => depth(k) < here, "after the block"),
      continue: () => this.resume(1),
      rcontinue: () => this.resume(-1),
      restart: () => this.go(this.at(Math.max(this.first, ...this.runs.filter((at) => at < this.steps[this.k].at))), "the beginning of the run"),
    };
    moves[word]?.();
  }

  // ---- requests of the panel

  /** { kind, what } of a breakpoint as users write it; null for one that recorded steps cannot answer. */
  parse(text) {
    const [, kind, what] = /^\s*(\w+)\s*(.*?)\s*$/s.exec(text) ?? [];
    return kind in STOPS && Boolean(what) === (kind !== "nan") ? { kind, what } : null;
  }

  add(text) {
    this.stops.push({ ...this.parse(text), text: text.trim(), number: ++this.number, hits: 0 });
  }

  answer(message) {
    const { do: word } = message;
    const say = (problem) => this.model.emit("msg:custom", { problem });
    const redraw = () => this.model.set(this.traits());
    const acts = {
      move: () => this.move(message.word),
      go: () => this.go(this.at(Math.max(this.first, Math.min(message.at, this.last))), `went to step ${message.at}`),
      until: () => {
        const k = this.steps.findIndex((step, i) => i > this.k && String(step.here) === String([message.block, message.index]));
        k < 0 ? say(`No later step of this recording is before operator ${message.block}:${message.index}.`) : this.go(k, `before ${message.block}:${message.index}`);
      },
      mark: () => {
        const text = `at ${message.block}:${message.index}`;
        const old = this.stops.length;
        this.stops = this.stops.filter((stop) => stop.text !== text);
        if (this.stops.length === old) this.add(text);
        redraw();
      },
      break: () => {
        if (!this.parse(message.text)) return say("A saved session stops at: nan, op mul, var loss, at 0:12, block 1. Conditions need a kernel.");
        this.add(message.text);
        redraw();
      },
      clear: () => {
        this.stops = this.stops.filter((stop) => stop.number !== message.number);
        redraw();
      },
      frame: () => ((this.window = { ...this.window, frame: message.frame, first: 0 }), redraw()),
      window: () => ((this.window = { ...this.window, first: message.first, count: message.count, part: message.part }), redraw()),
      open: () => {
        this.open = { name: message.name, frame: message.frame ?? -1, view: null, against: null };
        redraw();
        if (message.name) this.opens(message.name);
      },
      view: () => ((this.open.view = { axes: message.axes ?? null, at: message.at, row: message.row, column: message.column, rows: message.rows, columns: message.columns }), redraw()),
      against: () => ((this.open.against = message.step), redraw()),
    };
    acts[word]?.();
  }
}
