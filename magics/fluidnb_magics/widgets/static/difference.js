// Two runs compared: both programs, and the values of the operator that is chosen in one of them.

function render({ model, el }) {
  const choose = (group, side) => {
    const place = Number(group.id.match(/op_0_(\d+)$/)?.[1] ?? NaN);
    const found = model.get("operators").findIndex((each) => each[side] === place);
    if (found >= 0) show(found);
    else values.textContent = "This operator was not compared by itself.";
  };
  const { root, body, dispose } = framed(model, el, "difference", {
    Enter: (event) => {
      const group = event.target.closest?.(".fluidnb-op");
      if (group) choose(group, sides.findIndex((side) => side.contains(group)));
    },
  });
  root.setAttribute("aria-label", "Two runs compared");
  // the kernel draws, every text in it is escaped
  const drawn = (html, attributes) => {
    const element = tag("div", attributes);
    element.innerHTML = html;
    return element;
  };
  const sides = model.get("graphs").map((svg, side) =>
    drawn(svg, {
      class: "graph",
      onclick: (event) => {
        const group = event.target.closest(".fluidnb-op");
        if (group) choose(group, side);
      },
    }),
  );
  const values = tag("div", { class: "values", role: "status", "aria-live": "polite" });
  const show = (number) => {
    const [index, other, title, state, html] = model.get("operators")[number];
    for (const [side, place] of [index, other].entries())
      for (const group of sides[side].querySelectorAll(".fluidnb-op"))
        group.classList.toggle("chosen", place !== null && group.id.endsWith(`op_0_${place}`));
    values.replaceChildren(tag("div", { class: "title" }, `${title}: ${state}`), drawn(html));
  };
  for (const group of sides.flatMap((side) => [...side.querySelectorAll(".fluidnb-op")])) {
    group.setAttribute("tabindex", "0");
    group.setAttribute("role", "button");
  }
  body.append(
    drawn(model.get("summary"), { class: "summary" }),
    tag("div", { class: "graphs" }, ...sides.filter((side) => side.innerHTML)),
    values,
  );
  if (model.get("first") >= 0) show(model.get("first"));
  else values.textContent = "Click an operator: its values in both runs are shown here.";
  return dispose;
}

export default { render };
