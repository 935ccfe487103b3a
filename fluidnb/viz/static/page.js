// A saved page: the program, and the recorded steps of a session where there are some.

const base64 = (id) => Uint8Array.from(atob(document.getElementById("data-" + id).textContent), (sign) => sign.charCodeAt(0));
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

async function showPage() {
  const main = document.getElementById("page");
  const sheets = JSON.parse(await textOf("sheets"));
  const table = await unpacked("table");
  const parts = [];
  let player = null;
  const explore = new SavedModel({ widget_id: "program", table, cells: [], position: {}, graph: false }, (message) => {
    if (message.do === "sheet" && sheets[message.type]) explore.emit("msg:custom", { sheet: message.type, lines: sheets[message.type] });
    if (message.do === "value" && player) explore.emit("msg:custom", { value: message.name, ...summary(player, message.name) });
  });
  const follow = (moved) => {
    const { state, at, here, reason, location } = moved.position();
    explore.set({ position: { state, op: here, frames: [], text: [`${state} at step ${at.toLocaleString("en")}, ${reason}`, location].filter(Boolean).join("  ") } });
  };
  if (isIn("steps")) {
    const choose = (name) => explore.emit("msg:custom", { chosen: { ops: [], variable: name, cell: null } });
    player = new Player(JSON.parse(await textOf("steps")), await textOf("listing"), JSON.parse(await textOf("buttons")), follow, choose);
    const section = tag("section", { class: "page-steps", "aria-label": "steps" });
    parts.push([section, panel, player.model]);
  }
  parts.push([tag("section", { class: "page-program", "aria-label": "program" }), explorer, explore]);
  main.replaceChildren(...parts.map(([section]) => section));
  for (const [section, widget, model] of parts) widget.render({ model, el: section });
  if (player) follow(player);
  const keys = tag("details", { class: "page-keys" }, tag("summary", {}, "Keys"), tag("dl", {}, ...KEYS.flatMap(([key, text]) => [tag("dt", {}, key), tag("dd", {}, text)])));
  document.querySelector("header").append(keys, themeButton());
  document.addEventListener("keydown", typed, true);
  const first = main.querySelector(".fluidnb-widget");
  first.focus({ preventScroll: true });
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
