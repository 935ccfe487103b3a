// The lesson about backward: the kernel has watched it and draws; the page asks for programs and steps.

function render({ model, el }) {
  const go = (by) => ask(model, "go", { step: Math.max(0, model.get("shown").step + by) });
  const { root, body, dispose } = framed(model, el, "backward_lesson", {
    ArrowLeft: () => go(-1),
    ArrowRight: () => go(1),
    Home: () => ask(model, "go", { step: 0 }),
    End: () => ask(model, "go", { step: -1 }),
  });
  root.setAttribute("aria-label", "How append_backward writes its operators");
  const program = tag("select", { onchange: () => ask(model, "program", { name: program.value }) });
  const slider = tag("input", { type: "range", min: "0", oninput: () => ask(model, "go", { step: Number(slider.value) }) });
  const back = tag("button", { onclick: () => go(-1), title: "one step back (←)", "aria-label": "one step back" }, "◀");
  const on = tag("button", { onclick: () => go(1), title: "one step on (→)", "aria-label": "one step on" }, "▶ step");
  const told = tag("output");
  const names = tag("input", {
    class: "names",
    spellcheck: "false",
    title: "names of variables that get no gradient and let none pass",
    onchange: () => ask(model, "no_grad", { text: names.value }),
  });
  const picture = tag("div", {
    class: "picture",
    onclick: (event) => {
      const step = event.target.closest("[data-step]")?.dataset.step;
      if (step !== undefined && step !== "-1" && model.comm_live !== false) ask(model, "go", { step: Number(step) });
    },
  });
  body.append(
    tag(
      "div",
      { class: "bar" },
      tag("label", {}, "program ", program),
      back,
      on,
      tag("label", {}, "step ", slider),
      told,
      tag("label", {}, "no_grad_set ", names),
    ),
    picture,
  );
  let drawn = "";
  const draw = () => {
    const shown = model.get("shown");
    const open = picture.querySelector("details")?.open;
    picture.innerHTML = shown.picture; // drawn by the kernel, every text in it escaped
    if (open) picture.querySelector("details").open = true;
    if (document.activeElement !== names || shown.program !== drawn) names.value = shown.no_grad;
    program.replaceChildren(...shown.programs.map((name) => tag("option", { value: name }, name)));
    program.value = drawn = shown.program;
    slider.max = String(shown.steps - 1);
    slider.value = String(shown.step);
    told.textContent = `${shown.step} of 0 to ${shown.steps - 1}`;
    back.disabled = shown.step === 0;
    on.disabled = shown.step === shown.steps - 1;
  };
  model.on("change:shown", draw);
  draw();
  return () => {
    model.off("change:shown", draw);
    dispose();
  };
}

export default { render };
