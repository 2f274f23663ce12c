const LABELS = [
  ["1", "entailment", "definitely correct"],
  ["2", "neutral", "maybe correct, maybe not"],
  ["3", "contradiction", "definitely incorrect"],
];
const SIDES = ["premise", "hypothesis"];
const PLACES = { first: "a", second: "b" }; // of two annotators' answers, in an adjudication, and the keys that take them
const PATIENCE = 10_000; // milliseconds until the page says that nobody answers

function element(tag, name, text = "") {
  const made = document.createElement(tag);
  made.className = name;
  made.textContent = text; // never innerHTML: a text of a corpus is shown as text
  return made;
}

function render({ model, el }) {
  const root = element("div", "nli-review");
  root.tabIndex = 0;
  // Lumino, whose shortcuts would delete or turn the cell, leaves the keys of this element alone
  root.dataset.lmSuppressShortcuts = "true";
  const progress = element("div", "nli-review-progress");
  const fault = element("div", "nli-review-fault");
  fault.setAttribute("role", "alert");
  const fields = Object.fromEntries(SIDES.map((side) => [side, element("textarea", `nli-review-${side}`)]));
  const form = element("div", "nli-review-form");
  for (const side of SIDES) {
    const label = element("label", "nli-review-side", side);
    fields[side].rows = 3;
    label.append(fields[side]);
    form.append(label);
  }
  const said = element("div", "nli-review-said"); // both answers side by side
  const answers = Object.fromEntries(Object.keys(PLACES).map((name) => [name, element("div", `nli-review-${name}`)]));
  said.append(...Object.values(answers));
  const buttons = element("div", "nli-review-buttons");
  const keys = {};
  const add = (key, title, hint, act) => {
    const button = element("button", "nli-review-button", `${title} (${key})`);
    button.type = "button";
    button.title = hint;
    button.onclick = act;
    keys[key] = button;
    buttons.append(button);
  };
  let waiting = false; // from an answer until it is on disk and the next pair is here
  let given = {};

  const send = (message) => {
    if (waiting) return;
    waiting = true;
    show();
    model.send(message);
    const asked = model.get("state").turn;
    setTimeout(() => {
      if (waiting && model.get("state").turn === asked) {
        fault.textContent = "The kernel has not answered. Your last answer may not be saved. Run the cell again.";
      }
    }, PATIENCE);
  };
  for (const [key, label, hint] of LABELS) {
    add(key, label, hint, () => {
      const texts = SIDES.map((side) => [side, fields[side].value]);
      send({ act: "label", item: given.item, label, ...Object.fromEntries(texts) });
    });
  }
  for (const [name, key] of Object.entries(PLACES)) {
    add(key, `the ${name} answer`, "its label, with its texts", () => {
      const texts = SIDES.map((side) => [side, given[`${name}_${side}`]]);
      const label = { act: "label", item: given.item, label: given[name], ...Object.fromEntries(texts) };
      send(given[name] === "discard" ? { act: "discard", item: given.item } : label);
    });
    keys[key].hidden = true; // until a pair has answers
  }
  add("d", "discard", "of low quality, or offensive", () => send({ act: "discard", item: given.item }));
  add("r", "revise", "keep the meaning, change as little as possible; Esc when done", () => fields.premise.focus());
  add("u", "undo", "undo the last answer", () => send({ act: "undo" }));

  function show() {
    const state = model.get("state");
    const open = state.pair !== null && !waiting;
    for (const side of SIDES) fields[side].readOnly = !open;
    for (const [key, button] of Object.entries(keys)) {
      button.disabled = button.hidden || (key === "u" ? waiting || state.done === 0 : !open);
    }
    root.dataset.turn = waiting ? "" : state.turn; // for who watches from outside
    const end = state.pair === null ? ", all done" : "";
    progress.textContent = `${state.annotator}: ${state.done} of ${state.pairs} pairs answered${end}`;
    fault.textContent = state.fault;
  }
  function turn() {
    const state = model.get("state");
    const next = state.pair ?? {};
    waiting = false;
    if (next.item !== given.item || !state.fault) {
      given = next;
      for (const side of SIDES) fields[side].value = next[side] ?? "";
    }
    said.hidden = !("first" in given);
    for (const [name, key] of Object.entries(PLACES)) {
      keys[key].hidden = said.hidden;
      const revised = SIDES.filter((side) => given[`${name}_${side}`] !== given[side]);
      const lines = said.hidden ? [] : [given[name], ...revised.map((side) => `${side}: ${given[`${name}_${side}`]}`)];
      answers[name].replaceChildren(...lines.map((line) => element("p", "", line)));
    }
    show();
    root.focus({ preventScroll: true });
  }

  root.addEventListener("keydown", (event) => {
    const typing = event.target instanceof HTMLTextAreaElement;
    if (event.key === "Escape") {
      root.focus();
    } else if (!typing && !event.repeat && !event.isComposing && !(event.ctrlKey || event.metaKey || event.altKey)) {
      const button = keys[event.key.toLowerCase()];
      if (!button) return;
      event.preventDefault();
      button.click(); // does nothing where it is disabled
    }
    event.stopPropagation();
  });

  root.append(progress, form, said, buttons, fault);
  el.append(root);
  model.on("change:state", turn);
  turn();
  return () => model.off("change:state", turn);
}

export default { render };
