// Differences to the baseline at equal bits.
{
  // A forest plot: the difference to the baseline in percent of the baseline (points of accuracy), Student's interval, BCa below it.
  function forestRows(state, measure, p) {
    const factor = (comparison) => isAccuracy(measure) ? 100 : 100 / Math.abs(comparison.base.mean || 1);
    return measure.bits[state.bits].comparisons
      .filter((c) => c.panel === p && shown(state, c.method) && isKnown(c.difference.mean))
      .map((c) => {
        const scale = factor(c);
        return {
          method: methodName(c.method), mean: c.difference.mean * scale, lo: isKnown(c.difference.t[0]) ? c.difference.t[0] * scale : null,
          hi: isKnown(c.difference.t[1]) ? c.difference.t[1] * scale : null, blo: isKnown(c.difference.b[0]) ? c.difference.b[0] * scale : null,
          bhi: isKnown(c.difference.b[1]) ? c.difference.b[1] * scale : null, claim: c.verdict !== "no claim", verdict: c.verdict, p: c.p, holm: c.holm, n: c.difference.n, ratio: c.ratio,
        };
      });
  }

  // All panels share their axis, so that levels can be compared by eye.
  function forestFigure(state, measure, p) {
    const rows = forestRows(state, measure, p);
    if (!rows.length) return null;
    const unit = isAccuracy(measure) ? "percentage points" : `% of the ${methodName(DATA.baseline)} mean`;
    const ends = DATA.panels.flatMap((_, panel) => forestRows(state, measure, panel)).flatMap((row) => [row.mean, row.lo, row.hi, row.blo, row.bhi].filter(isKnown));
    const reach = Math.max(...ends.map(Math.abs)) || 1;
    const domain = [Math.min(-0.15 * reach, 1.08 * Math.min(...ends)), Math.max(0.15 * reach, 1.08 * Math.max(...ends))];
    return figureElement({
      title: panelName(p),
      description: `Difference to ${methodName(DATA.baseline)} in ${unit}; ${measure.lower ? "left" : "right"} of zero is better`,
      file: fileName("differences", measure.name, DATA.panels[p].title),
      methods: rows.map((row) => row.method),
      legend: false,  // the rows are labelled
      columns: ["method", "mean", "student_low", "student_high", "bca_low", "bca_high", "p", "p_holm", "pairs", "variance_ratio", "verdict"],
      rows: () => rows.map((row) => [row.method, row.mean, row.lo, row.hi, row.blo, row.bhi, row.p, row.holm, row.n, row.ratio, row.verdict]),
      spec: (theme) => ({
        height: 34 * rows.length + 46,
        data: [{name: "rows", values: rows}, {name: "known", source: "rows", transform: [{type: "filter", expr: "isValid(datum.lo)"}]}],
        scales: [
          {name: "x", ...(reach > 400 ? {type: "symlog", constant: 20} : {type: "linear"}), domain, range: "width"},
          {name: "rows", type: "band", domain: rows.map((row) => row.method), range: "height"},
        ],
        axes: [
          {orient: "bottom", scale: "x", title: isAccuracy(measure) ? "difference (percentage points)" : "difference (%)", tickCount: 5, grid: true, domain: false},
          {orient: "left", scale: "rows", domain: false, ticks: false, labelFontSize: 12, labelColor: theme.ink},
        ],
        marks: [
          {type: "rule", encode: {update: {x: {scale: "x", value: 0}, y: {value: 0}, y2: {signal: "height"}, stroke: {value: theme.soft}}}},
          {type: "rule", from: {data: "known"}, encode: {update: {
            x: {scale: "x", field: "lo"}, x2: {scale: "x", field: "hi"}, y: {scale: "rows", field: "method", band: 0.42}, stroke: {scale: "color", field: "method"}, strokeWidth: {value: 3},
          }}},
          {type: "rule", from: {data: "known"}, encode: {update: {
            x: {scale: "x", field: "blo"}, x2: {scale: "x", field: "bhi"}, y: {scale: "rows", field: "method", band: 0.66}, stroke: {scale: "color", field: "method"}, strokeWidth: {value: 1.25},
          }}},
          {type: "symbol", from: {data: "rows"}, encode: {update: {
            x: {scale: "x", field: "mean"}, y: {scale: "rows", field: "method", band: 0.42}, size: {value: 80}, stroke: {scale: "color", field: "method"}, strokeWidth: {value: 2},
            fill: [{test: "datum.claim", scale: "color", field: "method"}, {value: theme.paper}],
            tooltip: {signal: "datum.method + ': ' + format(datum.mean, '.3g') + (isValid(datum.lo) ? ' [' + format(datum.lo, '.3g') + ', ' + format(datum.hi, '.3g') + ']' : '') + ', ' + datum.verdict"},
          }}},
        ],
      }),
    });
  }

  function fill(section, state, measure) {
    fillFigures(section, `Differences to ${methodName(DATA.baseline)} at the bits that both reached`,
      "Thick line: Student's 95% interval; thin line below: BCa bootstrap interval. A filled dot is a claim, an open one is none. The intervals are those of the difference; per cent are of the baseline's mean, whose own uncertainty they leave out.",
      DATA.panels.map((_, p) => forestFigure(state, measure, p)), {otherwise: "There are no pairs of runs to compare."});
  }

  addSection({id: "differences", place: 70, fill});
}
