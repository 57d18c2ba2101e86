// Contrasts of methods over the levels of heterogeneity, and their margins at the strongest level.
{
  const AXES = {optimum: "log ζ² at x*", start: "log ζ² at x₀", order: "the order of the levels"};
  const NO_CLAIM = "no claim";

  const classText = (c) => DATA.contrasts.classes[c] ? ` (${DATA.contrasts.classes[c]})` : "";
  const pairName = (row) => `${row.a} : ${row.b}`;
  const rowName = (row) => row.group ? `${pairName(row)}, ${row.group}` : pairName(row);
  // Labels stand above their rows, so that long ones do not take the width of the chart.
  const ROW_HEIGHT = 44;

  // A forest plot: a mean with Student's interval in each row. `claim` fills the dot.
  function forest({title, description, file, rows, zero, xTitle, lines, columns, values}) {
    const known = rows.filter((row) => isKnown(row.mean));
    if (!known.length) return null;
    const ends = known.flatMap((row) => [row.mean, row.lo, row.hi, zero, ...lines]).filter(isKnown);
    const reach = Math.max(...ends) - Math.min(...ends) || 1;
    const domain = [Math.min(...ends) - 0.06 * reach, Math.max(...ends) + 0.06 * reach];
    return figureElement({
      title, description, file, methods: [], legend: false, columns,
      rows: () => rows.map(values),
      spec: (theme) => ({
        height: ROW_HEIGHT * known.length + 46,
        data: [{name: "rows", values: known}, {name: "known", source: "rows", transform: [{type: "filter", expr: "isValid(datum.lo)"}]},
          {name: "lines", values: lines.map((x) => ({x}))}],
        scales: [
          {name: "x", type: "linear", domain, range: "width"},
          {name: "rows", type: "band", domain: known.map((row) => row.name), range: "height"},
        ],
        axes: [{orient: "bottom", scale: "x", title: xTitle, tickCount: 5, grid: true, domain: false}],
        marks: [
          {type: "rule", encode: {update: {x: {scale: "x", value: zero}, y: {value: 0}, y2: {signal: "height"}, stroke: {value: theme.soft}}}},
          {type: "rule", from: {data: "lines"}, encode: {update: {
            x: {scale: "x", field: "x"}, y: {value: 0}, y2: {signal: "height"}, stroke: {value: theme.soft}, strokeDash: {value: [4, 3]},
          }}},
          {type: "text", from: {data: "rows"}, encode: {update: {
            x: {value: 0}, y: {scale: "rows", field: "name", band: 0.3}, text: {field: "name"}, baseline: {value: "middle"}, limit: {signal: "width"},
            fill: {value: theme.ink}, fontSize: {value: 12}, font: {value: FONT},
          }}},
          {type: "rule", from: {data: "known"}, encode: {update: {
            x: {scale: "x", field: "lo"}, x2: {scale: "x", field: "hi"}, y: {scale: "rows", field: "name", band: 0.7}, stroke: {scale: "color", field: "a"}, strokeWidth: {value: 3},
          }}},
          {type: "symbol", from: {data: "rows"}, encode: {update: {
            x: {scale: "x", field: "mean"}, y: {scale: "rows", field: "name", band: 0.7}, size: {value: 80}, stroke: {scale: "color", field: "a"}, strokeWidth: {value: 2},
            fill: [{test: "datum.claim", scale: "color", field: "a"}, {value: theme.paper}],
            tooltip: {signal: "datum.name + ': ' + format(datum.mean, '.3g') + (isValid(datum.lo) ? ' [' + format(datum.lo, '.3g') + ', ' + format(datum.hi, '.3g') + ']' : '') + ', ' + datum.says"},
          }}},
        ],
      }),
    });
  }

  const plotted = (row, says, claim) => ({
    ...row, name: rowName(row), says, claim, lo: isKnown(row.t[0]) ? row.t[0] : null, hi: isKnown(row.t[1]) ? row.t[1] : null,
  });
  const shownRows = (rows, state) => rows.filter((row) => shown(state, DATA.methods.indexOf(row.a)) && shown(state, DATA.methods.indexOf(row.b)));

  function slopesFigure(state, measure, family) {
    const says = (row) => row.verdict === NO_CLAIM ? `${NO_CLAIM}: ${row.why}` : row.verdict === "better" ? "A gains with heterogeneity" : "A loses with heterogeneity";
    const difference = family.isLogRatio ? "log(A / B)" : "A − B", gains = measure.lower ? "left" : "right";
    return forest({
      title: `Slope of ${difference} of ${measureName(measure)}`,
      description: `over ${AXES[family.heterogeneity]}; ${gains} of zero A gains against B as heterogeneity grows`,
      file: fileName("contrasts", measure.name, state.bits), zero: 0, lines: [], xTitle: `slope of ${difference}`,
      rows: shownRows(family.slopes, state).map((row) => plotted(row, says(row), row.verdict !== NO_CLAIM)),
      columns: ["A : B", "slope", "student_low", "student_high", "p", "p_holm", "p_flip", "p_flip_holm", "seeds", "capped", "verdict"],
      values: (row) => [row.name, row.mean, row.lo, row.hi, row.p, row.holm, row.flip, row.flipHolm, row.n, row.capped, row.says],
    });
  }

  // Differences of slopes between two groups that differ in one label.
  function differencesFigure(state, measure, family) {
    if (!family.differences.length) return null;
    const says = (row) => row.verdict === NO_CLAIM ? `${NO_CLAIM}: ${row.why}` : row.verdict === "better" ? "A gains more in the first group" : "A loses more in the first group";
    const difference = family.isLogRatio ? "log(A / B)" : "A − B", gains = measure.lower ? "left" : "right";
    return forest({
      title: `Differences of slopes of ${difference} of ${measureName(measure)} between groups`,
      description: `slope in the first group minus slope in the second, of the same seed; ${gains} of zero A gains more in the first; a family of ${family.differences.length}`,
      file: fileName("slope-differences", measure.name, state.bits), zero: 0, lines: [], xTitle: `difference of slopes of ${difference}`,
      rows: shownRows(family.differences, state).map((row) => ({...plotted(row, says(row), row.verdict !== NO_CLAIM), name: `${rowName(row)} − ${row.otherGroup}`})),
      columns: ["A : B", "difference", "student_low", "student_high", "p", "p_holm", "p_flip", "p_flip_holm", "seeds", "capped", "verdict"],
      values: (row) => [row.name, row.mean, row.lo, row.hi, row.p, row.holm, row.flip, row.flipHolm, row.n, row.capped, row.says],
    });
  }

  function marginsFigure(state, measure, family) {
    if (!family.margin) return null;
    const isRatio = family.margin.endsWith("x"), limit = parseFloat(family.margin), level = family.levels[family.levels.length - 1];
    const says = (row) => row.why ? `${row.result}: ${row.why}` : row.result;
    return forest({
      title: `Margin of ${family.margin} at the strongest level, ${level}`,
      description: `${isRatio ? "A / B" : "A − B in percentage points"} of ${measureName(measure)}; dashed: the margin; filled: A is not inferior`,
      file: fileName("margins", measure.name, state.bits), zero: isRatio ? 1 : 0, lines: [isRatio ? limit : -limit], xTitle: isRatio ? "A / B" : "A − B (percentage points)",
      rows: shownRows(family.margins, state).map((row) => plotted(row, says(row), row.result !== "not shown")),
      columns: ["A : B", "difference", "student_low", "student_high", "p_non_inferior", "p_superior", "pairs", "result"],
      values: (row) => [row.name, row.mean, row.lo, row.hi, row.pNonInferior, row.pSuperior, row.n, row.says],
    });
  }

  // Only where contrasts were asked for, at the bits that they know.
  function fill(section, state, measure) {
    if (!DATA.contrasts) return;
    const family = DATA.contrasts.families[DATA.measures.indexOf(measure)][state.bits];
    if (!family) {
      fillFigures(section, "Contrasts over heterogeneity", "Contrasts are made at exact bits up, and at exact bits up and down.", [], {otherwise: "Choose one of these above."});
      return;
    }
    fillFigures(section, "Contrasts over heterogeneity",
      `A${classText(0)} : B${classText(1)}. Lines: Student's 95% interval over the seeds' slopes; levels from the least to the most heterogeneous: ${family.levels.join(", ")}. `
      + `A filled dot is a claim after Holm's correction in a family of ${family.slopes.length}, decided by the ${family.test}. Diverged runs count as the initial model.`,
      [slopesFigure(state, measure, family), differencesFigure(state, measure, family), marginsFigure(state, measure, family)], {otherwise: "No seed has runs of both methods at all levels."});
  }

  addSection({id: "contrasts", place: 75, fill});
}
