// The page: what is chosen, and the sections that follow from it.
"use strict";

const state = {study: 0, measure: 0, bits: "up", xScale: "auto", yScale: "auto", methods: new Set(DATA.methods.keys())};
const section = (id) => document.getElementById(id);

// Fills a section with a head and figures; a section without figures says why.
function fillFigures(id, title, text, figures, {wide = false, otherwise = "Nothing of this was measured."} = {}) {
  const drawn = figures.filter((figure) => figure !== null);
  section(id).append(element("h2", {}, title), element("p", {class: "note"}, text));
  section(id).append(drawn.length ? element("div", {class: drawn.length === 1 ? "panels single" : wide ? "panels wide" : "panels"}, ...drawn) : element("p", {}, otherwise));
}

function fillCurves(measure) {
  const name = measureName(measure);
  const common = {name, file: measure.name, yTitle: name, measure};
  fillFigures("curves", `${name} against ${BITS_NAMES[state.bits]}`,
    "Mean over the distinct runs with Student's 95% interval. Each run holds its last measured value, and a curve ends where its first run ends; all panels share their axes.",
    curveFigures(state, measure.curves[state.bits], {...common, against: state.bits}));
  fillFigures("rounds", `${name} against rounds`, "The same runs when bits are free.",
    curveFigures(state, measure.curves.round, {...common, against: "round"}));
}

function fillPareto(measure) {
  fillFigures("pareto", `${measureName(measure)} at the end, and its price`, `The mean over ${WINDOW} of each method's own ${BITS_NAMES[state.bits]}, with Student's 95% interval, against what its runs sent in all. `
    + "A description: methods that end at different bits are compared by a test only where the bits are equal.", paretoFigures(state, measure));
}

// Only where it was recorded.
function fillClients() {
  const figures = clientFigures(state);
  if (!figures.length) return;
  fillFigures("clients", "How the model serves its clients",
    "Accuracy of the one global model on each client's own rows, over all clients: the line is the median client, the band reaches from the 10th to the 90th percentile, "
    + "the dotted line is the client that is served worst. Means over the seeds.", figures);
}

function fillHeterogeneity(measure) {
  const zeta = (cell) => cell.zeta.mean;
  const common = measure.bits[state.bits].overLevels.map((at) => ({...estimatePoint(at, at.value), x: zeta(cellOf(at.panel, at.method))}));
  const errors = DATA.cells.map((cell) => ({...estimatePoint(cell, cell.totalError), x: zeta(cell)}));
  fillFigures("heterogeneity", "What heterogeneity does",
    "ζ² is the weighted mean over all clients of |∇f_i − ∇f|² at the initial model: measured, whatever knob made it. Mean and 95% interval over the seeds.", [
      relationFigure({title: `${measureName(measure)} at equal bits`, description: `At the ${BITS_NAMES[state.bits]} that all methods reached at all levels, seed by seed`,
        file: fileName("zeta", measure.name), points: common, xTitle: "measured ζ²", yTitle: measureName(measure), measure, state}),
      relationFigure({title: "Total error", description: "Sum over rounds of the mean squared error that feedback carries, |e|²", file: "fedbits-total-error", points: errors,
        xTitle: "measured ζ²", yTitle: "total error", state}),
    ], {wide: true, otherwise: "ζ² was not measured: set evaluate.measure_every."});
}

function fillDifferences(measure) {
  fillFigures("differences", `Differences to ${methodName(DATA.baseline)} at equal bits`,
    "Thick line: Student's 95% interval; thin line below: BCa bootstrap interval. A filled dot is a claim, an open one is none.",
    DATA.panels.map((_, p) => forestFigure(state, measure, p)), {otherwise: "There are no pairs of runs to compare."});
}

function fillOperators() {
  const promised = DATA.cells.some((cell) => ["kappa", "delta", "omega"].some((key) => isKnown(cell.promised[key])));
  fillFigures("operators", "What the compressors did", "Density is the share of entries that were sent, elements / (clients × P), round by round.", [
    ...curveFigures(state, DATA.density, {against: "round", name: "density", file: "density", yTitle: "density (share of entries)"}),
    contractFigure(state, {key: "kappa", title: "Absolute bound κ", description: "Largest |C(p) − p| of any client and round; the tick is the operator's bound, which dots stay left of", worst: "κ, in the unit of the input"}),
    contractFigure(state, {key: "delta", title: "Contraction δ", description: "Smallest 1 − |C(p) − p|²/|p|²; dots stay right of the bound where it holds pointwise", worst: "δ"}),
    contractFigure(state, {key: "omega", title: "Variance ω", description: "Largest |C(p) − p|²/|p|²; the bound is on its mean, so single rounds may exceed it", worst: "ω"}),
  ]);
  if (!promised) section("operators").append(element("p", {class: "note"}, "These runs do not record bounds of their operators; the measured values are below."));
  const columns = [{title: levelHead}, {title: DATA.methodKey}, {title: "mean density", number: true}, {title: "largest |C(p)−p|", number: true}, {title: "smallest δ", number: true}, {title: "largest ω", number: true}];
  const rows = DATA.cells.filter((cell) => shown(state, cell.method)).sort((a, b) => a.panel - b.panel || a.method - b.method)
    .map((cell) => [levelName(cell.panel), methodName(cell.method), ...["density", "kappa", "delta", "omega"].map((key) => meanText(cell[key]))]);
  const broken = DATA.cells.filter((cell) => shown(state, cell.method) && cell.broken);
  for (const cell of broken) section("operators").append(element("p", {class: "note"}, `${methodName(cell.method)}${DATA.panels.length > 1 ? ` (${panelName(cell.panel)})` : ""}: ${cell.broken}.`));
  section("operators").append(element("details", {}, element("summary", {}, "Measured, by method and level"),
    element("p", {class: "note"}, "Over all clients and measured rounds, whatever the operator states: the largest |C(p) − p|, δ = 1 − |C(p) − p|²/|p|² at its smallest, and ω = |C(p) − p|²/|p|² at its largest."),
    tableWithCsv(columns, rows, "Measured by method and level", "fedbits-operators")));
}

// Only where a theorem's assumptions hold.
function fillTheory() {
  const figures = DATA.theory.flatMap((_, theory) => theoryFigures(state, theory));
  if (!figures.length) return;
  const cells = DATA.cells.filter((cell) => shown(state, cell.method));
  const theorems = [...new Set(cells.flatMap((cell) => cell.theorem).filter(isKnown))].sort();
  fillFigures("theory", "Theory beside measurement",
    "What convergence theorems bound (lines) and their bounds (dots), for the runs that satisfy the assumptions of Sahu et al. (NeurIPS 2021): error feedback or unbiased operators, "
    + "full gradients or minibatches of a known variance, all clients in every round, a constant step size that is small enough. " + theorems.map((theorem) => THEOREMS[theorem]).join(" ") + " " + NOISE, figures);
  const random = [...new Set(cells.filter((cell) => cell.inExpectation.some((is) => is)).map((cell) => methodName(cell.method)))];
  if (random.length) section("theory").append(element("p", {class: "note"}, `The bounds of ${random.join(", ")} hold in expectation over random operators and minibatches: a single run may cross them.`));
  const left = [...new Set(cells.filter((cell) => !cell.theorem.some(isKnown)).map((cell) => methodName(cell.method)))];
  if (left.length) section("theory").append(element("p", {class: "note"}, `No bound is drawn for ${left.join(", ")}: the assumptions do not hold there.`));
}

function fillSplits() {
  if (!DATA.splits.length) return;
  fillFigures("splits", "Data distribution", "Training rows of each class at each client, for the smallest seed; split again from the stored scenario and checked against the stored hash.",
    DATA.splits.map((split) => split.missing ? null : splitFigure(split)), {otherwise: "No split can be drawn here."});
  for (const split of DATA.splits.filter((one) => one.missing))
    section("splits").append(element("p", {class: "note"}, `${split.panels.map(panelName).join("; ")}: ${split.missing}.`));
}

function fillMethod() {
  const say = (...texts) => element("p", {}, ...texts);
  section("method").append(element("h2", {}, "How these numbers are made"),
    say("Bits are the exact lengths of the encoded messages, headers included, all clients together; those of the downlink include what absent clients catch up on."),
    ...knownBits().filter((key) => key === "published" || key === "entropy").map((key) => say(`"${BITS_LABELS[key]}" is ${BITS_MEANINGS[key]}.`)),
    say("Seeds are paired: equal seeds give the same split, initial model and sampling, so methods are compared seed by seed. A cell in which a run diverged, failed or was interrupted has no mean; "
      + "it says so, and nothing is claimed about it."),
    say("Intervals are 95%: Student's t over the seeds, and the bias-corrected accelerated bootstrap (Efron 1987) from ", String(DATA.resamples), " resamples with a fixed key. "
      + "With few seeds both are rough; the bootstrap interval of three or five values is too short."),
    say(`Between measurements a run keeps its last measured value. Equal bits means truncation: for each pair of runs, the smaller of their totals. A run's value there is the mean of its steps over ${WINDOW} of `
      + `that budget, weighted by bits, so that neither the phase of an oscillation nor the noise of one minibatch decides. No claim is made from fewer than ${DATA.leastEvaluations} evaluations in that window.`),
    say("Seeds that gave one and the same run (equal checksums of the final model, equal bits) are one observation and count once everywhere. No claim is made about cells in which updates were refused, "
      + "or from pairs that all have the same difference."),
    say("Bits to a target: runs that never reach it are censored at their last bit, runs that diverged never arrive; the median and its interval are Kaplan and Meier's with the log-log interval of Brookmeyer and Crowley."));
}

// ---- the toolbar ---------------------------------------------------------------------------------------------------------------

function fillStudies() {
  const select = section("study");
  section("study-choice").hidden = STUDIES.length < 2;
  select.replaceChildren(...STUDIES.map((study, i) => element("option", {value: i}, `${study.name} (${plural(study.runs.length, "run")})`)));
  select.addEventListener("change", () => {
    state.study = Number(select.value);
    showStudy(state.study);
    Object.assign(state, {measure: 0, methods: new Set(DATA.methods.keys())});
    if (!knownBits().includes(state.bits)) state.bits = "up";
    fillStudy();
  });
}

const knownBits = () => Object.keys(BITS_LABELS).filter((key) => DATA.measures[0].bits[key]);

function choice(place, options, isChosen, choose) {
  const buttons = options.map(({label, value, swatch, meaning}) => element("button", {type: "button", title: meaning || null, class: swatch ? "method" : null, "aria-pressed": String(isChosen(value)), onclick: () => {
    choose(value);
    options.forEach((option, i) => buttons[i].setAttribute("aria-pressed", String(isChosen(option.value))));
    fill();
  }}, swatch || "", label));
  section(place).replaceChildren(...buttons);
}

function swatchOf(index) {
  const style = methodStyle(index, currentTheme());
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("class", "swatch");
  svg.setAttribute("aria-hidden", "true");
  const line = document.createElementNS("http://www.w3.org/2000/svg", "line");
  for (const [name, value] of Object.entries({x1: 0, x2: "100%", y1: "50%", y2: "50%", stroke: style.color, "stroke-dasharray": style.dash.join(" ")})) line.setAttribute(name, value);
  svg.append(line);
  return svg;
}

function fillToolbar() {
  choice("measures", DATA.measures.map((measure, value) => ({label: measureName(measure), value})), (value) => state.measure === value, (value) => { state.measure = value; });
  choice("bits", knownBits().map((value) => ({label: BITS_LABELS[value], meaning: BITS_MEANINGS[value], value})), (value) => state.bits === value, (value) => { state.bits = value; });
  for (const [place, key] of [["x-scale", "xScale"], ["y-scale", "yScale"]])
    choice(place, ["auto", "linear", "log"].map((value) => ({label: value, value})), (value) => state[key] === value, (value) => { state[key] = value; });
  choice("methods", DATA.methods.map((label, value) => ({label, value, swatch: swatchOf(value)})), (value) => state.methods.has(value),
    (value) => state.methods.has(value) && state.methods.size > 1 ? state.methods.delete(value) : state.methods.add(value));
}

function fillTheme() {
  const button = section("theme");
  const isDark = currentTheme().name === "dark";
  button.textContent = isDark ? "Light theme" : "Dark theme";
  button.setAttribute("aria-pressed", String(isDark));
}

function changeTheme() {
  document.documentElement.dataset.theme = currentTheme().name === "dark" ? "light" : "dark";
  themeChanged();
}

function themeChanged() {
  fillTheme();
  fillToolbar();
  drawAll();
}

// ---- all of it -----------------------------------------------------------------------------------------------------------------

function fill() {
  const measure = DATA.measures[state.measure];
  for (const id of ["answer", "curves", "rounds", "pareto", "clients", "heterogeneity", "differences", "equal-bits", "target", "operators", "theory"]) clearSection(section(id));
  fillAnswer(section("answer"), state, measure);
  fillCurves(measure);
  fillPareto(measure);
  fillClients();
  fillHeterogeneity(measure);
  fillDifferences(measure);
  fillEqualBits(section("equal-bits"), state, measure);
  fillTarget(section("target"), state, measure);
  fillOperators();
  fillTheory();
  drawAll();
}

// What belongs to the study and not to what is chosen of it.
function fillStudy() {
  const seeds = [...new Set(DATA.runs.map((run) => run[3]))];
  const levels = DATA.levelKey ? `${plural(DATA.panels.length, "level")} of ${DATA.levelKey}` : plural(DATA.panels.length, "setting");
  const others = DATA.inStore.length > 1 ? `study “${DATA.name}”, one of ${DATA.inStore.length} in this store, which are not compared with each other · ` : "";
  section("facts").textContent = `${others}${plural(DATA.runs.length, "run")} · ${plural(DATA.methods.length, "method")} (${DATA.methodKey}) · ${levels} · ${plural(seeds.length, "paired seed")}`;
  section("origin").textContent = `Made by fedbits ${DATA.version} from ${DATA.source}. Charts: Vega (BSD 3-clause, UW Interactive Data Lab), inside this file with its licence.`;
  for (const id of ["splits", "runs"]) clearSection(section(id));
  fillToolbar();
  fill();
  fillSplits();
  drawAll(section("splits"));
  fillRuns(section("runs"));
}

// Paper is white, and a figure is as wide as its column there.
function preparePaper(printing) {
  isPrinting = printing;
  drawAll();
}

function start() {
  section("theme").addEventListener("click", changeTheme);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { if (!document.documentElement.dataset.theme) themeChanged(); });
  addEventListener("beforeprint", () => preparePaper(true));
  addEventListener("afterprint", () => preparePaper(false));
  fillTheme();
  fillStudies();
  fillStudy();
  fillMethod();
  document.documentElement.dataset.ready = "yes";
}

start();
