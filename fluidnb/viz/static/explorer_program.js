
// A program as the page holds it: what stands in which row, who uses what, what a search finds, what folds.

const ROLES = ["forward", "backward", "optimizer"];
const [BLOCK, INDEX, DEPTH, TYPE, ROLE, INS, OUTS, ATTRS, PLACE, SOURCE, FORWARD] = Array(11).keys();
const LONG = 40; // characters of the results of an operator

/** The table of fluidnb.viz.read_table, with what follows from it. Rows and variables are called by their numbers. */
class Program {
  constructor(table) {
    Object.assign(this, table);
    this.places = new Map(this.rows.map((row, i) => [row[BLOCK] + ":" + row[INDEX], i]));
    this.ends = new Int32Array(this.rows.length); // the last row of what an operator runs; itself if it runs nothing
    const open = [];
    this.rows.forEach((row, i) => {
      while (open.length && this.rows[open.at(-1)][DEPTH] >= row[DEPTH]) this.ends[open.pop()] = i - 1;
      open.push(i);
    });
    open.forEach((i) => (this.ends[i] = this.rows.length - 1));
    this.heads = new Map(this.loose);
  }
  static read(view) {
    return new Program(view.byteLength ? JSON.parse(new TextDecoder().decode(view)) : { words: [""], vars: [], rows: [], runs: {}, loose: [], title: "", counts: "", left: 0 });
  }
  /** The row of [block, index]; undefined if there is none. */
  find([block, index]) {
    return this.places.get(block + ":" + index);
  }
  name(i) {
    return this.rows[i][BLOCK] + ":" + this.rows[i][INDEX];
  }
  word(i, column) {
    return this.words[this.rows[i][column]];
  }
  role(i) {
    return ROLES[this.rows[i][ROLE]];
  }
  /** What makes an operator the same one in the next version of the program, wherever it stands then. */
  identity(i) {
    return this.word(i, TYPE) + "|" + this.names(this.rows[i][OUTS]).join() + "|" + this.names(this.rows[i][INS]).join();
  }
  names(slots) {
    return slots.flatMap((slot) => slot.slice(1).map((v) => this.vars[v][0]));
  }
  attributes(i) {
    return this.rows[i][ATTRS].map(([name, text]) => [this.words[name], this.words[text]]);
  }
  /** An operator's line, as pieces. */
  line(i) {
    const row = this.rows[i];
    const written = this.names(row[OUTS]);
    const all = written.join(", ");
    const left = all.length > LONG && written.length > 1 ? `${written[0]}, … ${written.length - 1} more` : all;
    const inputs = row[INS].map((slot) => {
      const names = this.names([slot]);
      return (row[INS].length > 1 ? this.words[slot[0]] + "=" : "") + (names.length === 1 ? names[0] : `[${names.join(", ")}]`);
    });
    const inner = [...inputs, ...this.attributes(i).map(([name, text]) => `${name}=${text}`)].join(", ");
    return [...(written.length ? [[left, "name"], [" = ", ""]] : []), [this.word(i, TYPE), this.role(i)], [`(${inner})`, ""]];
  }
  facts(i) {
    for (const slot of this.rows[i][OUTS]) for (const v of slot.slice(1)) if (this.vars[v][1]) return this.vars[v][1];
    return "";
  }
  /** Rows that write and rows that read a variable. */
  uses(v) {
    if (!this.used) {
      this.used = this.vars.map(() => ({ writers: [], readers: [] }));
      this.rows.forEach((row, i) => {
        for (const [slots, who] of [[row[INS], "readers"], [row[OUTS], "writers"]])
          for (const slot of slots) for (const u of slot.slice(1)) if (this.used[u][who].at(-1) !== i) this.used[u][who].push(i);
      });
    }
    return this.used[v];
  }
  /** Rows of the operators that compute the gradient of one. */
  gradients(i) {
    if (!this.backward) {
      this.backward = new Map();
      this.rows.forEach((row, j) => {
        if (row[FORWARD] >= 0) this.backward.set(row[FORWARD], [...(this.backward.get(row[FORWARD]) ?? []), j]);
      });
    }
    return this.backward.get(i) ?? [];
  }
  /** The variables that are the gradient of one, or of which one is the gradient. */
  relatives(v) {
    const name = this.vars[v][0];
    const base = name.split("@GRAD")[0];
    return this.vars.flatMap(([other], u) => (u !== v && (other === base ? name !== base : other.startsWith(name + "@GRAD")) ? [u] : []));
  }
  /** The cell, or the file, of an operator's line. */
  cell(i) {
    return this.word(i, PLACE).split(", line")[0];
  }
}

/** The words of a search: blanks between them, quotation marks around what holds blanks. */
function wordsOf(search) {
  const words = [];
  let word = null;
  let quote = "";
  for (let k = 0; k < search.length; k++) {
    const sign = search[k];
    if (sign === "\\" && quote !== "'" && k + 1 < search.length) word = (word ?? "") + search[++k];
    else if (quote) quote === sign ? (quote = "") : (word += sign);
    else if (sign === '"' || sign === "'") [quote, word] = [sign, word ?? ""];
    else if (/\s/.test(sign)) {
      if (word !== null) words.push(word);
      word = null;
    }
    else word = (word ?? "") + sign;
  }
  return word === null ? words : [...words, word];
}

/** The rows that fit all words of a search, as %fluid show --search has it. */
function matchingRows(program, search) {
  const tests = wordsOf(search).map((word) => {
    const [, field, rest] = /^(?:(op|var|attr|cell):)?(.*)$/s.exec(word);
    const plain = rest.toLowerCase();
    const glob = /[*?]/.test(plain) && new RegExp("^" + plain.replace(/[\\^$.|+()[\]{}]/g, "\\$&").replace(/\*/g, ".*").replace(/\?/g, ".") + "$", "s");
    const fits = (text) => (glob ? glob.test(text.toLowerCase()) : text.toLowerCase().includes(plain));
    const on = (name) => !field || field === name;
    const words = program.words.map(fits); // each text once
    const cells = on("cell") && program.words.map((text) => fits(text.split(", line")[0].replace(/^cell /, "")));
    const vars = on("var") && program.vars.map(([name]) => fits(name));
    const holds = (slot) => slot.some((v, k) => k && vars[v]);
    const pairs = new Map(); // most operators have the same attributes
    const attribute = ([name, text]) => {
      const pair = name * words.length + text;
      if (!pairs.has(pair)) pairs.set(pair, fits(program.words[name] + "=" + program.words[text]));
      return pairs.get(pair);
    };
    return (row) =>
      (on("op") && words[row[TYPE]]) ||
      (vars && (row[INS].some(holds) || row[OUTS].some(holds))) ||
      (on("attr") && row[ATTRS].some(attribute)) ||
      (cells && (words[row[PLACE]] || cells[row[PLACE]]));
  });
  if (!tests.length) return [];
  return program.rows.flatMap((row, i) => (tests.every((test) => test(row)) ? [i] : []));
}

/**
 * What is listed, in order: operators, runs of them that fold, headings of blocks that nobody runs.
 * `view` holds { fold, flipped (keys of what is not as `fold` has it), keep (row -> whether it is shown; null for all) }.
 */
function listed(program, view) {
  const items = [];
  const runs = new Map((program.runs[view.fold] ?? []).map((run) => [run[0], run]));
  const ends = []; // of the runs that are open
  for (let i = 0; i < program.rows.length; ) {
    while (ends.length && ends.at(-1) < i) ends.pop();
    if (program.heads.has(i)) items.push({ row: i, last: i - 1, depth: 0, head: program.heads.get(i) });
    const run = runs.get(i);
    if (run && anyKept(view, i, run[1])) {
      const key = `${view.fold} ${program.name(i)}`;
      const isOpen = view.flipped.has(key);
      items.push({ row: i, last: run[1], depth: program.rows[i][DEPTH] + ends.length, key, isOpen, title: program.words[run[2]] });
      if (!isOpen) {
        i = run[1] + 1;
        continue;
      }
      ends.push(run[1]);
    }
    if (view.keep && !view.keep[i]) {
      i++;
      continue;
    }
    const last = program.ends[i];
    const key = program.name(i);
    const isOpen = last > i && (view.fold === "blocks") === view.flipped.has(key);
    items.push({ row: i, last, depth: program.rows[i][DEPTH] + ends.length, key: last > i ? key : "", isOpen, isOp: true });
    i = last > i && !isOpen ? last + 1 : i + 1;
  }
  return items;
}

function anyKept(view, first, last) {
  if (!view.keep) return true;
  for (let i = first; i <= last; i++) if (view.keep[i]) return true;
  return false;
}

/** Which rows are shown when only some are wanted: these, and the operators that run them. */
function kept(program, wanted) {
  const keep = new Uint8Array(program.rows.length);
  for (let i = keep.length - 1; i >= 0; i--) {
    keep[i] |= wanted(i);
    for (let j = i + 1; !keep[i] && j <= program.ends[i]; j = program.ends[j] + 1) keep[i] = keep[j];
  }
  return keep;
}
