// Where the runs of each method end, and what they sent.
{
  // The points that no other point beats in both bits and value, by bits.
  function paretoFront(points, lower) {
    const sorted = [...points].sort((a, b) => a.x - b.x || (lower ? a.y - b.y : b.y - a.y));
    const front = [];
    for (const point of sorted)
      if (!front.length || (lower ? point.y < front[front.length - 1].y : point.y > front[front.length - 1].y)) front.push(point);
    return front;
  }

  // A panel per level: where the runs of each method end. The line joins the methods that no other one beats.
  function paretoFigures(state, measure) {
    const all = DATA.panels.map((_, p) => measure.bits[state.bits].finals.filter((at) => at.panel === p && shown(state, at.method) && isKnown(at.value.mean) && at.bits > 0)
      .map((at) => ({method: methodName(at.method), x: at.bits, y: at.value.mean, lo: at.value.t[0], hi: at.value.t[1]})));
    const useLog = logScale(state.yScale, all.flat().map((point) => point.y), measure), xLog = state.xScale !== "linear";
    const points = all.map((panel) => panel.filter((point) => !useLog || point.y > 0)), flat = points.flat();
    const domain = withinRange(measure, span(flat.flatMap((point) => [point.y, point.lo ?? point.y, point.hi ?? point.y]), useLog));
    const xDomain = span(xLog ? flat.map((point) => point.x) : [0, ...flat.map((point) => point.x)], xLog);
    return points.map((panel, p) => panel.length === 0 ? null : figureElement({
      title: panelName(p),
      description: `${measureName(measure)} at the end of the runs against their ${BITS_NAMES[state.bits]}; ${paretoFront(panel, measure.lower).length > 1 ? "the line joins the methods that no other one beats in both" : `${paretoFront(panel, measure.lower)[0].method} is best in both`}`,
      file: fileName("pareto", measure.name, state.bits, DATA.panels[p].title),
      methods: DATA.methods.filter((name) => panel.some((point) => point.method === name)),
      columns: ["method", costWord(state.bits), "mean", "low95", "high95", "front"],
      rows: () => panel.map((point) => [point.method, point.x, point.y, point.lo, point.hi, paretoFront(panel, measure.lower).includes(point) ? "yes" : "no"]),
      spec: (theme) => ({
        height: DATA.panels.length === 1 ? 340 : 230,
        data: [{name: "points", values: panel}, {name: "bars", source: "points", transform: [{type: "filter", expr: "isValid(datum.lo)"}]}, {name: "front", values: paretoFront(panel, measure.lower)}],
        scales: [{name: "x", type: xLog ? "log" : "linear", domain: xDomain, range: "width", padding: 14, zero: false}, {...yScale(useLog, domain), padding: useLog ? 8 : 0}],
        axes: [
          {orient: "bottom", scale: "x", title: state.bits === "seconds" ? BITS_NAMES.seconds : `${BITS_NAMES[state.bits]} of all rounds, all clients together`, tickCount: 4, ...logAxis(xLog, xDomain), encode: {labels: {update: {text: {signal: labelsOf(state.bits)}}}}},
          valueAxis(measureName(measure), logAxis(useLog, domain)),
        ],
        marks: [
          {type: "line", from: {data: "front"}, encode: {update: {
            x: {scale: "x", field: "x"}, y: {scale: "y", field: "y"}, stroke: {value: theme.soft}, strokeWidth: {value: 1}, strokeDash: {value: [4, 3]},
          }}},
          {type: "rule", from: {data: "bars"}, encode: {update: {
            x: {scale: "x", field: "x"}, y: {scale: "y", field: "lo"}, y2: {scale: "y", field: "hi"}, stroke: {scale: "color", field: "method"}, strokeWidth: {value: 1.5},
          }}},
          {type: "symbol", from: {data: "points"}, encode: {update: {
            x: {scale: "x", field: "x"}, y: {scale: "y", field: "y"}, size: {value: 70}, fill: {scale: "color", field: "method"},
            tooltip: {signal: "datum.method + ': ' + format(datum.y, '.4g') + (isValid(datum.lo) ? ' [' + format(datum.lo, '.3g') + ', ' + format(datum.hi, '.3g') + ']' : '') + ' for ' + format(datum.x, '.4s') + '" + (state.bits === "seconds" ? "s" : "bit") + "'"},
          }}},
        ],
      }),
    })).filter((figure) => figure !== null);
  }

  function fill(section, state, measure) {
    fillFigures(section, `${measureName(measure)} at the end of the runs, and the ${costWord(state.bits)} that they took`, `The mean over ${WINDOW} of each method's own ${BITS_NAMES[state.bits]}, with Student's 95% interval, ${state.bits === "seconds" ? "against the time of its runs" : "against what its runs sent in all"}. `
      + "A description: methods that end elsewhere are compared by a test only where these are equal.", paretoFigures(state, measure));
  }

  addSection({id: "pareto", place: 40, fill});
}
