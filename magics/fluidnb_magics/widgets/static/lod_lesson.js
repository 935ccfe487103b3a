// The lesson about sequences: the kernel runs the operators and draws; the page asks for lengths, levels and steps.

function render({ model, el }) {
  const go = (by) => ask(model, "go", { step: Math.max(0, model.get("shown").step + by) });
  const { root, body, say, dispose } = framed(model, el, "lod_lesson", {
    ArrowLeft: () => go(-1),
    ArrowRight: () => go(1),
    Home: () => ask(model, "go", { step: 0 }),
    End: () => ask(model, "go", { step: -1 }),
  });
  let soon;
  const lengths = tag("input", {
    class: "lengths",
    spellcheck: "false",
    title: "lengths of the sequences; a slash begins the next level: 2 1 / 2 3 1",
    oninput: () => {
      clearTimeout(soon);
      soon = setTimeout(() => ask(model, "type", { text: lengths.value }), 120);
    },
  });
  const level = tag("select", { onchange: () => ask(model, "level", { level: Number(level.value) }) });
  const ranked = tag("label", {}, "ranked level ", level);
  const slider = tag("input", { type: "range", min: "0", oninput: () => ask(model, "go", { step: Number(slider.value) }) });
  const told = tag("output");
  const back = tag("button", { onclick: () => go(-1), title: "one step back (←)", "aria-label": "one step back" }, "◀");
  const on = tag("button", { onclick: () => go(1), title: "one step on (→)", "aria-label": "one step on" }, "▶");
  const picture = tag("div", { class: "picture" });
  root.setAttribute("aria-label", "Sequences and the steps of a recurrent network");
  body.append(
    tag("div", { class: "bar" }, tag("label", {}, "lengths ", lengths), ranked, back, tag("label", {}, "step ", slider), on, told),
    picture,
  );
  const draw = () => {
    const shown = model.get("shown");
    const open = picture.querySelector("details")?.open;
    picture.innerHTML = shown.picture; // drawn by the kernel, every text in it escaped
    if (open) picture.querySelector("details").open = true;
    if (document.activeElement !== lengths) lengths.value = shown.text;
    level.replaceChildren(...Array.from({ length: shown.levels }, (_, k) => tag("option", { value: k }, String(k))));
    level.value = String(shown.level);
    ranked.hidden = shown.levels < 2;
    slider.max = String(shown.steps - 1);
    slider.value = String(shown.step);
    told.textContent = `${shown.step} of 0 to ${shown.steps - 1}`;
    back.disabled = shown.step === 0;
    on.disabled = shown.step === shown.steps - 1;
    lengths.classList.remove("wrong");
  };
  const hear = (message) => lengths.classList.toggle("wrong", Boolean(message.problem));
  model.on("change:shown", draw);
  model.on("msg:custom", hear);
  draw();
  say("");
  return () => {
    clearTimeout(soon);
    model.off("change:shown", draw);
    model.off("msg:custom", hear);
    dispose();
  };
}

export default { render };
