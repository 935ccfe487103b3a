// The lesson about optimizers: the kernel runs their steps and draws; the page asks for choices and steps.

/** A select with the names of a table; each option says in words what it is. */
function choices(table, chosen, label, onchange) {
  const options = Object.entries(table).map(([name, words]) => tag("option", { value: name, title: words }, name));
  const select = tag("select", { "aria-label": label, title: table[chosen], onchange }, ...options);
  select.value = chosen;
  return select;
}

function render({ model, el }) {
  const go = (by) => ask(model, "go", { step: Math.max(0, model.get("shown").step + by) });
  const { root, body, dispose } = framed(model, el, "optimizer_lesson", {
    ArrowLeft: () => go(-1),
    ArrowRight: () => go(1),
    Home: () => ask(model, "go", { step: 0 }),
    End: () => ask(model, "go", { step: -1 }),
  });
  root.setAttribute("aria-label", "Optimizers side by side");
  const kinds = model.get("kinds");
  const surface = choices(kinds.surfaces, model.get("shown").surface, "surface", () =>
    ask(model, "surface", { name: surface.value }),
  );
  const slider = tag("input", { type: "range", min: "0", oninput: () => ask(model, "go", { step: Number(slider.value) }) });
  const back = tag("button", { onclick: () => go(-1), title: "one step back (←)", "aria-label": "one step back" }, "◀");
  const on = tag("button", { onclick: () => go(1), title: "one step on (→)", "aria-label": "one step on" }, "▶");
  const told = tag("output");
  const count = tag("input", {
    class: "count",
    type: "number",
    min: "1",
    max: "400",
    onchange: () => ask(model, "steps", { count: Number(count.value) }),
  });
  const runners = tag("div", { class: "runners" });
  const picture = tag("div", { class: "picture" });
  body.append(
    tag(
      "div",
      { class: "bar" },
      tag("label", {}, "surface ", surface),
      back,
      tag("label", {}, "step ", slider),
      on,
      told,
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
    const look = () => model.get("shown").focus !== index && ask(model, "focus", { index });
    return tag(
      "span",
      {
        class: "runner" + (index === shown.focus ? " focus" : ""),
        style: `--own: ${choice.colour}`,
        onclick: (event) => event.target.closest("select, input, button") || look(),
      },
      tag("button", { title: "show it in full", "aria-pressed": String(index === shown.focus), onclick: look }, "●"),
      name,
      rate,
      schedule,
      decay,
      tag("button", { title: "take it away", "aria-label": `take ${choice.name} away`, disabled: shown.choices.length < 2, onclick: () => ask(model, "remove", { index }) }, "×"),
    );
  };

  let drawn = "";
  const draw = () => {
    const shown = model.get("shown");
    const open = picture.querySelector("details")?.open;
    picture.innerHTML = shown.picture; // drawn by the kernel, every text in it escaped
    if (open) picture.querySelector("details").open = true;
    surface.value = shown.surface;
    slider.max = String(shown.steps);
    slider.value = String(shown.step);
    if (document.activeElement !== count) count.value = String(shown.steps);
    told.textContent = String(shown.step);
    back.disabled = shown.step === 0;
    on.disabled = shown.step === shown.steps;
    const now = JSON.stringify([shown.choices, shown.focus]);
    if (now === drawn) return; // a slider that moves leaves what is being typed alone
    drawn = now;
    const held = [...runners.querySelectorAll("select, input, button")].indexOf(document.activeElement);
    runners.replaceChildren(
      ...shown.choices.map((choice, index) => runner(choice, index, shown)),
      tag("button", { title: "one more optimizer", disabled: shown.choices.length >= 6, onclick: () => ask(model, "add") }, "+ optimizer"),
    );
    if (held >= 0) runners.querySelectorAll("select, input, button")[held]?.focus();
  };
  model.on("change:shown", draw);
  draw();
  return () => {
    model.off("change:shown", draw);
    dispose();
  };
}

export default { render };
