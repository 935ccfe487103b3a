
// Cards of the explorer about an operator, a variable, a cell. `go` is called with the target of a link.

const MOST_LINKS = 12;

function section(title, ...content) {
  return tag("section", {}, tag("h4", {}, title), ...content);
}

function opLink(program, row, go) {
  const label = [tag("span", { class: "p-dim" }, program.name(row) + " "), tag("span", { class: "p-" + program.role(row) }, program.word(row, TYPE))];
  return tag("button", { class: "fe-link", "data-local": true, title: program.word(row, PLACE), onclick: () => go({ row }) }, ...label);
}

function varLink(program, v, go) {
  return tag("button", { class: "fe-link p-name", "data-local": true, title: program.vars[v][4], onclick: () => go({ variable: program.vars[v][0], v }) }, program.vars[v][0]);
}

/** Links to some operators; the others are only counted until the user expands them. */
function opLinks(program, rows, go, none = "none") {
  const box = tag("span", { class: "fe-links" });
  const fill = (all) => {
    const shown = all ? rows : rows.slice(0, MOST_LINKS);
    box.replaceChildren(...shown.map((row) => opLink(program, row, go)));
    if (!rows.length) box.append(tag("span", { class: "p-dim" }, none));
    if (shown.length < rows.length)
      box.append(tag("button", { class: "fe-link", "data-local": true, onclick: () => fill(true) }, `… ${rows.length - shown.length} more`));
  };
  fill(false);
  return box;
}

function slotTable(program, slots, rowsOf, go) {
  const lines = slots.flatMap((slot) =>
    slot.slice(1).map((v, k) => [
      tag("span", { class: "p-dim" }, k ? "" : program.words[slot[0]]),
      tag("span", {}, varLink(program, v, go), " ", tag("span", { class: "p-dim" }, program.vars[v][1])),
      tag("span", { class: "fe-uses" }, ...rowsOf(v)),
    ]),
  );
  return tag("div", { class: "fe-slots" }, ...lines.flat());
}

/** The origin of an input that no operator writes, as text. */
function source(program, v) {
  const kind = program.vars[v][2];
  return kind === "data" ? "fed" : kind ? "kept between runs" : "no operator writes it";
}

function opCard(program, row, sheet, go) {
  const place = program.word(row, PLACE);
  const attributes = program.attributes(row);
  const forward = program.rows[row][FORWARD];
  const gradients = program.gradients(row);
  const inner = program.ends[row] > row ? [...new Set(program.rows.slice(row + 1, program.ends[row] + 1).map((r) => r[BLOCK]))] : [];
  const card = tag("div", { class: "fe-card" });
  card.append(
    tag("h3", {}, tag("span", { class: "p-dim" }, program.name(row) + " "), tag("span", { class: "p-" + program.role(row) }, program.word(row, TYPE)), tag("span", { class: "fe-badge fe-" + program.role(row) }, program.role(row))),
  );
  if (place) card.append(tag("div", { class: "fe-source" }, tag("span", { class: "p-place" }, place), tag("code", {}, program.word(row, SOURCE))));
  const [ins, outs] = [program.rows[row][INS], program.rows[row][OUTS]];
  const links = (label, rows, none) => {
    const others = rows.filter((other) => other !== row);
    return others.length ? [tag("span", { class: "p-dim" }, label + " "), opLinks(program, others, go)] : [tag("span", { class: "p-dim" }, none)];
  };
  const isKept = (v) => ["kept", "parameter"].includes(program.vars[v][2]);
  const origin = (v) => (isKept(v) && program.uses(v).writers.every((other) => other >= row) ? "from the previous run," : "from");
  if (ins.length) card.append(section("reads", slotTable(program, ins, (v) => links(origin(v), program.uses(v).writers, source(program, v)), go)));
  if (outs.length) card.append(section("writes", slotTable(program, outs, (v) => links("to", program.uses(v).readers, "no operator reads it"), go)));
  if (attributes.length)
    card.append(section("with", tag("div", { class: "fe-slots fe-two" }, ...attributes.flatMap(([name, text]) => [tag("span", { class: "p-dim" }, name), tag("span", {}, text)]))));
  if (inner.length) card.append(section("runs", ...inner.map((block) => tag("button", { class: "fe-link", "data-local": true, onclick: () => go({ row: program.find([block, 0]) }) }, `block ${block}`))));
  if (forward >= 0) card.append(section("gradient of", opLinks(program, [forward], go)));
  if (gradients.length) card.append(section("its gradient", opLinks(program, gradients, go)));
  card.append(sheetPart(sheet));
  return card;
}

/** The documentation of an operator, which may arrive after its card. */
function sheetPart(sheet) {
  const lines = (sheet ?? []).map((line) => tag("div", {}, ...pieces(line), "\u200b"));
  return tag("div", { class: "fe-late" }, lines.length ? tag("div", { class: "fe-sheet" }, ...lines) : null);
}

function varCard(program, v, value, go) {
  const [name, facts, kind, block, place] = program.vars[v];
  const { writers, readers } = program.uses(v);
  const relatives = program.relatives(v);
  const card = tag("div", { class: "fe-card" });
  const words = [facts, block < 0 ? "not declared" : `block ${block}`, place].filter(Boolean);
  card.append(tag("h3", {}, tag("span", { class: "p-name" }, name), kind ? tag("span", { class: "fe-badge" }, kind) : null));
  card.append(tag("div", { class: "p-dim" }, words.join("  ")));
  card.append(valuePart(value));
  card.append(section("written by", opLinks(program, writers, go, source(program, v))));
  card.append(section("read by", opLinks(program, readers, go)));
  if (relatives.length) card.append(section(name.includes("@GRAD") ? "gradient of" : "gradient", tag("span", { class: "fe-links" }, ...relatives.map((u) => varLink(program, u, go)))));
  return card;
}

/** A variable's value, which arrives after its card. */
function valuePart(value) {
  const box = tag("div", { class: "fe-late" });
  if (value?.lines.length) box.append(section("its value " + value.where, tag("div", { class: "fe-sheet fe-value" }, ...value.lines.map((line) => tag("div", {}, ...pieces(line))))));
  else if (value) box.append(section("its value", tag("span", { class: "p-dim" }, `none ${value.where}`)));
  return box;
}

function cellCard(program, cell, rows, go) {
  const counts = ROLES.map((role) => [rows.filter((row) => program.role(row) === role).length, role]).filter(([n]) => n);
  return tag(
    "div",
    { class: "fe-card" },
    tag("h3", {}, tag("span", { class: "p-name" }, `cell ${cell.title}`), cell.number ? tag("span", { class: "fe-badge" }, `[${cell.number}]`) : null),
    tag("div", { class: "p-dim" }, counts.map(([n, role]) => `${n} ${role}`).join(", ")),
    section("operators", opLinks(program, rows, go)),
  );
}
