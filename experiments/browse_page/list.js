// Filters, order and the list of items, of which only the rows in sight are elements.
export const NONE = -1;
const ROW = 46;

// Which cells of (model, condition) are looked at. A variant (AO.noise_10) is made to differ
// from its condition, so it counts only where it is asked for by name.
export function chosenCells(index, state) {
  return index.cells.filter((cell) =>
    (state.model === "" || index.runs[cell.run].name === state.model)
    && (state.condition === "" ? !cell.condition.includes(".") : cell.condition === state.condition));
}

export function distance(index, answer, gold) {
  if (answer === NONE || gold === NONE) return NaN;
  return index.ordinal ? Math.abs(answer - gold) : Number(answer !== gold);
}

// Largest difference between answers that share `by` ("condition": models apart).
function spread(index, cells, number, by) {
  const seen = new Map();
  let most = 0;
  for (const cell of cells) {
    const answer = cell.prediction[number];
    if (answer === NONE) continue;
    const key = by === "" ? "" : cell[by];
    const [low, high] = seen.get(key) ?? [answer, answer];
    const next = [Math.min(low, answer), Math.max(high, answer)];
    seen.set(key, next);
    most = Math.max(most, next[1] - next[0]);
  }
  return most;
}

function meanError(index, cells, number) {
  let sum = 0, answered = 0;
  for (const cell of cells) {
    const off = distance(index, cell.prediction[number], index.items.gold[number]);
    if (!Number.isNaN(off)) { sum += off; answered += 1; }
  }
  return answered ? sum / answered : NaN;
}

export function matching(index, state, among) {
  const cells = chosenCells(index, state);
  const { gold, group, id } = index.items;
  const label = (word) => index.labels.indexOf(word);
  const kept = [];
  for (let number = 0; number < id.length; number += 1) {
    if (among && !among.has(number)) continue;
    if (state.gold !== "" && gold[number] !== label(state.gold)) continue;
    if (state.group !== "" && group[number] !== state.group) continue;
    const asked = cells.filter((cell) => cell.status[number] !== NONE);
    if (!asked.length) continue;
    if (state.answer !== "" && !asked.some((c) => c.prediction[number] === label(state.answer))) continue;
    if (state.status !== "" && !asked.some((c) => fits(index, state.status, c.status[number]))) continue;
    if (state.error !== "" && !hasError(index, state.error, asked, number)) continue;
    if (state.apart !== "" && !isApart(index, state.apart, asked, number)) continue;
    kept.push(number);
  }
  return ordered(index, cells, state.order, kept);
}

function fits(index, wanted, status) {
  return wanted === "failed" ? index.statuses[status] !== "ok" : index.statuses[status] === wanted;
}

function hasError(index, wanted, cells, number) {
  const off = cells.map((cell) => distance(index, cell.prediction[number], index.items.gold[number]));
  if (wanted === "none") return off.every((one) => one === 0);
  return off.some((one) => one >= Number(wanted));
}

function isApart(index, wanted, cells, number) {
  const [by, least] = wanted.split("-");
  return spread(index, cells, number, { models: "condition", conditions: "run", any: "" }[by]) >= Number(least);
}

function ordered(index, cells, order, kept) {
  if (order === "") return kept;
  const value = new Map(kept.map((number) => [number, order === "error"
    ? (meanError(index, cells, number) || 0) : spread(index, cells, number, "")]));
  return kept.sort((one, other) => value.get(other) - value.get(one) || one - other);
}

export function summary(index, state, number) {
  const cells = chosenCells(index, state).filter((cell) => cell.status[number] !== NONE);
  const answers = cells.map((cell) => cell.prediction[number]).filter((answer) => answer !== NONE);
  const gold = index.labels[index.items.gold[number]] ?? "none";
  const counts = index.labels.map((label, at) => [label, answers.filter((one) => one === at).length])
    .filter(([, count]) => count).map(([label, count]) => count > 1 ? `${label}×${count}` : label);
  const silent = cells.length - answers.length;
  return `label ${gold} · said ${counts.join(" ") || "nothing"}${silent ? ` · ${silent} without` : ""}`;
}

export class ItemList {
  constructor(box, rows, choose) {
    this.box = box;
    this.rows = rows;
    this.numbers = [];
    this.made = new Map();
    this.chosen = NONE;
    box.addEventListener("scroll", () => this.draw(), { passive: true });
    new ResizeObserver(() => this.draw()).observe(box);
    rows.addEventListener("click", (event) => {
      const row = event.target.closest(".row");
      if (row) choose(Number(row.dataset.number));
    });
  }

  show(index, state, numbers) {
    Object.assign(this, { index, state, numbers });
    for (const row of this.made.values()) row.remove();
    this.made.clear();
    this.rows.style.height = `${numbers.length * ROW}px`;
    this.draw();
  }

  choose(number) {
    this.chosen = number;
    const at = this.numbers.indexOf(number);
    if (at !== -1) {
      const top = at * ROW, bottom = top + ROW;
      if (top < this.box.scrollTop) this.box.scrollTop = top;
      if (bottom > this.box.scrollTop + this.box.clientHeight) this.box.scrollTop = bottom - this.box.clientHeight;
    }
    for (const row of this.made.values()) this.mark(row);
    this.draw();
  }

  mark(row) {
    const is = Number(row.dataset.number) === this.chosen;
    row.setAttribute("aria-selected", String(is));
    if (is) this.box.setAttribute("aria-activedescendant", row.id);
  }

  draw() {
    const first = Math.max(0, Math.floor(this.box.scrollTop / ROW) - 5);
    const last = Math.min(this.numbers.length, first + Math.ceil(this.box.clientHeight / ROW) + 10);
    for (const [at, row] of this.made) {
      if (at < first || at >= last) { row.remove(); this.made.delete(at); }
    }
    for (let at = first; at < last; at += 1) {
      if (!this.made.has(at)) this.made.set(at, this.rows.appendChild(this.row(at)));
    }
  }

  row(at) {
    const number = this.numbers[at];
    const row = document.createElement("div");
    const name = document.createElement("b"), rest = document.createElement("span");
    name.textContent = this.index.items.id[number];
    name.dir = "auto";
    rest.textContent = summary(this.index, this.state, number);
    row.append(name, rest);
    row.className = "row";
    row.id = `row-${number}`;
    row.dataset.number = number;
    row.style.top = `${at * ROW}px`;
    row.setAttribute("role", "option");
    row.setAttribute("aria-setsize", this.numbers.length);
    row.setAttribute("aria-posinset", at + 1);
    this.mark(row);
    return row;
  }
}
