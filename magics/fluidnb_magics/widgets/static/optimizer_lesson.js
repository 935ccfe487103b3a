// The lesson about optimizers: the kernel runs their steps and draws; the page requests choices and steps.

/** A select with the names of a table; each option has a description. */
function choices(table, chosen, label, onchange) {
  const options = Object.entries(table).map(([name, words]) => tag("option", { value: name, title: words }, name));
  const select = tag("select", { "aria-label": label, title: table[chosen], onchange }, ...options);
  select.value = chosen;
  return select;
}

function render({ model, el }) {
  const { body, back, slider, forward, status, picture, show, follow } = lesson(model, el, "optimizer_lesson", "Optimizers side by side");
  const kinds = model.get("kinds");
  const surface = choices(kinds.surfaces, model.get("shown").surface, "surface", () =>
    ask(model, "surface", { name: surface.value }),
  );
  const count = tag("input", {
    class: "count",
    type: "number",
    min: "1",
    max: "400",
    onchange: () => ask(model, "steps", { count: Number(count.value) }),
  });
  const runners = tag("div", { class: "runners" });
  body.append(
    tag(
      "div",
      { class: "bar" },
      tag("label", {}, "surface ", surface),
      back,
      tag("label", {}, "step ", slider),
      forward,
      status,
      tag("label", {}, "of ", count),
    ),
    runners,
    picture,
  );

  const runner = (choice, index, shown) => {
    const change = (own) =>
      ask(model, "choose", {
        index,
        name: name.value,
        rate: own ? "" : rate.value,
        schedule: schedule.value,
        decay: decay.value,
      });
    const name = choices(kinds.optimizers, choice.name, "optimizer", () => change(true));
    const rate = tag("input", { class: "rate", "aria-label": "learning rate", value: choice.rate, title: "learning rate", onchange: () => change() });
    const schedule = choices(kinds.schedules, choice.schedule, "learning rate schedule", () => change());
    const decay = choices(kinds.decays, choice.decay, "penalty (weight decay)", () => change());
    const focus = () => model.get("shown").focus !== index && ask(model, "focus", { index });
    return tag(
      "span",
      {
        class: "runner" + (index === shown.focus ? " focus" : ""),
        style: `--own: ${choice.colour}`,
        onclick: (event) => event.target.closest("select, input, button") || focus(),
      },
      tag("button", { title: "show its details", "aria-pressed": String(index === shown.focus), onclick: focus }, "●"),
      name,
      rate,
      schedule,
      decay,
      tag("button", { title: "remove", "aria-label": `remove ${choice.name}`, disabled: shown.choices.length < 2, onclick: () => ask(model, "remove", { index }) }, "×"),
    );
  };

  let drawn = "";
  const draw = () => {
    const shown = model.get("shown");
    show(shown, shown.steps, String(shown.step));
    surface.value = shown.surface;
    if (document.activeElement !== count) count.value = String(shown.steps);
    const now = JSON.stringify([shown.choices, shown.focus]);
    if (now === drawn) return; // a slider that moves leaves what is being typed alone
    drawn = now;
    const focused = [...runners.querySelectorAll("select, input, button")].indexOf(document.activeElement);
    runners.replaceChildren(
      ...shown.choices.map((choice, index) => runner(choice, index, shown)),
      tag("button", { title: "one more optimizer", disabled: shown.choices.length >= 6, onclick: () => ask(model, "add") }, "+ optimizer"),
    );
    if (focused >= 0) runners.querySelectorAll("select, input, button")[focused]?.focus();
  };
  return follow(draw);
}

export default { render };
