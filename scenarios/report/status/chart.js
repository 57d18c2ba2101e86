// A chart that grows while a run is played. Its elements stay and only their attributes change, so that nothing flickers; its data are
// beside it as a table. Arrow keys move a cursor, whose values are read aloud.
"use strict";

const SVG = "http://www.w3.org/2000/svg";
function drawn(tag, attributes = {}, ...children) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}
const setText = (node, text) => { if (node.textContent !== text) node.textContent = text; };
const setAttribute = (node, name, value) => { if (node.getAttribute(name) !== String(value)) node.setAttribute(name, value); };

const PAPER_WIDTH = 330, CHART_HEIGHT = 220, EDGE = {left: 62, right: 10, top: 10, bottom: 36};
let isPrinting = false;
const CHARTS = [];

// Even steps of 1, 2 or 5 from the first to the last.
function evenTicks([low, high], count) {
  const raw = (high - low) / count, size = 10 ** Math.floor(Math.log10(raw)), step = [1, 2, 5, 10].find((factor) => factor * size >= raw) * size;
  const ticks = [];
  for (let tick = Math.ceil(low / step - 1e-9) * step; tick <= high + step * 1e-9; tick += step) ticks.push(Number(tick.toPrecision(12)));
  return ticks;
}

class LiveChart {
  // series: [{key, label}], at most two; format(value) writes one; `share` is for values between 0 and 1.
  constructor({title, description, series, format, share = false, fromZero = false}) {
    Object.assign(this, {title, description, series, format, share, fromZero, rounds: [], values: {}, seen: "", at: -1});
    this.grid = drawn("g", {class: "grid"});
    this.axis = drawn("g", {class: "axis"});
    this.curves = series.map((_, i) => drawn("path", {class: `curve ${i ? "two" : "one"}`}));
    this.dots = series.map((_, i) => drawn("circle", {class: `dot ${i ? "two" : "one"}`, r: 3.5, visibility: "hidden"}));
    this.cursor = drawn("line", {class: "cursor", visibility: "hidden"});
    this.xTitle = drawn("text", {"text-anchor": "middle"}, "round");
    this.svg = drawn("svg", {class: "live", role: "img", tabindex: 0}, this.grid, this.axis, this.cursor, ...this.curves, ...this.dots, this.xTitle);
    this.readout = element("p", {class: "readout", "aria-live": "polite"});
    this.details = element("details", {}, element("summary", {}, "Data as a table"));
    this.details.addEventListener("toggle", () => this.fillTable());
    this.svg.addEventListener("pointermove", (event) => this.point(event.clientX));
    this.svg.addEventListener("pointerleave", () => this.choose(-1));
    this.svg.addEventListener("keydown", (event) => this.key(event));
    const keys = series.length < 2 ? null : element("ul", {class: "keys"}, ...series.map(({label}, i) =>
      element("li", {}, drawn("svg", {class: "live", "aria-hidden": "true"}, drawn("line", {class: i ? "two" : "one", x1: 0, x2: "100%", y1: "50%", y2: "50%"})), label)));
    this.plot = element("div", {class: "plot"}, this.svg);
    this.figure = element("figure", {}, element("figcaption", {}, element("h3", {}, title), element("p", {}, description)), keys, this.plot, this.readout,
      element("div", {class: "tools"}, this.details));
    CHARTS.push(this);
    new ResizeObserver(() => requestAnimationFrame(() => this.draw())).observe(this.plot);
  }

  update(rounds, values) {
    const seen = JSON.stringify([rounds.length, rounds[0], rounds[rounds.length - 1], this.series.map(({key}) => values[key][rounds.length - 1])]);
    if (seen === this.seen) return;
    const wasLast = this.at >= 0 && this.at === this.rounds.length - 1;
    Object.assign(this, {rounds, values, seen});
    if (wasLast || this.at >= rounds.length) this.at = rounds.length - 1;
    this.draw();
    this.fillTable();
  }

  known(i) { return this.series.some(({key}) => Number.isFinite(this.values[key][i])); }

  // The scales: places of a round and of a value, and the ticks of both.
  scales(width) {
    const all = this.series.flatMap(({key}) => this.values[key]).filter(Number.isFinite);
    const log = !this.share && !this.fromZero && wantsLog(all);
    const domain = span(this.fromZero ? [0, ...all] : all, log);
    if (this.share) [domain[0], domain[1]] = [Math.max(0, domain[0] - 0.02), Math.min(1, domain[1] + 0.02)];
    const last = Math.max(1, this.rounds[this.rounds.length - 1] || 1), bend = log ? Math.log : (value) => value;
    const inner = {width: width - EDGE.left - EDGE.right, height: CHART_HEIGHT - EDGE.top - EDGE.bottom};
    return {
      x: (round) => EDGE.left + inner.width * round / last,
      y: (value) => EDGE.top + inner.height * (1 - (bend(value) - bend(domain[0])) / (bend(domain[1]) - bend(domain[0]))),
      xTicks: evenTicks([0, last], Math.max(2, Math.min(6, inner.width / 70))).filter(Number.isInteger),
      yTicks: log ? logTicks(domain) : evenTicks(domain, 4),
      log,
    };
  }

  width() { return isPrinting ? PAPER_WIDTH : Math.floor(this.plot.clientWidth); }

  draw() {
    const width = this.width();
    if (width < 50) return;
    setAttribute(this.svg, "viewBox", `0 0 ${width} ${CHART_HEIGHT}`);
    const some = this.rounds.some((_, i) => this.known(i));
    setAttribute(this.svg, "aria-label", `${this.title}. ${this.description} ${this.lastText()} The data follow as a table. Arrow keys move along the curve.`);
    setAttribute(this.xTitle, "x", (EDGE.left + width - EDGE.right) / 2);
    setAttribute(this.xTitle, "y", CHART_HEIGHT - 4);
    if (!some) return;
    const scales = this.scales(width);
    this.place = scales;
    this.drawAxes(scales, width);
    this.series.forEach(({key}, i) => setAttribute(this.curves[i], "d", this.path(this.values[key], scales)));
    this.drawCursor();
  }

  // A value holds until the next one is measured.
  path(values, {x, y, log}) {
    let text = "";
    this.rounds.forEach((round, i) => {
      if (!Number.isFinite(values[i]) || (log && values[i] <= 0)) return;
      text += text ? `H${x(round).toFixed(1)}V${y(values[i]).toFixed(1)}` : `M${x(round).toFixed(1)},${y(values[i]).toFixed(1)}`;
    });
    return text;
  }

  drawAxes({x, y, xTicks, yTicks}, width) {
    const key = JSON.stringify([width, xTicks, yTicks, y(yTicks[0])]);
    if (key === this.axesKey) return;
    this.axesKey = key;
    const bottom = CHART_HEIGHT - EDGE.bottom, right = width - EDGE.right;
    this.grid.replaceChildren(...yTicks.map((tick) => drawn("line", {x1: EDGE.left, x2: right, y1: y(tick), y2: y(tick)})));
    this.axis.replaceChildren(drawn("line", {x1: EDGE.left, x2: right, y1: bottom, y2: bottom}),
      ...yTicks.map((tick) => drawn("text", {x: EDGE.left - 6, y: y(tick) + 4, "text-anchor": "end"}, this.format(tick))),
      ...xTicks.map((tick) => drawn("text", {x: x(tick), y: bottom + 15, "text-anchor": "middle"}, String(tick))));
  }

  textAt(i) {
    return `Round ${this.rounds[i]}: ` + this.series.map(({key, label}) => (this.series.length > 1 ? `${label} ` : "") + this.format(this.values[key][i])).join(", ") + ".";
  }
  lastText() {
    return this.rounds.length ? this.textAt(this.rounds.length - 1) : "Nothing is measured yet.";
  }

  drawCursor() {
    const isOn = this.at >= 0 && this.at < this.rounds.length && this.place !== undefined;
    for (const node of [this.cursor, ...this.dots]) setAttribute(node, "visibility", isOn ? "visible" : "hidden");
    setText(this.readout, isOn ? this.textAt(this.at) : "");
    if (!isOn) return;
    const x = this.place.x(this.rounds[this.at]);
    for (const [name, value] of [["x1", x], ["x2", x], ["y1", EDGE.top], ["y2", CHART_HEIGHT - EDGE.bottom]]) setAttribute(this.cursor, name, value);
    this.series.forEach(({key}, i) => {
      const value = this.values[key][this.at];
      if (!Number.isFinite(value)) return setAttribute(this.dots[i], "visibility", "hidden");
      setAttribute(this.dots[i], "cx", x);
      setAttribute(this.dots[i], "cy", this.place.y(value));
    });
  }

  choose(at) {
    this.at = at;
    this.drawCursor();
  }
  point(clientX) {
    if (!this.place || !this.rounds.length) return;
    const box = this.svg.getBoundingClientRect(), at = (clientX - box.left) * this.width() / box.width;
    let best = 0;
    this.rounds.forEach((round, i) => { if (Math.abs(this.place.x(round) - at) < Math.abs(this.place.x(this.rounds[best]) - at)) best = i; });
    this.choose(best);
  }
  key(event) {
    const last = this.rounds.length - 1, from = this.at < 0 ? last : this.at;
    const to = {ArrowLeft: from - (this.at < 0 ? 0 : 1), ArrowRight: from + 1, Home: 0, End: last, Escape: -1}[event.key];
    if (to === undefined || last < 0) return;
    event.preventDefault();
    this.choose(event.key === "Escape" ? -1 : Math.max(0, Math.min(last, to)));
  }

  fillTable() {
    if (!this.details.open) return;
    const columns = [{title: "round"}, ...this.series.map(({label}) => ({title: label, number: true}))];
    const rows = this.rounds.map((round, i) => [String(round), ...this.series.map(({key}) => this.format(this.values[key][i]))]);
    this.scroller = this.scroller || scrolling("", this.title, true);
    this.scroller.replaceChildren(table(columns, rows));
    if (!this.scroller.isConnected) this.details.append(this.scroller);
  }
}
