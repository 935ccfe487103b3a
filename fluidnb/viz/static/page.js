// A saved page: the program, and the recorded steps of a session where there are some.

/** The bytes of a part of the file, still compressed. */
function base64(id) {
  const text = atob(document.getElementById("data-" + id).textContent);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i); // ten times as fast as Uint8Array.from
  return bytes;
}

const isIn = (id) => Boolean(document.getElementById("data-" + id));

/** The bytes of a part of the file. */
async function unpacked(id) {
  const stream = new Blob([base64(id)]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

const textOf = async (id) => new TextDecoder().decode(await unpacked(id));

/** The button that changes between light and dark. */
function themeButton() {
  const root = document.documentElement;
  const isDark = () => (root.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  const button = tag("button", { type: "button", class: "page-theme" });
  const draw = () => (button.textContent = isDark() ? "light colours" : "dark colours");
  button.onclick = () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    draw();
  };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  draw();
  return button;
}

const KEYS = [
  ["→ ←", "step forwards, backwards"], ["Home End", "the first step, the last one"], ["n N", "over an operator with its blocks"], ["c C", "to the next breakpoint, to the one before"],
  ["/", "search the program"], ["↑ ↓", "choose an operator in a list"], ["Enter", "open it; in the panel's program, set a breakpoint"],
  ["Alt ← →", "the selection before, after"],
];

/** The frame that is drawn now is on the screen. */
const painted = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));

async function showPage() {
  const main = document.getElementById("page");
  const [above, below] = [tag("section", { class: "page-steps", "aria-label": "steps" }), tag("section", { class: "page-program", "aria-label": "program" })];
  const explore = new SavedModel({ widget_id: "program", table: null, cells: [], position: {}, graph: false }, (message) => {
    if (message.do === "sheet" && sheets[message.type]) explore.emit("msg:custom", { sheet: message.type, lines: sheets[message.type] });
    if (message.do === "value" && player) explore.emit("msg:custom", { value: message.name, ...summary(player, message.name) });
  });
  let player = null;
  let sheets = {};
  if (isIn("steps")) {
    const follow = ({ state, at, here, reason, location }) =>
      explore.set({ position: { state, op: here, frames: [], text: [`${state} at step ${at.toLocaleString("en")}, ${reason}`, location].filter(Boolean).join("  ") } });
    const choose = (name) => explore.emit("msg:custom", { chosen: { ops: [], variable: name, cell: null } });
    const parts = await Promise.all(["steps", "listing", "buttons"].map(textOf));
    player = new Player(JSON.parse(parts[0]), parts[1], JSON.parse(parts[2]), (moved) => follow(moved.position()), choose);
    follow(player.position());
    main.replaceChildren(above);
    panel.render({ model: player.model, el: above });
    await painted(); // the program may be large
  } else main.replaceChildren();
  explore.traits.table = await unpacked("table");
  main.append(below);
  explorer.render({ model: explore, el: below });
  const keys = tag("details", { class: "page-keys" }, tag("summary", {}, "Keys"), tag("dl", {}, ...KEYS.flatMap(([key, text]) => [tag("dt", {}, key), tag("dd", {}, text)])));
  document.querySelector("header").append(keys, themeButton());
  document.addEventListener("keydown", typed, true);
  main.querySelector(".fluidnb-widget").focus({ preventScroll: true });
  await painted();
  sheets = JSON.parse(await textOf("sheets"));
  document.body.dataset.ready = "true";
}

/** A variable's value at the step where the session is, as the card of the explorer shows it. */
function summary(player, name) {
  const line = player.find(name)?.line;
  const steps = player.writes(name);
  const written = steps.length ? `written at step${steps.length > 1 ? "s" : ""} ${steps.slice(0, 20).join(", ")}${steps.length > 20 ? ", …" : ""}` : "no recorded step wrote it";
  const lines = line ? [[[line.facts, "dim"]], [[line.statistics, line.bad ? "warn" : ""]], [[written, "dim"]]] : [];
  return { lines: lines.filter(([[text]]) => text), where: `at step ${player.position().at.toLocaleString("en")}` };
}

/** Keys of the page: those of the panel and the search, wherever the focus is. */
function typed(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest?.("input, select, textarea")) return;
  if (event.key === "/") {
    const search = document.querySelector(".fe-search");
    search.scrollIntoView({ block: "center" });
    search.focus();
    event.preventDefault();
    event.stopPropagation();
  } else if (!event.target.closest?.(".fluidnb-widget")) {
    const again = new KeyboardEvent("keydown", { key: event.key, shiftKey: event.shiftKey, cancelable: true });
    document.querySelector(".fluidnb-widget").dispatchEvent(again);
    if (again.defaultPrevented) event.preventDefault();
  }
}

document.getElementById("wait").textContent = "Reading …";
showPage().catch((error) => {
  document.getElementById("page").replaceChildren(tag("p", { role: "alert" }, `This browser cannot show the page: ${error}`));
});
