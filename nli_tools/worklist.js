// A list of suspect labels to work through, by key: in a page from disk, and as a widget of JupyterLab.
// Texts of a corpus go into text nodes and fields alone (never innerHTML), so that nothing in them is executed.

const DECISIONS = ["fix", "keep", "ambiguous"];
const COLUMNS = ["uid", "decision", "fix_to", "note", "when", "learnt", "gold", "predicted", "premise", "hypothesis"];
const NEXT = 12; // suspects that are shown below the one to decide on

// ------------------------------------------------------------------ the order, as measure/consensus.py has it

// Positions of what is undecided (NaN), the most suspect first; gaps, decided: numbers, kinds: names.
export function nextSuspects(gaps, kinds, decided) {
  const known = decided.flatMap((value, at) => (Number.isNaN(value) ? [] : [at]));
  const both = known.some((at) => decided[at] === 1) && known.some((at) => decided[at] === 0);
  const learnt = both ? wrongLabelProbability(gaps, kinds, decided, known) : gaps.map(() => 0);
  const order = gaps.map((_, at) => at).sort((a, b) => learnt[b] - learnt[a] || gaps[b] - gaps[a] || a - b);
  return order.filter((at) => Number.isNaN(decided[at]));
}

// Probability of a wrong label, from the kinds and the gap; where the slope of the gap falls, from the kinds alone.
function wrongLabelProbability(gaps, kinds, decided, known) {
  const names = [...new Set(kinds)];
  const indicators = kinds.map((kind) => names.map((name) => Number(name === kind)));
  const [middle, spread] = moments(known.map((at) => gaps[at]));
  const scaled = gaps.map((gap) => (gap - middle) / spread);
  const all = regression(indicators.map((row, at) => [...row, scaled[at]]), decided, known);
  return (all.weights[names.length] >= 0 ? all : regression(indicators, decided, known)).probabilities;
}

// Mean and standard deviation of numbers, 1 where they do not vary.
function moments(values) {
  const middle = values.reduce((sum, value) => sum + value, 0) / values.length;
  const spread = Math.sqrt(values.reduce((sum, value) => sum + (value - middle) ** 2, 0) / values.length);
  return [middle, spread > 1e-12 ? spread : 1];
}

const dot = (one, other) => one.reduce((sum, value, at) => sum + value * other[at], 0);
const expit = (score) => 1 / (1 + Math.exp(-score));
const total = (values) => values.reduce((sum, value) => sum + value, 0);

// The probability of 1 of each row, the weights of the features and the curvature of the loss, by a logistic regression
// on the rows `known` without intercept, perhaps with an offset for each row, with an L2 penalty of weight 1. Newton's
// method; the loss is strictly convex.
function regression(rows, decided, known, offsets = null) {
  const weights = Array(rows[0].length).fill(0);
  const scores = (at) => (offsets ? offsets[at] : 0) + dot(rows[at], weights);
  let curvature = [];
  for (let step = 0; step < 100; step += 1) {
    const gradient = [...weights];
    curvature = weights.map((_, f) => weights.map((_, g) => Number(f === g)));
    for (const at of known) {
      const p = expit(scores(at));
      rows[at].forEach((value, f) => {
        gradient[f] += (p - decided[at]) * value;
        rows[at].forEach((other, g) => (curvature[f][g] += p * (1 - p) * value * other));
      });
    }
    const change = solve(curvature.map((row) => [...row]), gradient);
    change.forEach((value, f) => (weights[f] -= value));
    if (Math.max(...change.map(Math.abs)) < 1e-10) break;
  }
  return { weights, curvature, scores, probabilities: rows.map((_, at) => expit(scores(at))) };
}

// ------------------------------------------------------------------ how many are wrong, as measure/consensus.py has it

const NODES = Array.from({ length: 61 }, (_, at) => -4 + (8 * at) / 60);
const PAIRS = NODES.flatMap((one) => NODES.map((other) => Math.exp(-(one ** 2 + other ** 2) / 2)));
const WHOLE = total(PAIRS);

// The expected number of wrong labels and the ends of its interval, [value, low, high], in each group of positions.
// prior: rate, spread, kind, rise, steep of the library; scale: mean and standard deviation of the gap in the whole list.
export function wrongAmong(gaps, kinds, decided, groups, prior, scale = moments(gaps)) {
  const known = decided.flatMap((value, at) => (Number.isNaN(value) ? [] : [at]));
  const names = [...new Set(kinds)];
  const scaled = gaps.map((gap) => (gap - scale[0]) / scale[1]);
  const rows = gaps.map((_, at) => [
    prior.spread,
    ...names.map((name) => prior.kind * Number(name === kinds[at])),
    prior.steep * scaled[at],
  ]);
  const offsets = scaled.map((value) => Math.log(prior.rate / (1 - prior.rate)) + prior.rise * value);
  const { curvature, scores } = regression(rows, decided, known, offsets);
  const times = (vector) => solve(curvature.map((row) => [...row]), [...vector]); // the covariance times a vector
  return groups.map((group) => {
    const sure = total(group.map((at) => decided[at]).filter((value) => !Number.isNaN(value)));
    const ahead = group.filter((at) => Number.isNaN(decided[at]));
    const middle = ahead.map(scores);
    const variance = ahead.map((at) => dot(rows[at], times(rows[at])));
    const slopes = middle.map((score) => expit(score) * expit(-score));
    const gradient = rows[0].map((_, f) => total(ahead.map((at, place) => slopes[place] * rows[at][f])));
    const way = times(gradient);
    const length = Math.sqrt(Math.max(dot(gradient, way), Number.MIN_VALUE));
    const along = ahead.map((at) => dot(rows[at], way) / length);
    const across = along.map((value, at) => Math.sqrt(1 + (Math.PI * Math.max(variance[at] - value ** 2, 0)) / 8));
    const counts = NODES.flatMap((node) => {
      const each = middle.map((score, at) => expit((score + node * along[at]) / across[at]));
      const [mean, deviation] = [total(each), Math.sqrt(total(each.map((p) => p * (1 - p))))];
      return NODES.map((other) => mean + deviation * other);
    });
    const order = counts.map((_, at) => at).sort((a, b) => counts[a] - counts[b] || a - b);
    const ends = [0.025, 0.975].map((share) => {
      let left = share * WHOLE;
      const reached = order.find((at) => (left -= PAIRS[at]) <= 0);
      return sure + Math.min(Math.max(Math.floor(counts[reached] + 0.5), 0), ahead.length);
    });
    const expected = total(middle.map((score, at) => expit(score / Math.sqrt(1 + (Math.PI * variance[at]) / 8))));
    return [sure + expected, ...ends];
  });
}

// A sentence about how right the list is; waiting: positions of what is undecided, in the order of review.
export function howRight(gaps, kinds, decided, waiting, { depths, ahead, ...prior }, scale) {
  const done = decided.flatMap((value, at) => (Number.isNaN(value) ? [] : [at]));
  const order = [...done, ...waiting];
  const all = order.length;
  if (!waiting.length) return "";
  const wanted = depths.filter((depth) => done.length < depth && depth < all);
  if (all <= Math.max(...depths)) wanted.push(all);
  const groups = [...wanted.map((depth) => order.slice(0, depth)), waiting.slice(0, ahead)];
  const rounded = (value) => Math.floor(value + 0.5);
  const found = wrongAmong(gaps, kinds, decided, groups, prior, scale);
  const said = found.map(([value, low, high], at) => {
    const size = groups[at].length;
    const numbers = [value, low, high];
    const [about, from, to] = numbers.map((each) => rounded(size > 100 ? (100 * each) / size : each));
    const amount = size > 100 ? `${about}% [${from}%, ${to}%]` : `about ${about} [${from}, ${to}]`;
    if (at === found.length - 1) return `the next ${size} would find ${amount}`;
    return `of ${size === all ? "all" : "the first"} ${size} suspects, ${amount} are wrong`;
  });
  const from = done.length ? `From ${done.length} decision${done.length > 1 ? "s" : ""}` : "By the prior alone";
  return `${from}: ${said.join("; ")}.`;
}

// x of matrix x = right, by elimination with the largest pivot; the arguments are used up.
function solve(matrix, right) {
  const n = right.length;
  for (let column = 0; column < n; column += 1) {
    let pivot = column;
    for (let row = column; row < n; row += 1) {
      if (Math.abs(matrix[row][column]) > Math.abs(matrix[pivot][column])) pivot = row;
    }
    [matrix[column], matrix[pivot]] = [matrix[pivot], matrix[column]];
    [right[column], right[pivot]] = [right[pivot], right[column]];
    for (let row = column + 1; row < n; row += 1) {
      const factor = matrix[row][column] / matrix[column][column];
      for (let at = column; at < n; at += 1) matrix[row][at] -= factor * matrix[column][at];
      right[row] -= factor * right[column];
    }
  }
  for (let row = n - 1; row >= 0; row -= 1) {
    for (let at = row + 1; at < n; at += 1) right[row] -= matrix[row][at] * right[at];
    right[row] /= matrix[row][row];
  }
  return right;
}

// ------------------------------------------------------------------ csv, as nli_lib/tables.py writes and reads it

const RUN = String.raw`'*["\x00-\x08\x0b\x0c\x0e-\x20\x7f-\xa0\xad\u034f\u061c\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f\u2000-\u200f\u2028-\u202f\u205f-\u206f\u2800\u3000\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb]*[-=+@\u2212\ufe62\ufe63\ufe66\ufe6b\uff0b\uff0d\uff1d\uff20]`;
const NUMBER = String.raw`^[-+](?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?$`;
const START = String.raw`(?:^|(?<=[,;\t\r\n]))`;
const GUARD = new RegExp(String.raw`${START}(?!${NUMBER})(?=${RUN})|^(?='*[\t\r\n])`, "g");
const GUARDED = new RegExp(String.raw`${START}'(?=${RUN})|^'(?='*[\t\r\n])`, "g");

const cell = (text) => `"${text.replace(GUARD, "'").replaceAll('"', '""')}"`;

export function writeCsv(rows) {
  return [COLUMNS, ...rows.map((row) => COLUMNS.map((name) => row[name] ?? ""))]
    .map((values) => `${values.map(cell).join(",")}\n`)
    .join("");
}

export function readCsv(text) {
  const lines = [[""]];
  let quoted = false;
  const source = text.replace(/^\uFEFF/, "");
  for (let at = 0; at < source.length; at += 1) {
    const letter = source[at];
    const line = lines[lines.length - 1];
    if (quoted) {
      if (letter !== '"') line[line.length - 1] += letter;
      else if (source[at + 1] === '"') line[line.length - 1] += source[(at += 1)];
      else quoted = false;
    } else if (letter === '"') quoted = true;
    else if (letter === ",") line.push("");
    else if (letter === "\n") lines.push([""]);
    else if (letter !== "\r" || source[at + 1] !== "\n") line[line.length - 1] += letter;
  }
  const names = lines.shift();
  const plain = (value) => (value ?? "").replace(GUARDED, "");
  return lines
    .filter((line) => line.length > 1 || line[0] !== "")
    .map((line) => Object.fromEntries(names.map((name, at) => [name, plain(line[at])])));
}

// Decisions of a csv, [uid, decision] in its order; raises an Error in words where it cannot be used.
function decisionsIn(text, classes) {
  const made = new Map();
  readCsv(text).forEach((row, at) => {
    const where = `row ${at + 2}`;
    if (row.uid === undefined || row.decision === undefined) throw new Error("it has no columns uid and decision");
    const decision = row.decision.trim().toLowerCase();
    const to = (row.fix_to ?? "").trim().toLowerCase();
    if (decision && !DECISIONS.includes(decision)) {
      throw new Error(`${where}, decision "${decision}": write ${DECISIONS.join(", ")} or nothing`);
    }
    if (to && (decision !== "fix" || !classes.includes(to))) {
      throw new Error(`${where}, fix_to "${to}": write one of ${classes.join(", ")} with a fix`);
    }
    if (!decision && !row.note) return;
    if (made.has(row.uid)) throw new Error(`${where}, uid "${row.uid}" is decided twice`);
    made.set(row.uid, { decision, fix_to: to, note: row.note ?? "", when: row.when ?? "", learnt: row.learnt ?? "" });
  });
  return [...made];
}

// ------------------------------------------------------------------ the list

function element(tag, name, text = "", parent = null) {
  const made = document.createElement(tag);
  made.className = name;
  made.textContent = text;
  parent?.append(made);
  return made;
}

// What speaks for an error or for variation: several people's labels or, where there are none, the models' uncertainty.
function variation(row) {
  if (row.variation === undefined) return "";
  const labels = row.variation_by.split("people: ")[1];
  if (labels === undefined) return ` Uncertainty of the models: ${row.variation.toFixed(2)} (0 to 1).`;
  return row.variation > 0 ? ` People split here: ${labels}.` : ` People agree here: ${labels}.`;
}

// root    an element that is filled
// list    what nli_tools/suspects.py makes: title, classes, every, warning, said, prior, scale, command, rows
// store   read() -> [[uid, {decision, fix_to, note, when, learnt}], ...]; write(the same), which raises where it fails
// Returns a function that reads the store again.
export function worklist(root, list, store) {
  const { rows, classes, every } = list;
  const place = new Map(rows.map((row, at) => [row.uid, at]));
  const kinds = rows.map((row) => row.kind);
  const gaps = rows.map((row) => row.gap);
  let made = new Map(store.read());
  let order = [];
  let offset = 0; // undecided suspects that were passed over
  let opened = null; // uid of a suspect that was clicked on
  let fault = "";

  const of = (uid) => made.get(uid) ?? { decision: "", fix_to: "", note: "", when: "", learnt: "" };
  const count = (word) => [...made.values()].filter((each) => each.decision === word).length;
  const decidedUids = () => [...made].filter(([, each]) => each.decision).map(([uid]) => uid);
  const code = { fix: 1, keep: 0 };
  const directions = rows.map((row) => `${row.gold} \u2192 ${row.predicted}`); // label, then what the model says
  let direction = ""; // that is shown alone

  function sort() {
    const told = rows.map((row) => (of(row.uid).learnt ? (code[of(row.uid).decision] ?? NaN) : NaN));
    order = nextSuspects(gaps, kinds, told);
  }
  const queue = () =>
    order.filter((at) => !of(rows[at].uid).decision && (!direction || directions[at] === direction));
  function shown() {
    if (opened !== null) return rows[place.get(opened)];
    const waiting = queue();
    offset = Math.max(0, Math.min(offset, waiting.length - 1));
    return waiting.length ? rows[waiting[offset]] : null;
  }
  function keep() {
    fault = "";
    try {
      store.write([...made]);
    } catch (error) {
      fault = `Not saved: ${error.message}. Export the decisions before you close this page.`;
    }
  }
  // `again`: the decision counts as the last one, which undo takes back
  function set(uid, change, again = true) {
    const now = new Date().toISOString();
    const next = { ...of(uid), ...change, when: now, changed: now };
    if (again) made.delete(uid);
    made.set(uid, next);
    keep();
  }
  function decide(decision, to = "") {
    const row = shown();
    if (!row) return;
    set(row.uid, { decision, fix_to: to });
    opened = null;
    draw();
  }
  function undo() {
    const last = decidedUids().pop();
    if (last === undefined) return;
    set(last, { decision: "", fix_to: "", learnt: "" }, false);
    opened = last;
    draw();
  }
  const sinceLearnt = () => decidedUids().filter((uid) => !of(uid).learnt).length;
  const canLearn = () => count("fix") > 0 && count("keep") > 0;
  // the order is that learnt from the decisions that say so
  function learnFrom(uids, learnt) {
    const changed = new Date().toISOString();
    for (const uid of uids) made.set(uid, { ...of(uid), learnt, changed });
    keep();
    again();
  }
  const learn = () => canLearn() && learnFrom(decidedUids(), "yes");
  const forget = () => learnFrom([...made.keys()], "");
  function again() {
    sort();
    offset = 0;
    opened = null;
    draw();
  }
  function move(by) {
    offset += by;
    opened = null;
    draw();
  }

  // the page: fixed parts first, which `draw` fills
  root.replaceChildren();
  root.classList.add("nli-worklist");
  root.tabIndex = 0;
  root.dataset.lmSuppressShortcuts = "true"; // JupyterLab leaves the keys of this element alone
  element("h1", "nli-title", list.title, root);
  if (list.warning) element("p", "nli-warning", list.warning, root).setAttribute("role", "alert");
  for (const sentence of list.said) element("p", "nli-said", sentence, root);
  const progress = element("p", "nli-progress", "", root);
  progress.setAttribute("aria-live", "polite");
  const right = element("p", "nli-said nli-right", "", root);
  const card = element("div", "nli-card", "", root);
  const buttons = element("div", "nli-buttons", "", card); // above the texts, so that the hand need not move
  const facts = element("p", "nli-facts", "", card);
  const texts = Object.fromEntries(
    ["premise", "hypothesis"].map((side) => {
      element("h2", "nli-side", side, card);
      return [side, element("p", `nli-${side}`, "", card)];
    }),
  );
  const keys = {};
  function add(key, title, act, parent = buttons) {
    const sign = { ArrowLeft: "\u2190", ArrowRight: "\u2192" }[key] ?? key;
    const button = element("button", "nli-button", `${title} (${sign})`, parent);
    button.type = "button";
    button.addEventListener("click", () => {
      act();
      root.focus({ preventScroll: true });
    });
    keys[key] = button;
  }
  add("k", "keep", () => decide("keep"));
  classes.forEach((name, at) => add(String(at + 1), `fix to ${name}`, () => decide("fix", name)));
  add("a", "ambiguous", () => decide("ambiguous"));
  add("u", "undo", undo);
  add("ArrowLeft", "back", () => move(-1));
  add("ArrowRight", "later", () => move(1));
  const label = element("label", "nli-side", "note (n; Esc when done)", card);
  const note = element("textarea", "nli-note", "", label);
  note.rows = 2;
  note.addEventListener("input", () => {
    const row = shown();
    if (row) set(row.uid, { note: note.value }, false);
    faults.textContent = fault;
  });
  const faults = element("p", "nli-fault", "", root);
  faults.setAttribute("role", "alert");
  const tools = element("div", "nli-tools", "", root);
  const which = element("label", "nli-which", "show ", tools);
  const chosen = element("select", "nli-direction", "", which);
  chosen.addEventListener("change", () => {
    direction = chosen.value;
    offset = 0;
    opened = null;
    draw();
    root.focus({ preventScroll: true });
  });
  add("l", "learn a new order", learn, tools);
  add("g", "order by gap", forget, tools);
  add("e", "export decisions.csv", download, tools);
  const file = element("label", "nli-import", "import decisions from a csv ", tools);
  const chooser = element("input", "nli-file", "", file);
  chooser.type = "file";
  chooser.accept = ".csv";
  chooser.addEventListener("change", async () => {
    if (!chooser.files.length) return;
    try {
      const found = decisionsIn(await chooser.files[0].text(), classes);
      const known = found.filter(([uid]) => place.has(uid));
      for (const [uid, each] of known) {
        const changed = new Date().toISOString();
        made.delete(uid);
        made.set(uid, { ...each, when: each.when || changed, changed });
      }
      keep();
      if (known.length < found.length) fault = `${found.length - known.length} of ${found.length} decisions are not in this list.`;
    } catch (error) {
      fault = `${chooser.files[0].name} cannot be used: ${error.message}.`;
    }
    chooser.value = "";
    again();
  });
  add("?", "keys", () => (help.hidden = !help.hidden), tools);
  const help = element("p", "nli-help", "", root);
  help.hidden = true;
  const hint = element("p", "nli-hint", "", root);
  const tables = { next: "Next", decided: "Decided" };
  for (const name of Object.keys(tables)) {
    const part = element("details", "nli-part", "", root);
    part.open = name === "next";
    element("summary", "", tables[name], part);
    tables[name] = element("table", `nli-${name}`, "", part);
  }

  function download() {
    const address = URL.createObjectURL(new Blob([exported()], { type: "text/csv;charset=utf-8" }));
    const link = element("a", "", "", root);
    link.href = address;
    link.download = "decisions.csv";
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(address), 10_000);
  }
  function exported() {
    const told = [...made].filter(([, each]) => each.decision || each.note);
    return writeCsv(told.map(([uid, each]) => ({ ...rows[place.get(uid)], ...each, uid })));
  }
  function fill(table, names, values) {
    const head = element("tr", "");
    names.forEach((name) => element("th", "", name, head));
    const lines = values.map(([uid, cells]) => {
      const line = element("tr", "");
      line.dataset.uid = uid;
      cells.forEach((text) => element("td", "", text, line));
      line.addEventListener("click", () => {
        opened = uid;
        draw();
        root.focus({ preventScroll: true });
      });
      return line;
    });
    table.replaceChildren(head, ...lines);
  }
  // each direction of mismatch with how many are left: their rates of wrong labels differ
  function drawDirections() {
    const left = new Map();
    rows.forEach((row, at) => left.set(directions[at], (left.get(directions[at]) ?? 0) + !of(row.uid).decision));
    const counted = [...left].sort((a, b) => b[1] - a[1] || a[0].localeCompare(b[0]));
    const total = counted.reduce((sum, each) => sum + each[1], 0);
    const options = [["", `all directions (${total} left)`], ...counted.map(([name, n]) => [name, `${name} (${n} left)`])];
    chosen.replaceChildren(...options.map(([value, text]) => {
      const option = element("option", "", text);
      option.value = value;
      return option;
    }));
    chosen.value = direction;
  }
  function draw() {
    drawDirections();
    const row = shown();
    const waiting = queue();
    const decided = decidedUids();
    const told = DECISIONS.map((word) => `${count(word)} ${word}`).join(", ");
    const end = waiting.length ? "" : direction ? ": none left in this direction" : ": all done";
    progress.textContent = `${decided.length} of ${rows.length} decided (${told})${end}`;
    const answers = rows.map((row) => code[of(row.uid).decision] ?? NaN);
    const open = order.filter((at) => !of(rows[at].uid).decision);
    right.textContent = list.prior ? howRight(gaps, kinds, answers, open, list.prior, list.scale) : "";
    root.dataset.done = decided.length; // for who watches from outside
    root.dataset.uid = row?.uid ?? "";
    faults.textContent = fault;
    card.hidden = row === null;
    if (row) {
      const given = of(row.uid);
      const before = given.decision ? `Decided: ${[given.decision, given.fix_to].filter(Boolean).join(" to ")}. ` : "";
      const votes = row.votes === undefined ? "" : `, pruned by ${row.votes} seeds`;
      facts.textContent =
        `${before}Label: ${row.gold}. The model says ${row.predicted} ` +
        `(gap ${row.gap.toFixed(2)}, probability of the label ${row.p_gold.toFixed(3)}${votes}).${variation(row)} ` +
        `uid ${row.uid}`;
      for (const side of Object.keys(texts)) texts[side].textContent = row[side];
      if (document.activeElement !== note || note.dataset.uid !== row.uid) note.value = given.note;
      note.dataset.uid = row.uid;
      classes.forEach((name, at) => (keys[String(at + 1)].disabled = name === row.gold));
    }
    keys.u.disabled = decided.length === 0;
    keys.l.disabled = !canLearn();
    keys.g.disabled = ![...made.values()].some((each) => each.learnt);
    const since = sinceLearnt();
    const used = [...made.values()].filter((each) => each.learnt && each.decision).length;
    const current = used ? `The order is learnt from ${used} decisions. ` : "The list is ordered by gap. ";
    let advice = used ? "" : `After ${every} decisions, a new order can be learnt from them. `;
    if (since >= every) advice = `You have made ${since} decisions since: press l to learn a new order. `;
    if (since >= every && !canLearn()) advice = "A new order can be learnt once at least one label is fixed and one is kept. ";
    hint.textContent = current + advice + list.command;
    root.dataset.ask = String(since >= every && canLearn());
    const line = (uid, first) => {
      const each = rows[place.get(uid)];
      return [uid, [...first, each.gold, each.predicted, each.premise, each.hypothesis]];
    };
    const following = waiting.slice(offset, offset + NEXT).map((at) => rows[at].uid);
    fill(tables.next, ["gap", "label", "model", "premise", "hypothesis"], following.map((uid) =>
      line(uid, [rows[place.get(uid)].gap.toFixed(2)])));
    fill(tables.decided, ["decision", "note", "label", "model", "premise", "hypothesis"], decided.reverse().map((uid) =>
      line(uid, [[of(uid).decision, of(uid).fix_to].filter(Boolean).join(" to "), of(uid).note])));
  }

  root.addEventListener("keydown", (event) => {
    const typing = event.target === note || event.target === chosen;
    if (event.key === "Escape") {
      root.focus();
      draw();
    } else if (!typing && !event.repeat && !event.isComposing && !(event.ctrlKey || event.metaKey || event.altKey)) {
      const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
      if (key === "n" && !card.hidden) {
        event.preventDefault();
        note.focus();
      } else if (keys[key]) {
        event.preventDefault();
        keys[key].click(); // does nothing where it is disabled
      }
    }
    event.stopPropagation();
  });
  help.textContent = `Keys: ${Object.values(keys).map((button) => button.textContent).join(", ")}, note (n).`;
  sort();
  draw();
  root.focus({ preventScroll: true });
  return () => {
    made = new Map(store.read());
    again();
  };
}

// ------------------------------------------------------------------ where decisions are kept

// The browser's store for one list. `given`: decisions that the page brings, from when it was `built`; what the browser
// kept before that gives way to them. Two windows may be open: of two decisions on one label the later counts.
export function browserStore(key, given, built) {
  const kept = () => JSON.parse(window.localStorage.getItem(key) ?? "[]");
  const join = (first, then, wins) => {
    const found = new Map(first);
    for (const [uid, each] of then) {
      if (found.has(uid) && !wins(each, found.get(uid))) continue;
      found.delete(uid);
      found.set(uid, each);
    }
    return [...found];
  };
  return {
    read() {
      try {
        return join(given, kept(), (each) => each.changed > built);
      } catch {
        return given; // where nothing can be kept, the first decision says so
      }
    },
    write(made) {
      let before = [];
      try {
        before = kept();
      } catch {
        before = []; // not what this page has written
      }
      const joined = join(before, made, (mine, other) => !(other.changed > (mine.changed ?? "")));
      window.localStorage.setItem(key, JSON.stringify(joined));
    },
  };
}

// The widget of JupyterLab: the kernel keeps the decisions (trait `made`) and writes them to a file.
function render({ model, el }) {
  const root = element("div", "", "", el);
  const store = {
    read: () => model.get("made"),
    write: (made) => {
      model.set("made", made);
      model.save_changes();
    },
  };
  worklist(root, model.get("list"), store);
  const fault = element("p", "nli-fault", model.get("fault"), el);
  const told = () => (fault.textContent = model.get("fault"));
  model.on("change:fault", told);
  return () => model.off("change:fault", told);
}

export default { render };
