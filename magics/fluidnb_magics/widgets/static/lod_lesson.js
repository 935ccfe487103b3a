// The lesson about sequences: the kernel runs the operators and draws; the page requests lengths, levels and steps.

function render({ model, el }) {
  const { body, say, back, slider, forward, status, picture, show, follow } = lesson(model, el, "lod_lesson", "Sequences and the steps of a recurrent network");
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
  body.append(
    tag("div", { class: "bar" }, tag("label", {}, "lengths ", lengths), ranked, back, tag("label", {}, "step ", slider), forward, status),
    picture,
  );
  const draw = () => {
    const shown = model.get("shown");
    show(shown, shown.steps - 1, `${shown.step} of 0 to ${shown.steps - 1}`);
    if (document.activeElement !== lengths) lengths.value = shown.text;
    level.replaceChildren(...Array.from({ length: shown.levels }, (_, k) => tag("option", { value: k }, String(k))));
    level.value = String(shown.level);
    ranked.hidden = shown.levels < 2;
    lengths.classList.remove("wrong");
  };
  const onMessage = (message) => lengths.classList.toggle("wrong", Boolean(message.problem));
  model.on("msg:custom", onMessage);
  const end = follow(draw);
  say("");
  return () => {
    clearTimeout(soon);
    model.off("msg:custom", onMessage);
    end();
  };
}

export default { render };
