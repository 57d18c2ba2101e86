// What heterogeneity does.
{
  // Points with an interval, joined per method in the order of x.
  function relationFigure({title, description, file, points, xTitle, yTitle, measure, state}) {
    const known = points.filter((point) => shown(state, point.m) && isKnown(point.x) && isKnown(point.y)).map((point) => ({...point, method: methodName(point.m)}));
    const xLog = logScale(state.xScale, known.map((point) => point.x));
    const useLog = logScale(state.yScale, known.map((point) => point.y), measure);
    const visible = known.filter((point) => (!useLog || point.y > 0) && (!xLog || point.x > 0));
    if (!visible.length) return null;
    const domain = withinRange(measure, span(useLog ? visible.map((point) => point.y) : visible.flatMap((point) => [point.y, point.lo ?? point.y, point.hi ?? point.y]), useLog));
    const xDomain = span(visible.map((point) => point.x), xLog);
    return figureElement({
      title, description, file,
      methods: DATA.methods.filter((_, m) => shown(state, m)),
      columns: ["method", "panel", xTitle, yTitle, "low95", "high95"],
      rows: () => visible.map((point) => [point.method, panelName(point.panel), point.x, point.y, point.lo, point.hi]),
      spec: () => ({
        height: 280,
        data: [
          {name: "points", values: visible, transform: [{type: "collect", sort: {field: "x"}}]},
          {name: "bars", source: "points", transform: [{type: "filter", expr: "isValid(datum.lo)"}]},
        ],
        scales: [
          {name: "x", type: xLog ? "log" : "linear", domain: xDomain, range: "width", padding: 14, zero: false},
          yScale(useLog, domain),
        ],
        axes: [{orient: "bottom", scale: "x", title: xTitle, tickCount: 5, ...logAxis(xLog, xDomain)}, valueAxis(yTitle, logAxis(useLog, domain))],
        marks: [
          {type: "group", from: {facet: {name: "line", data: "points", groupby: ["method", "rest"]}}, marks: [{
            type: "line", from: {data: "line"}, encode: {update: {
              x: {scale: "x", field: "x"}, y: {scale: "y", field: "y"}, stroke: {scale: "color", field: "method"}, strokeWidth: {value: 1.5},
              strokeDash: {scale: "dash", field: "method"}, strokeOpacity: {value: 0.6},
            }}}]},
          {type: "rule", from: {data: "bars"}, encode: {update: {
            x: {scale: "x", field: "x"}, y: {scale: "y", field: "lo"}, y2: {scale: "y", field: "hi"}, stroke: {scale: "color", field: "method"}, strokeWidth: {value: 1.5},
          }}},
          {type: "symbol", from: {data: "points"}, encode: {update: {
            x: {scale: "x", field: "x"}, y: {scale: "y", field: "y"}, size: {value: 55}, fill: {scale: "color", field: "method"},
            tooltip: {signal: "datum.method + ': ' + format(datum.y, '.4g') + (isValid(datum.lo) ? ' [' + format(datum.lo, '.3g') + ', ' + format(datum.hi, '.3g') + ']' : '') + ' at ' + format(datum.x, '.3g')"},
          }}},
        ],
      }),
    });
  }

  const estimatePoint = (cell, estimate) => ({
    panel: cell.panel, m: cell.method, rest: DATA.panels[cell.panel].rest, y: estimate.mean, lo: estimate.t[0], hi: estimate.t[1],
  });

  function fill(section, state, measure) {
    const zeta = (cell) => cell.zeta.mean;
    const common = measure.bits[state.bits].overLevels.map((at) => ({...estimatePoint(at, at.value), x: zeta(cellOf(at.panel, at.method))}));
    const errors = DATA.cells.map((cell) => ({...estimatePoint(cell, cell.totalError), x: zeta(cell)}));
    fillFigures(section, "What heterogeneity does",
      "ζ² is the mean over all clients, weighted as in f, of |∇f_i − ∇f|² at the initial model. It is measured and not taken from the parameter of the partition, and it has no scale of its own: compare it within one data set and model. Upright lines: 95% interval over the seeds.", [
        relationFigure({title: `${measureName(measure)} at the ${costWord(state.bits)} that all methods and levels reached`, description: `${BITS_NAMES[state.bits]}, seed by seed`,
          file: fileName("zeta", measure.name), points: common, xTitle: "measured ζ²", yTitle: measureName(measure), measure, state}),
        relationFigure({title: "Total error", description: "Sum over rounds of the mean squared error that feedback carries, |e|²", file: "fedbits-total-error", points: errors,
          xTitle: "measured ζ²", yTitle: "total error", state}),
      ], {wide: true, otherwise: "ζ² was not measured: set evaluate.measure_every."});
  }

  addSection({id: "heterogeneity", place: 60, fill});
}
