function element(tag, name, text = "") {
  const made = document.createElement(tag);
  made.className = name;
  made.textContent = text; // never innerHTML: a text of a corpus is shown as text
  return made;
}

const TEXTS = ["premise", "hypothesis"];
const OWN = ["position", "tag", "uid", "label", ...TEXTS];

function render({ model, el }) {
  const root = element("div", "nli-explorer");
  root.dataset.lmSuppressShortcuts = "true"; // letters typed into the tag are no shortcuts of JupyterLab
  const point = element("div", "nli-explorer-point");
  const bar = element("form", "nli-explorer-bar");
  const count = element("span", "nli-explorer-count");
  const name = element("input", "nli-explorer-tag");
  name.placeholder = "tag for the selected pairs";
  name.setAttribute("aria-label", name.placeholder);
  name.maxLength = 60;
  const give = element("button", "nli-explorer-give", "Tag");
  const take = element("button", "nli-explorer-take", "Remove tag");
  take.type = "button";
  const tags = element("span", "nli-explorer-tags");
  const fault = element("div", "nli-explorer-fault");
  fault.setAttribute("role", "alert");
  bar.append(count, name, give, take, tags);
  const table = element("table", "nli-explorer-table");
  root.append(point, bar, fault, table);
  el.append(root);

  bar.onsubmit = (event) => {
    event.preventDefault();
    if (name.value.trim()) model.send({ act: "tag", name: name.value });
  };
  take.onclick = () => model.send({ act: "tag", name: "" });

  function showPoint(shown) {
    point.replaceChildren();
    if (!shown) {
      point.append(element("p", "nli-explorer-hint", "Point at a pair to read it. Draw around pairs to select them."));
      return;
    }
    const scores = Object.keys(shown).filter((key) => !OWN.includes(key));
    const line = [`label: ${shown.label}`, ...scores.map((key) => `${key}: ${shown[key]}`)];
    if (shown.tag) line.push(`tag: ${shown.tag}`);
    for (const side of TEXTS) {
      const text = element("p", `nli-explorer-${side}`);
      text.append(element("b", "", `${side} `), document.createTextNode(shown[side]));
      point.append(text);
    }
    point.append(element("p", "nli-explorer-scores", line.join(" · ")), element("code", "nli-explorer-uid", shown.uid));
  }

  function showTable(rows, columns) {
    const head = element("tr", "");
    for (const column of columns) head.append(element("th", "", column));
    const body = rows.map((row) => {
      const line = element("tr", "");
      line.onclick = () => model.send({ act: "point", position: row.position });
      for (const column of columns) line.append(element("td", "", row[column]));
      return line;
    });
    table.replaceChildren(...(rows.length ? [head, ...body] : []));
  }

  let drawn = null;
  function show() {
    const state = model.get("state");
    showPoint(state.point);
    const part = state.selected > state.rows.length ? `, the first ${state.rows.length} below` : "";
    count.textContent = `${state.selected.toLocaleString("en")} of ${state.pairs.toLocaleString("en")} selected${part}`;
    const known = Object.entries(state.tags).map(([tag, pairs]) => `${tag} (${pairs.toLocaleString("en")})`);
    tags.textContent = known.length ? `Tags: ${known.join(", ")}` : "";
    fault.textContent = state.fault;
    give.disabled = take.disabled = !state.selected;
    root.dataset.selected = state.selected;
    const now = JSON.stringify(state.rows);
    if (now !== drawn) showTable(state.rows, state.columns);
    drawn = now;
  }
  model.on("change:state", show);
  show();
  return () => model.off("change:state", show);
}

export default { render };
