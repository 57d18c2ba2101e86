// A figure: one Vega chart with a title and a legend, its data as a table, and both for download. It is drawn again when the theme or its
// width changes, and for paper.
"use strict";

// Okabe and Ito's colours, which the colour-blind can tell apart; the baseline has the colour of the ink, references are
// grey and dotted. Beyond them, dashes.
const OKABE_ITO = {
  light: ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"],
  dark: ["#56b4e9", "#e6793a", "#2fc499", "#de9cc2", "#f0b63c", "#9fd4f5"],
};
const DASHES = [[], [6, 3], [2, 3], [8, 3, 2, 3]];
const THEMES = {
  light: {name: "light", paper: "#ffffff", ink: "#1b1f24", soft: "#57606a", line: "#d9dee3", grid: "#eceff2"},
  dark: {name: "dark", paper: "#14171b", ink: "#e8eaed", soft: "#a3abb5", line: "#3b434d", grid: "#262b32"},
};
const FONT = 'system-ui, "Segoe UI", Roboto, "Helvetica Neue", "DejaVu Sans", sans-serif';

let isPrinting = false;

function currentTheme() {
  if (isPrinting) return THEMES.light;
  const chosen = document.documentElement.dataset.theme;
  if (chosen) return THEMES[chosen];
  return THEMES[matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"];
}

function methodStyle(index, theme) {
  if (index === DATA.baseline) return {color: theme.ink, dash: []};
  if (DATA.isReference[index]) return {color: theme.soft, dash: [1, 3]};
  const place = DATA.methods.slice(0, index).filter((_, m) => isAlternative(m)).length;
  const colors = OKABE_ITO[theme.name];
  return {color: colors[place % colors.length], dash: DASHES[Math.floor(place / colors.length) % DASHES.length]};
}

// Scales from method labels to colour and dash, for every chart alike.
function methodScales(theme) {
  const styles = DATA.methods.map((_, i) => methodStyle(i, theme));
  return [
    {name: "color", type: "ordinal", domain: DATA.methods, range: styles.map((style) => style.color)},
    {name: "dash", type: "ordinal", domain: DATA.methods, range: styles.map((style) => style.dash)},
  ];
}

// As many columns as fit, and the height that its rows take.
const legendColumns = (used, width) => Math.max(1, Math.min(4, used.length, Math.floor(width / (48 + 6.6 * Math.max(...used.map((name) => name.length))))));
const legendHeight = (used, width) => 14 + 17 * Math.ceil(used.length / legendColumns(used, width));
const methodLegend = (used, width) => ({
  stroke: "color", strokeDash: "dash", symbolType: "stroke", orient: "bottom", direction: "horizontal", columns: legendColumns(used, width), symbolStrokeWidth: 3,
  symbolSize: 200, values: used, labelLimit: Math.max(60, width - 60), padding: 4,
});

const vegaConfig = (theme) => ({
  background: null,
  title: {color: theme.ink, font: FONT, fontSize: 13, fontWeight: 600, anchor: "start"},
  axis: {
    labelColor: theme.soft, titleColor: theme.soft, labelFont: FONT, titleFont: FONT, labelFontSize: 11, titleFontSize: 11.5,
    titleFontWeight: 400, domainColor: theme.line, tickColor: theme.line, gridColor: theme.grid, labelOverlap: true, titlePadding: 8,
    tickSize: 4, labelPadding: 4, labelLimit: 150,
  },
  legend: {labelColor: theme.ink, labelFont: FONT, labelFontSize: 11.5},
});

// Colours and width come in, a Vega specification goes out; what is fixed for all charts is added here.
function completeSpec(figure, theme, width, forExport) {
  const spec = figure.spec(theme, width);
  spec.$schema = "https://vega.github.io/schema/vega/v5.json";
  spec.config = vegaConfig(theme);
  spec.width = width;
  spec.padding = forExport ? 12 : {left: 2, right: 8, top: 6, bottom: 2};
  spec.autosize = {type: "fit", contains: "padding"};
  spec.scales = [...spec.scales, ...methodScales(theme)];
  if (figure.methods && figure.methods.length && figure.legend !== false) {
    spec.legends = [methodLegend(figure.methods, width)];
    spec.height += legendHeight(figure.methods, width);
  }
  if (forExport) {
    spec.background = theme.paper;
    spec.title = {text: figure.title, subtitle: figure.description, subtitleColor: theme.soft, subtitleFont: FONT, subtitleFontSize: 11, limit: width};
    spec.height = Math.round(1.2 * spec.height) + 40;  // and a title
  }
  return spec;
}

const FIGURES = new Map();  // plot element -> figure

// Expressions are interpreted, since a page whose policy forbids eval cannot compile them.
const viewOf = (spec, options) => new vega.View(vega.parse(spec, null, {ast: true}), {expr: vega.expressionInterpreter, logLevel: vega.Warn, ...options});

// The values under the pointer, beside it.
const TIP = element("div", {class: "tip", role: "status", hidden: true});
document.body.append(TIP);
function showTip(handler, event, item, value) {
  TIP.hidden = value === null || value === undefined || value === "";
  if (TIP.hidden) return;
  TIP.textContent = String(value);
  TIP.style.left = `${Math.max(0, Math.min(event.clientX + 12, innerWidth - TIP.offsetWidth - 8))}px`;
  TIP.style.top = `${Math.max(0, event.clientY - TIP.offsetHeight - 10)}px`;
}

// On paper a figure is drawn for its column: half of a page's width, a third where three stand side by side, or all of it where it stands alone.
const PAPER = {third: 215, column: 330, page: 690};
const paperWidth = (plot) => plot.closest(".single, .wide") ? PAPER.page : plot.closest(".three") ? PAPER.third : PAPER.column;

function draw(plot) {
  const figure = FIGURES.get(plot);
  const width = isPrinting ? paperWidth(plot) : Math.floor(plot.clientWidth);
  if (!figure || width < 50) return;
  if (figure.view) figure.view.finalize();
  plot.replaceChildren();
  figure.width = width;
  figure.view = viewOf(completeSpec(figure, currentTheme(), width, false), {renderer: "svg", container: plot, hover: false, tooltip: showTip});
  figure.view.run();
  const svg = plot.querySelector("svg");
  if (!svg) return;
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", `${figure.title}. ${figure.description} The data follow as a table.`);
}

const resized = new ResizeObserver((entries) => {
  for (const {target} of entries) {
    const figure = FIGURES.get(target);
    if (!isPrinting && figure && figure.width !== undefined && Math.abs(figure.width - Math.floor(target.clientWidth)) > 4) draw(target);
  }
});

// ---- downloads -----------------------------------------------------------------------------------------------------------------

const EXPORT_WIDTH = 760, PNG_SCALE = 3;
const exported = (figure) => viewOf(completeSpec(figure, THEMES.light, EXPORT_WIDTH, true), {renderer: "none"});

const saveSvg = async (figure) => download(`${figure.file}.svg`, "image/svg+xml", await exported(figure).toSVG());
const savePdf = async (figure) => download(`${figure.file}.pdf`, "application/pdf", pdfOfSvg(await exported(figure).toSVG()));
async function savePng(figure) {
  const canvas = await exported(figure).toCanvas(PNG_SCALE);
  canvas.toBlob((blob) => download(`${figure.file}.png`, "image/png", blob), "image/png");
}

// figure: {title, description, file, methods, spec(theme, width), columns, rows()}; rows are arrays of plain values.
function figureElement(figure) {
  const plot = element("div", {class: "plot"});
  const details = element("details", {}, element("summary", {}, "Data as a table"));
  details.addEventListener("toggle", () => {
    if (!details.open || details.children.length > 1) return;
    const columns = figure.columns.map((title, c) => ({title, number: c > 0}));
    const rows = figure.rows().map((row) => row.map((value) => typeof value === "number" ? short(value) : value === null ? "–" : String(value)));
    details.append(scrolling(table(columns, rows), figure.title, true));
  });
  FIGURES.set(plot, figure);
  resized.observe(plot);
  return element("figure", {},
    element("figcaption", {}, element("h3", {}, figure.title), figure.description ? element("p", {}, figure.description) : null),
    plot,
    element("div", {class: "tools"},
      ...[["SVG", saveSvg], ["PNG", savePng], ...(PDF_FONTS.regular ? [["PDF", savePdf]] : [])].map(([format, save]) =>
        element("button", {type: "button", onclick: () => save(figure), "aria-label": `Download ${figure.title} as ${format}`}, format)),
      element("button", {type: "button", onclick: () => download(`${figure.file}.csv`, "text/csv", csv(figure.columns, figure.rows())),
        "aria-label": `Download the data of ${figure.title} as CSV`}, "CSV"),
      details));
}

function drawAll(within = document) {
  for (const plot of within.querySelectorAll(".plot")) draw(plot);
}

// Takes the figures of a section away before it is filled anew.
function clearSection(section) {
  for (const plot of section.querySelectorAll(".plot")) {
    const figure = FIGURES.get(plot);
    if (figure && figure.view) figure.view.finalize();
    resized.unobserve(plot);
    FIGURES.delete(plot);
  }
  section.replaceChildren();
}

// Fills a section with a head and figures; a section without figures says why.
function fillFigures(section, title, text, figures, {wide = false, otherwise = "Nothing of this was measured."} = {}) {
  const drawn = figures.filter((figure) => figure !== null);
  section.append(element("h2", {}, title), element("p", {class: "note"}, text));
  section.append(drawn.length ? element("div", {class: drawn.length === 1 ? "panels single" : wide ? "panels wide" : drawn.length === 3 ? "panels three" : "panels"}, ...drawn) : element("p", {}, otherwise));
}
