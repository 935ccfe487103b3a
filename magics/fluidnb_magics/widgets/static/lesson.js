// Shared by the lessons: the picture, which the kernel draws, and the controls of its steps.

/**
 * The frame of a lesson. Gives { body, say, back, slider, forward, status, picture, show(shown, last, text), follow(draw) }:
 * `show` shows a picture and its step, `follow` calls `draw` now and at each change, and gives what ends that.
 */
function lesson(model, el, name, label) {
  const go = (by) => ask(model, "go", { step: Math.max(0, model.get("shown").step + by) });
  const { root, body, say, dispose } = framed(model, el, name, {
    ArrowLeft: () => go(-1),
    ArrowRight: () => go(1),
    Home: () => ask(model, "go", { step: 0 }),
    End: () => ask(model, "go", { step: -1 }),
  });
  root.setAttribute("aria-label", label);
  const slider = tag("input", { type: "range", min: "0", oninput: () => ask(model, "go", { step: Number(slider.value) }) });
  const back = tag("button", { onclick: () => go(-1), title: "one step back (←)", "aria-label": "one step back" }, "◀");
  const forward = tag("button", { onclick: () => go(1), title: "one step forward (→)", "aria-label": "one step forward" }, "▶");
  const status = tag("output");
  const picture = tag("div", { class: "picture" });
  return {
    body, say, back, slider, forward, status, picture,
    show(shown, last, text) {
      const open = picture.querySelector("details")?.open;
      picture.innerHTML = shown.picture; // drawn by the kernel, every text in it escaped
      if (open) picture.querySelector("details").open = true;
      slider.max = String(last);
      slider.value = String(shown.step);
      status.textContent = text;
      back.disabled = shown.step === 0;
      forward.disabled = shown.step === last;
    },
    follow(draw) {
      model.on("change:shown", draw);
      draw();
      return () => {
        model.off("change:shown", draw);
        dispose();
      };
    },
  };
}
