// The page's state, which is its address, and what changes it.
import { ItemList, NONE, matching } from "./list.js";
import { ItemView } from "./item.js";

const FILTERS = ["model", "condition", "error", "apart", "gold", "answer", "status", "group", "order"];
const $ = (id) => document.getElementById(id);
const state = Object.fromEntries(["set", "item", "words", ...FILTERS].map((name) => [name, ""]));
const view = new ItemView($("item"));
const list = new ItemList($("list"), $("rows"), (number) => choose(number));
let index, shown = NONE, waiting, fetching = null, asked = 0;

const get = async (path, words) => {
  const reply = await fetch(`${path}?${new URLSearchParams(words)}`);
  if (!reply.ok) throw new Error(await reply.text());
  return reply.json();
};

function fromAddress() {
  const words = new URLSearchParams(location.search);
  for (const name of Object.keys(state)) state[name] = words.get(name) ?? "";
}

function toAddress() {
  const words = new URLSearchParams(Object.entries(state).filter(([, value]) => value !== ""));
  history.replaceState(null, "", `?${words}`);
}

function options(id, pairs) {
  $(id).replaceChildren(...pairs.map(([value, words]) => new Option(words, value)));
  // A word of an old address that is no choice here would filter by something unseen.
  if (!pairs.some(([value]) => value === state[id])) state[id] = "";
  $(id).value = state[id];
}

async function openSet(key) {
  state.set = key;
  index = await get("index", { set: key });
  const any = (words) => [["", words]];
  const same = (names) => [...new Set(names)].map((name) => [name, name]);
  options("model", [...any("any"), ...same(index.runs.map((run) => run.name))]);
  options("condition", [...any("any"), ...same(index.conditions)]);
  const far = index.ordinal ? index.labels.slice(1).map((_, at) => at + 1) : [1];
  options("error", [...any("any"), ...far.map((by) => [String(by), index.ordinal ? `some answer off by ${by} or more` : "some answer wrong"]), ["none", "every answer right"]]);
  const least = (by) => (index.ordinal && by > 1 ? ` by ${by} or more` : "");
  options("apart", [...any("any"), ...far.flatMap((by) => [["models", "between models"], ["conditions", "between conditions"]].map(([kind, words]) => [`${kind}-${by}`, words + least(by)]))]);
  options("gold", [...any("any"), ...same(index.labels)]);
  options("answer", [...any("any"), ...same(index.labels)]);
  options("status", [...any("any"), ["failed", "any without an answer"], ...same(index.statuses)]);
  const groups = [...new Set(index.items.group)];
  $("group-label").hidden = groups.length === index.items.id.length;
  options("group", [...any("any"), ...($("group-label").hidden ? [] : same(groups))]);
  options("order", [["", "as in the dataset"], ["error", "largest error first"], ["apart", "most disagreement first"]]);
  $("words").value = state.words;
  const badges = [index.synthetic ? "synthetic" : "", `licence: ${index.licence}`, index.runs.length === 1 ? "1 run" : `${index.runs.length} runs`];
  $("badges").replaceChildren(...badges.filter(Boolean).map((words) => {
    const badge = document.createElement("span");
    badge.className = "badge";
    badge.textContent = words;
    return badge;
  }));
  $("notes").replaceChildren(...index.notes.map((words) => {
    const note = document.createElement("p");
    note.textContent = words;
    return note;
  }));
  shown = NONE;
  await filter();
}

async function filter() {
  const turn = (asked += 1);
  const words = state.words.trim();
  const among = words ? new Set(await get("search", { set: state.set, words })) : null;
  if (turn !== asked) return;
  const numbers = matching(index, state, among);
  list.show(index, state, numbers);
  $("count").textContent = `${numbers.length.toLocaleString("en")} of ${index.items.id.length.toLocaleString("en")} items`;
  const wanted = index.items.id.indexOf(state.item);
  // A link to an item shows it, also where it does not fit the filters.
  if (wanted !== NONE) await choose(wanted);
  else if (numbers.length) await choose(numbers[0]);
  else { view.place.replaceChildren("No item fits these filters."); toAddress(); }
}

async function choose(number) {
  state.item = index.items.id[number];
  list.choose(number);
  if (number === shown) { toAddress(); return; }
  shown = number;
  // A key held down passes many items: the one it ends on is fetched, not each.
  if (!fetching) fetching = fetchShown().finally(() => { fetching = null; });
  await fetching;
}

async function fetchShown() {
  let of, number, item;
  do {
    [of, number] = [index, shown];
    item = await get("item", { set: of.key, item: of.items.id[number] });
  } while (of !== index || number !== shown);
  view.show(index, number, item, step);
  toAddress();
  document.title = `${item.id} · Undertone`;
}

function step(by) {
  const at = list.numbers.indexOf(shown);
  const next = list.numbers[at === NONE ? 0 : at + by];
  if (next !== undefined) choose(next).catch(sorry);
}

function sorry(error) {
  const note = document.createElement("p");
  note.textContent = `${error.message} If browse was ended, start it again and reload.`;
  $("notes").append(note);
}

for (const name of FILTERS) {
  $(name).addEventListener("change", () => { state[name] = $(name).value; state.item = ""; filter().catch(sorry); });
}
$("words").addEventListener("input", () => {
  clearTimeout(waiting);
  waiting = setTimeout(() => { state.words = $("words").value; state.item = ""; filter().catch(sorry); }, 150);
});
$("filters").addEventListener("submit", (event) => event.preventDefault());
$("clear").addEventListener("click", () => {
  for (const name of ["words", ...FILTERS]) { state[name] = ""; $(name).value = ""; }
  filter().catch(sorry);
});
$("set").addEventListener("change", () => { state.item = ""; openSet($("set").value).catch(sorry); });
$("keys").addEventListener("click", () => $("help").showModal());

const KEYS = {
  j: () => step(1), n: () => step(1), ArrowDown: () => step(1),
  k: () => step(-1), p: () => step(-1), ArrowUp: () => step(-1),
  " ": () => view.toggle(), ArrowLeft: () => view.seek(-2), ArrowRight: () => view.seek(2),
  q: () => view.playQuote(), "/": () => $("words").focus(), "?": () => $("help").showModal(),
  c: () => navigator.clipboard.writeText(location.href),
};

document.addEventListener("keydown", (event) => {
  const at = event.target.closest("input, select, textarea, audio, button, dialog, .text");
  if (event.key === "Escape" && at?.matches("input")) { at.blur(); return; }
  if (event.ctrlKey || event.metaKey || event.altKey || !(event.key in KEYS)) return;
  // Where a key has a meaning of its own it keeps it: letters do nothing on a button.
  if (at && (at.matches("input, select, textarea, dialog") || !/^[a-z/?]$/.test(event.key))) return;
  event.preventDefault();
  KEYS[event.key]();
});

window.addEventListener("popstate", () => { fromAddress(); openSet(state.set).catch(sorry); });

async function start() {
  fromAddress();
  const sets = await get("sets", {});
  $("set").replaceChildren(...sets.map((set) => new Option(`${set.task} · ${set.dataset} · ${set.items} items`, set.key)));
  const key = sets.some((set) => set.key === state.set) ? state.set : sets[0].key;
  $("set").value = key;
  await openSet(key);
}
start().catch(sorry);
