// The page of `fedbits sweep` and `fedbits run`: the runs by state, the workers, what has ended and what went wrong.
"use strict";

const STATES = {p: "pending", r: "running", d: "done", v: "diverged", f: "failed", i: "interrupted"};
// Each state has a shape of its own, so that colours are not needed to tell them apart.
const SHAPES = {
  p: () => [drawn("rect", {x: 1, y: 1, width: 10, height: 10, fill: "none", stroke: "currentColor"})],
  r: () => [drawn("rect", {x: 1, y: 1, width: 10, height: 10, fill: "none", stroke: "currentColor", "stroke-width": 2}), drawn("rect", {x: 3.5, y: 3.5, width: 5, height: 5, fill: "currentColor"})],
  d: () => [drawn("rect", {x: 0.5, y: 0.5, width: 11, height: 11, fill: "currentColor"})],
  v: () => [drawn("path", {d: "M6,0.5 L11.5,11.5 L0.5,11.5 Z", fill: "currentColor"})],
  f: () => [drawn("path", {d: "M1.5,1.5 L10.5,10.5 M10.5,1.5 L1.5,10.5", stroke: "currentColor", "stroke-width": 2.5})],
  i: () => [drawn("path", {d: "M1,6 H11", stroke: "currentColor", "stroke-width": 3})],
};
const MOST_SQUARES = 2500, SQUARE = 15;

class SquareGrid {
  constructor() {
    Object.assign(this, {states: "", batch: 0, titles: [], each: 1, at: -1, squares: []});
    this.here = drawn("rect", {class: "here", width: SQUARE, height: SQUARE, visibility: "hidden"});
    this.svg = drawn("svg", {class: "squares", role: "img", tabindex: 0},
      drawn("defs", {}, ...Object.entries(SHAPES).map(([state, shape]) => drawn("g", {id: `shape-${state}`}, ...shape()))));
    this.readout = element("p", {class: "readout", "aria-live": "polite"});
    this.keys = element("ul", {class: "keys"});
    this.counts = Object.fromEntries(Object.entries(STATES).map(([state, name]) => {
      const count = element("span", {});
      this.keys.append(element("li", {}, drawn("svg", {class: `square ${state}`, viewBox: "0 0 12 12", "aria-hidden": "true"}, drawn("use", {href: `#shape-${state}`})), `${name} `, count));
      return [state, count];
    }));
    this.details = element("details", {}, element("summary", {}, "Runs as a table"));
    this.details.addEventListener("toggle", () => this.fillTable());
    this.plot = element("div", {}, this.svg);
    this.node = element("div", {}, this.keys, this.plot, this.readout, this.details);
    this.svg.addEventListener("pointermove", (event) => this.point(event));
    this.svg.addEventListener("pointerleave", () => this.choose(-1));
    this.svg.addEventListener("keydown", (event) => this.key(event));
    new ResizeObserver(() => requestAnimationFrame(() => this.lay())).observe(this.plot);
  }

  update(status) {
    const {states, batch} = status;
    for (const [state, name] of Object.entries(STATES)) setText(this.counts[state], String(status.counts[name]));
    if (states === this.states && batch === this.batch) return;
    const isNew = batch !== this.batch;
    Object.assign(this, {states, batch});
    this.each = Math.max(1, Math.ceil(states.length / MOST_SQUARES));
    if (isNew) {
      for (const square of this.squares) square.remove();
      this.squares = Array.from({length: Math.ceil(states.length / this.each)}, () => drawn("use", {}));
      this.svg.append(...this.squares, this.here);
      this.columns = 0;
      this.lay();
      loadTitles((titles) => { this.titles = titles; this.fillTable(); });
    }
    this.squares.forEach((square, i) => {
      const state = this.stateOf(i);
      setAttribute(square, "href", `#shape-${state}`);
      setAttribute(square, "class", state);
    });
    const text = Object.entries(STATES).map(([, name]) => `${status.counts[name]} ${name}`).join(", ");
    setAttribute(this.svg, "aria-label", `${states.length} runs: ${text}. ${this.each > 1 ? `A square stands for ${this.each} runs. ` : ""}The runs follow as a table. Arrow keys move along the runs.`);
    this.fillTable();
  }

  // Of several runs: what went wrong, then what is running, then what is not done.
  stateOf(i) {
    const states = this.states.slice(i * this.each, (i + 1) * this.each);
    return [..."fvirp"].find((state) => states.includes(state)) || "d";
  }

  lay() {
    const width = isPrinting ? 690 : Math.floor(this.plot.clientWidth), columns = Math.max(1, Math.floor(width / SQUARE));
    if (columns === this.columns || !this.squares.length) return;
    this.columns = columns;
    this.squares.forEach((square, i) => setAttribute(square, "transform", `translate(${SQUARE * (i % columns) + 1},${SQUARE * Math.floor(i / columns) + 1})`));
    const height = SQUARE * Math.ceil(this.squares.length / columns) + 1;
    setAttribute(this.svg, "viewBox", `0 0 ${columns * SQUARE} ${height}`);
    this.svg.style.maxWidth = `${columns * SQUARE}px`;
  }

  choose(at) {
    this.at = at;
    const isOn = at >= 0 && at < this.squares.length;
    setAttribute(this.here, "visibility", isOn ? "visible" : "hidden");
    if (!isOn) return setText(this.readout, "");
    setAttribute(this.here, "x", SQUARE * (at % this.columns) - 0.5);
    setAttribute(this.here, "y", SQUARE * Math.floor(at / this.columns) - 0.5);
    const from = at * this.each, to = Math.min(this.states.length, from + this.each);
    setText(this.readout, this.each > 1 ? `Runs ${from + 1} to ${to}: ${STATES[this.stateOf(at)]}` : `${this.titles[at] || `Run ${at + 1}`}: ${STATES[this.states[at]]}`);
  }
  point(event) {
    if (!this.columns) return;
    const box = this.svg.getBoundingClientRect(), scale = this.columns * SQUARE / box.width;
    const column = Math.floor((event.clientX - box.left) * scale / SQUARE), row = Math.floor((event.clientY - box.top) * scale / SQUARE);
    this.choose(column < this.columns ? row * this.columns + column : -1);
  }
  key(event) {
    const steps = {ArrowLeft: -1, ArrowRight: 1, ArrowUp: -this.columns, ArrowDown: this.columns};
    const last = this.squares.length - 1;
    if (event.key === "Escape") return this.choose(-1);
    if (!(event.key in steps) && event.key !== "Home" && event.key !== "End") return;
    event.preventDefault();
    const to = event.key === "Home" ? 0 : event.key === "End" ? last : this.at < 0 ? 0 : this.at + steps[event.key];
    this.choose(Math.max(0, Math.min(last, to)));
  }

  fillTable() {
    if (!this.details.open) return;
    const most = 1000;
    this.list = this.list || new LiveTable([{title: "run", number: true}, {title: "title"}, {title: "state"}], "Runs");
    this.list.fill([...this.states].slice(0, most).map((state, i) => [String(i + 1), this.titles[i] || "", {text: STATES[state], kind: `state-${STATES[state]}`}]));
    if (this.list.node.isConnected) return;
    this.list.node.classList.add("tall");
    this.details.append(this.list.node, this.states.length > most ? element("p", {class: "note"}, `The first ${most} runs are listed.`) : "");
  }
}

async function loadTitles(take) {
  try {
    take((await (await fetch("cells.json")).json()).titles);
  } catch {
    take([]);
  }
}

class SweepPage {
  constructor(main) {
    this.figures = new Figures(["Runs ended", "Running now", "Failed or diverged", "Bits up", "Bits down", "Time left"]);
    this.whole = progressBar("Runs that have ended");
    this.whole.classList.add("whole");
    this.grid = new SquareGrid();
    this.workers = new LiveTable([{title: "worker", number: true}, {title: "run"}, {title: "round"}, {title: "training loss", number: true}, {title: "test accuracy", number: true}], "Workers");
    const columns = [{title: "run"}, {title: "status"}, {title: "rounds", number: true}, {title: "training loss", number: true}, {title: "test accuracy", number: true}, {title: "time", number: true}];
    this.ended = new LiveTable(columns, "Runs that ended last");
    this.problems = new LiveTable([...columns.slice(0, 3), {title: "reason"}], "Runs that failed or diverged");
    this.endedPart = part("Runs that ended last", "The newest is at the top.", this.ended.node);
    this.problemsPart = part("Runs that failed or diverged", "", this.problems.node);
    main.append(part("This study", "", this.figures.node, this.whole), part("Runs", "", this.grid.node), part("Workers", "", this.workers.node), this.problemsPart, this.endedPart);
  }

  show(status) {
    const {counts} = status, bad = counts.diverged + counts.failed + counts.interrupted, over = counts.done + bad;
    this.figures.set("Runs ended", String(over), `of ${status.cells}`);
    this.figures.set("Running now", String(counts.running), `on ${plural(status.workers.length, "worker")}`);
    this.figures.set("Failed or diverged", String(bad));
    this.figures.set("Bits up", bits(status.bits_up));
    this.figures.set("Bits down", bits(status.bits_down));
    this.figures.set("Time left", duration(status.seconds_left), `after ${duration(status.seconds)}`);
    setBar(this.whole, status.cells ? over / status.cells : 0);
    this.grid.update(status);
    this.workers.fill(status.workers.map((worker, w) => worker === null ? [String(w + 1), {text: "idle", kind: "state-left"}, "", "", ""] :
      [String(w + 1), worker.title, {text: `${worker.round} of ${worker.rounds}`, bar: worker.rounds ? worker.round / worker.rounds : 0}, short(worker.train_loss), percent(worker.test_accuracy)]));
    this.endedPart.hidden = status.ended.length === 0;
    this.ended.fill([...status.ended].reverse().map((run) => [run.title, {text: run.status, kind: `state-${run.status}`}, String(run.rounds), short(run.train_loss), percent(run.test_accuracy), duration(run.seconds)]));
    this.problemsPart.hidden = status.problems.length === 0;
    this.problems.fill([...status.problems].reverse().map((run) => [run.title, {text: run.status, kind: `state-${run.status}`}, String(run.rounds), {text: run.message, kind: "text"}]));
  }

  facts(status) { return [status.command && `fedbits ${status.command}`, status.cells && plural(status.cells, "run"), status.folder].filter(Boolean).join(" · "); }
  say(status) {
    const {counts} = status;
    const runs = `${counts.done + counts.diverged + counts.failed + counts.interrupted} of ${plural(status.cells, "run")} have ended, ${counts.running} are running.`;
    if (status.phase === "tuning" && status.cells) return `Tuning, ${status.purpose}: ${runs} The study's own runs follow.`;
    return status.phase === "running" ? runs : `The study is ${status.phase}.`;
  }
}
