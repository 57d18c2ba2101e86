// What charts share: axes, and curves with their bands as figures.
"use strict";

const BIT_LABELS = "replace(format(datum.value, '~s'), regexp('([kMGTPE]?)$'), ' $1bit')";
const labelsOf = (against) => against === "seconds" ? "format(datum.value, '~s') + ' s'" : BIT_LABELS;
const shown = (state, index) => state.methods.has(index);

const logAxis = (log, domain) => log ? {values: logTicks(domain), format: "~g"} : {};

const valueAxis = (title, extra = {}) => ({orient: "left", scale: "y", title, grid: true, domain: false, ticks: false, tickCount: 5, ...extra});
// Shares lie between 0 and 1, whatever an interval says.
const withinRange = (measure, [low, high]) => measure && isAccuracy(measure) ? [Math.max(low, 0), Math.min(high, 1)] : [low, high];
const yScale = (log, domain) => ({name: "y", type: log ? "log" : "linear", domain, range: "height", nice: !log, zero: false, clamp: true});

// Whether the values are drawn on a log scale: as the switch says; without a wish for gaps, and for values that are far apart.
function logScale(wish, values, measure) {
  const usable = values.filter(Number.isFinite), someAbove = usable.some((value) => value > 0);
  if (wish === "linear" || !someAbove) return false;
  if (wish === "log") return true;
  if (measure && isAccuracy(measure)) return false;
  return measure && isGap(measure) ? usable.filter((value) => value > 0).length > usable.length / 2 : wantsLog(values);
}

// ---- curves --------------------------------------------------------------------------------------------------------------------

// One line of a panel as points; the last one lies where its shortest run ended.
function curvePoints(curve, line) {
  return line.y.map((y, i) => {
    const last = i + 1 === line.y.length;
    return {method: methodName(line.m), x: last ? line.end : curve.x[line.from + i], y, lo: line.lo ? line.lo[i] : null, hi: line.hi ? line.hi[i] : null};
  }).filter((point) => isKnown(point.y));
}

function curveSpec(points, {log, xLog, xTitle, yTitle, domain, xDomain, xLabels, xUnit, height}) {
  return (theme) => ({
    height,
    data: [
      {name: "points", values: points},
      {name: "bands", source: "points", transform: [{type: "filter", expr: `isValid(datum.lo) && isValid(datum.hi)${log ? " && datum.hi > 0" : ""}`},
        ...(log ? [{type: "formula", as: "lo", expr: `max(datum.lo, ${domain[0]})`}] : [])]},
    ],
    scales: [
      {name: "x", type: xLog ? "log" : "linear", domain: xDomain, range: "width", clamp: true, nice: false},
      yScale(log, domain),
    ],
    axes: [
      {orient: "bottom", scale: "x", title: xTitle, tickCount: 4, ...logAxis(xLog, xDomain), ...(xLabels ? {encode: {labels: {update: {text: {signal: xLabels}}}}} : {})},
      valueAxis(yTitle, logAxis(log, domain)),
    ],
    marks: [
      {type: "group", from: {facet: {name: "band", data: "bands", groupby: "method"}}, marks: [{
        type: "area", from: {data: "band"}, encode: {update: {
          x: {scale: "x", field: "x"}, y: {scale: "y", field: "lo"}, y2: {scale: "y", field: "hi"}, fill: {scale: "color", field: "method"},
          fillOpacity: {value: theme.name === "dark" ? 0.22 : 0.15}, interpolate: {value: "step-after"},
        }}}]},
      {type: "group", from: {facet: {name: "line", data: "points", groupby: "method"}}, marks: [{
        type: "line", from: {data: "line"}, encode: {update: {
          x: {scale: "x", field: "x"}, y: {scale: "y", field: "y"}, stroke: {scale: "color", field: "method"}, strokeWidth: {value: 2},
          strokeDash: {scale: "dash", field: "method"}, interpolate: {value: "step-after"},
        }}}]},
      {type: "symbol", from: {data: "points"}, encode: {update: {
        x: {scale: "x", field: "x"}, y: {scale: "y", field: "y"}, size: {value: 70}, opacity: {value: 0}, fill: {scale: "color", field: "method"},
        tooltip: {signal: "datum.method + ': ' + format(datum.y, '.4g') + (isValid(datum.lo) ? ' [' + format(datum.lo, '.3g') + ', ' + format(datum.hi, '.3g') + ']' : '')"
          + (xUnit ? ` + ' at ' + format(datum.x, '.3s') + '${xUnit}'` : " + ' at round ' + datum.x")},
      }}},
    ],
  });
}

// A figure per panel; all panels share the axes, so that levels can be compared by eye.
function curveFigures(state, panels, {against, name, file, measure, yTitle}) {
  const xLog = state.xScale === "auto" ? against !== "round" : state.xScale === "log";
  const drawn = panels.map((curve) => curve.lines.filter((line) => shown(state, line.m)).flatMap((line) => curvePoints(curve, line)));
  const useLog = logScale(state.yScale, drawn.flat().map((point) => point.y), measure);
  const all = drawn.map((points) => points.filter((point) => (!useLog || point.y > 0) && (!xLog || point.x > 0)));
  const flat = all.flat();
  const ends = useLog ? [] : flat.flatMap((point) => [point.lo, point.hi]).filter(isKnown);
  const domain = withinRange(measure, span([...flat.map((point) => point.y), ...ends], useLog));
  const xDomain = span(xLog ? flat.map((point) => point.x) : [0, ...flat.map((point) => point.x)], xLog);
  return all.map((points, p) => points.length === 0 ? null : figureElement({
    title: panelName(p),
    description: `${name} against ${BITS_NAMES[against]}`,
    file: fileName(file, against, DATA.panels[p].title),
    methods: DATA.methods.filter((_, m) => shown(state, m)),
    spec: curveSpec(points, {
      log: useLog, xLog, domain, xDomain, yTitle, height: all.length === 1 ? 360 : 220, xTitle: against === "round" ? "round" : costOfAll(against),
      xLabels: against === "round" ? null : labelsOf(against), xUnit: {round: "", seconds: "s"}[against] ?? "bit",
    }),
    columns: ["method", against === "round" ? "round" : against === "seconds" ? "seconds" : "bits", "mean", "low95", "high95"],
    rows: () => points.map((point) => [point.method, point.x, point.y, point.lo, point.hi]),
  })).filter((figure) => figure !== null);
}
