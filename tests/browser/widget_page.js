// Widgets on a plain page: models whose messages go to Python by `toKernel`, and whose answers come back with it.
async ({ widgets }) => {
  window.models = [];
  const decoded = (state) =>
    Object.fromEntries(
      Object.entries(state).map(([name, value]) => [
        name,
        value?.base64 === undefined ? value : new DataView(Uint8Array.from(atob(value.base64), (c) => c.charCodeAt(0)).buffer),
      ]),
    );
  for (const [index, { esm, css, state, title }] of widgets.entries()) {
    const values = decoded(state);
    const listeners = {};
    const fire = (event, ...args) => (listeners[event] ?? []).slice().forEach((f) => f(...args));
    const model = {
      get: (name) => values[name],
      set: (name, value) => (values[name] = value),
      on: (event, f) => (listeners[event] ??= []).push(f),
      off: (event, f) => (listeners[event] = (listeners[event] ?? []).filter((each) => each !== f)),
      send: async (content) => {
        const answer = await window.toKernel(index, content);
        const changed = decoded(answer.state);
        Object.assign(values, changed);
        for (const name of Object.keys(changed)) fire("change:" + name);
        if (Object.keys(changed).length) fire("change");
        for (const message of answer.messages) fire("msg:custom", message, []);
      },
      save_changes: () => {},
      redraw: () => {
        for (const name of Object.keys(values)) fire("change:" + name);
        fire("change");
      },
    };
    const section = document.createElement("section");
    const heading = document.createElement("h3");
    heading.textContent = title;
    const style = document.createElement("style");
    style.textContent = css;
    const home = document.createElement("div");
    home.id = title;
    section.append(heading, style, home);
    document.querySelector("main").append(section);
    const module = await import(URL.createObjectURL(new Blob([esm], { type: "text/javascript" })));
    await module.default.render({ model, el: home });
    window.models.push(model);
  }
}
