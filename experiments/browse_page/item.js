// One item: its clip, its words, and what each run said of it in each condition.
import { NONE, distance } from "./list.js";

export function make(tag, said = {}, ...inside) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(said)) {
    if (name in element && !name.includes("-")) element[name] = value;
    else element.setAttribute(name, value);
  }
  // append() makes text of text: nothing an item holds can become markup.
  element.append(...inside.filter((part) => part !== null && part !== undefined));
  return element;
}

export class ItemView {
  constructor(place) {
    this.place = place;
    this.quotes = [];
  }

  get audio() {
    return this.place.querySelector("audio");
  }

  show(index, number, item, step) {
    const gold = index.items.gold[number];
    this.turns = item.turns;
    this.until = null;
    this.quotes = item.predictions.filter((each) => each.quote_turn && item.turns.length)
      .map((each) => each.quote_turn - 1);
    const head = make("div", { className: "head" },
      make("h2", { dir: "auto" }, item.id),
      make("span", { className: "badge" }, `label ${index.labels[gold] ?? "none"}`),
      make("button", { type: "button", onclick: () => step(-1) }, "Previous"),
      make("button", { type: "button", onclick: () => step(1) }, "Next"));
    const facts = Object.entries(item.facts).map(([name, value]) =>
      `${name.replace("_", " ")}: ${name === "seconds" ? `${value} s` : value}`).join(" · ");
    this.place.replaceChildren(head, make("p", { className: "facts", dir: "auto" }, facts),
      this.player(index, item), ...this.words(item), make("h3", {}, "What the models said"),
      make("div", { className: "scroll" }, this.table(index, gold, item)));
    this.place.scrollTop = 0;
  }

  player(index, item) {
    if (!item.audio) return make("p", { className: "facts" }, "No clip of this item.");
    const source = `clip?set=${encodeURIComponent(index.key)}&item=${encodeURIComponent(item.id)}`;
    const audio = make("audio", { controls: true, preload: "metadata", src: source });
    audio.setAttribute("aria-label", `Clip of ${item.id}`);
    audio.addEventListener("timeupdate", () => this.follow(audio));
    audio.addEventListener("error", async () => {
      const why = await fetch(source).then((reply) => reply.text(), String);
      audio.replaceWith(make("p", { className: "badge bad" }, why));
    });
    return audio;
  }

  words(item) {
    const parts = [];
    if (item.context) {
      parts.push(make("h3", {}, "Context"), make("p", { className: "words context", dir: "auto" }, item.context));
    }
    if (item.turns.length) {
      parts.push(make("h3", {}, "Turns (click to play one)"), make("div", {}, ...item.turns.map((turn, at) =>
        make("button", {
          type: "button", className: this.quotes.includes(at) ? "turn quoted" : "turn", dir: "auto",
          onclick: () => this.playTurn(at),
        }, make("time", {}, clock(turn.start_s)), turn.line))));
    } else if (item.transcript) {
      parts.push(make("h3", {}, "Transcript"), make("p", { className: "words", dir: "auto" }, item.transcript));
    }
    return parts;
  }

  table(index, gold, item) {
    const said = new Map(item.predictions.map((each) => [`${each.run} ${each.condition}`, each]));
    const rows = index.runs.map((run, number) => make("tr", {},
      make("th", { scope: "row" }, run.name, run.verified === "weights" ? null
        : make("p", { className: "more" }, `verified: ${run.verified}`)),
      ...index.conditions.map((condition) => this.cell(index, gold, said.get(`${number} ${condition}`), item))));
    return make("table", {}, make("caption", { className: "facts" },
      `Bars: probability of each label at the first answer position; the outlined one is the label.`),
      make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "model"),
        ...index.conditions.map((condition) => make("th", { scope: "col" }, condition,
          // What was played or asked there is not what the player and the words above hold.
          condition.includes(".") ? make("p", { className: "more" }, "a variant: not the clip or words above") : null)))),
      make("tbody", {}, ...rows));
  }

  cell(index, gold, said, item) {
    if (!said) return make("td", { className: "quiet" }, "not asked");
    const answer = index.labels.indexOf(said.prediction ?? "");
    const off = distance(index, answer, gold);
    const judged = answer === NONE ? "" : off ? " wrong" : " right";
    const words = answer === NONE ? "no answer"
      : `${said.prediction}${off ? ` (${index.ordinal ? `off by ${off}` : "wrong"})` : ""}`;
    return make("td", {},
      make("span", { className: `said${judged}` }, words),
      said.status === "ok" ? null : make("p", { className: "more" },
        make("span", { className: "badge bad" }, said.status), make("bdi", {}, said.reason ?? "")),
      ...this.bars(index, gold, said),
      ...this.text(said),
      ...this.details(index, said, item));
  }

  bars(index, gold, said) {
    if (!said.shares) return [];
    const words = said.shares.map((share, at) => `${index.labels[at]}: ${share.toFixed(2)}`).join(", ");
    const bars = make("div", { className: "bars", role: "img", title: words, "aria-label": `probabilities ${words}` },
      ...said.shares.map((share, at) => {
        const bar = make("i", { className: at === gold ? "gold" : "" });
        bar.style.height = `${Math.max(share * 100, 1)}%`;
        return bar;
      }));
    return [bars, make("div", { className: "ticks", "aria-hidden": "true" },
      ...index.labels.map((label) => make("span", {}, label)))];
  }

  text(said) {
    if (!said.text || said.text === said.prediction) return [];
    if (said.text.length <= 40) return [make("p", { className: "more" }, "wrote ", make("q", { dir: "auto" }, said.text))];
    return [make("p", { className: "text", dir: "auto", tabIndex: 0, "aria-label": "answer in full" }, said.text)];
  }

  details(index, said, item) {
    const lines = [];
    const note = (...parts) => lines.push(make("p", { className: "more" }, ...parts));
    if (said.expected !== undefined) note(`${index.ordinal ? "expected" : `p(${index.labels[0]})`} ${said.expected.toFixed(2)}`);
    if (said.votes) note(`votes ${tally(said.votes)}`);
    if (said.tactic) note(`tactic: ${said.tactic}${said.tactic_votes ? ` (${tally(said.tactic_votes)})` : ""}`);
    if (said.quote) {
      const match = said.quote_match ?? "absent";
      note(make("q", { dir: "auto" }, said.quote), " ",
        make("span", { className: `badge ${match === "absent" ? "bad" : "good"}` },
          match === "absent" ? "not in the transcript" : `${match}, turn ${said.quote_turn}, ${said.quote_speaker ?? ""}`));
      if (said.quote_turn && item.turns.length) {
        lines.push(make("button", { type: "button", onclick: () => this.playTurn(said.quote_turn - 1) }, "▶ quote"));
      }
    }
    if (said.quote_reason) note(`no quote: ${said.quote_reason}`);
    if (said.seconds_given && said.seconds_used && said.seconds_given - said.seconds_used > 0.2) {
      note(`heard ${said.seconds_used.toFixed(1)} of ${said.seconds_given.toFixed(1)} s`);
    }
    if (said.fallbacks) note(`departed from the request: ${said.fallbacks}`);
    return lines;
  }

  playTurn(at) {
    const turn = this.turns[at];
    if (!this.audio || !turn) return;
    this.until = turn.end_s;
    this.audio.currentTime = turn.start_s;
    this.audio.play();
  }

  playQuote() {
    if (this.quotes.length) this.playTurn(this.quotes[0]);
  }

  follow(audio) {
    const now = audio.currentTime;
    if (this.until !== null && now >= this.until) { audio.pause(); this.until = null; }
    this.place.querySelectorAll(".turn").forEach((button, at) => {
      const turn = this.turns[at];
      button.classList.toggle("now", !audio.paused && now >= turn.start_s && now < turn.end_s);
    });
  }

  toggle() {
    if (!this.audio) return;
    this.until = null;
    if (this.audio.paused) this.audio.play(); else this.audio.pause();
  }

  seek(seconds) {
    if (this.audio) this.audio.currentTime = Math.max(0, this.audio.currentTime + seconds);
  }
}

function clock(seconds) {
  const whole = Math.floor(seconds);
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, "0")}`;
}

// "YES,NO,YES" as "2 YES, 1 NO"; a dash is a vote that said neither.
function tally(votes) {
  const counts = new Map();
  for (const vote of votes.split(",")) counts.set(vote, (counts.get(vote) ?? 0) + 1);
  return [...counts].sort((one, other) => other[1] - one[1])
    .map(([vote, count]) => `${count} ${vote === "-" ? "neither" : vote}`).join(", ");
}
