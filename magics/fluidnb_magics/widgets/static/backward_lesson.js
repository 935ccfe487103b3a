// The lesson about backward: the kernel reads the program and draws; the page requests programs and steps.

function render({ model, el }) {
  const { body, back, slider, forward, status, picture, show, follow } = lesson(model, el, "backward_lesson", "append_backward, step by step");
  const program = tag("select", { onchange: () => ask(model, "program", { name: program.value }) });
  forward.textContent = "▶ step";
  const names = tag("input", {
    class: "names",
    spellcheck: "false",
    title: "names of variables without a gradient; none is propagated through them",
    onchange: () => ask(model, "no_grad", { text: names.value }),
  });
  picture.onclick = (event) => {
    const step = event.target.closest("[data-step]")?.dataset.step;
    if (step !== undefined && step !== "-1" && model.comm_live !== false) ask(model, "go", { step: Number(step) });
  };
  body.append(
    tag(
      "div",
      { class: "bar" },
      tag("label", {}, "program ", program),
      back,
      forward,
      tag("label", {}, "step ", slider),
      status,
      tag("label", {}, "no_grad_set ", names),
    ),
    picture,
  );
  let drawn = "";
  const draw = () => {
    const shown = model.get("shown");
    show(shown, shown.steps - 1, `${shown.step} of 0 to ${shown.steps - 1}`);
    if (document.activeElement !== names || shown.program !== drawn) names.value = shown.no_grad;
    program.replaceChildren(...shown.programs.map((name) => tag("option", { value: name }, name)));
    program.value = drawn = shown.program;
  };
  return follow(draw);
}

export default { render };
