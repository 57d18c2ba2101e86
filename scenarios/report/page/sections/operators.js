// What the compressors did, beside their contracts.
{
  // Measured values and bounds: a dot per level, a tick at the operator's bound. Operators that change nothing are left out.
  const NOTHING_LOST = {kappa: 0, delta: 1, omega: 0};
  function contractFigure(state, {key, title, description, worst}) {
    const rows = DATA.cells.filter((cell) => shown(state, cell.method) && isKnown(cell[key].mean))
      .map((cell) => ({method: methodName(cell.method), row: DATA.panels.length > 1 ? `${methodName(cell.method)}, ${levelName(cell.panel)}` : methodName(cell.method), panel: cell.panel, value: cell[key].mean, bound: cell.promised[key]}))
      .filter((row) => isKnown(row.bound) && row.bound !== NOTHING_LOST[key]);
    if (!rows.length) return null;
    const used = DATA.methods.filter((name) => rows.some((row) => row.method === name));
    const values = rows.flatMap((row) => [row.value, row.bound]);
    const log = wantsLog(values);
    const domain = span(log ? values : [0, ...values], log);
    return figureElement({
      title, description, file: fileName("contract", key), methods: used, legend: false,
      columns: ["method", "panel", "measured", "bound"],
      rows: () => rows.map((row) => [row.method, panelName(row.panel), row.value, row.bound]),
      spec: (theme) => ({
        height: 24 * rows.length + 46,
        data: [{name: "rows", values: rows}],
        scales: [
          {name: "x", type: log ? "log" : "linear", domain, range: "width", nice: !log, padding: 8},
          {name: "rows", type: "band", domain: rows.map((row) => row.row), range: "height"},
        ],
        axes: [
          {orient: "bottom", scale: "x", title: worst, tickCount: 5, grid: true, domain: false, format: "~g", ...logAxis(log, domain)},
          {orient: "left", scale: "rows", domain: false, ticks: false, labelFontSize: 12, labelColor: theme.ink},
        ],
        marks: [
          {type: "symbol", from: {data: "rows"}, encode: {update: {
            x: {scale: "x", field: "bound"}, y: {scale: "rows", field: "row", band: 0.5}, shape: {value: "stroke"}, angle: {value: 90}, size: {value: 320},
            stroke: {value: theme.ink}, strokeWidth: {value: 2}, tooltip: {signal: "'bound ' + format(datum.bound, '.4g')"},
          }}},
          {type: "symbol", from: {data: "rows"}, encode: {update: {
            x: {scale: "x", field: "value"}, y: {scale: "rows", field: "row", band: 0.5}, size: {value: 60}, fill: {scale: "color", field: "method"}, fillOpacity: {value: 0.75},
            tooltip: {signal: "datum.method + ' measured ' + format(datum.value, '.4g')"},
          }}},
        ],
      }),
    });
  }

  function fill(section, state) {
    const promised = DATA.cells.some((cell) => ["kappa", "delta", "omega"].some((key) => isKnown(cell.promised[key])));
    fillFigures(section, "What the compressors did", "Density is the share of entries that were sent, elements / (clients × P), round by round. Below, p is what a client compresses (its update, with feedback also its error memory), and C(p) what its message says.", [
      ...curveFigures(state, DATA.density, {against: "round", name: "density", file: "density", yTitle: "density (share of entries)"}),
      contractFigure(state, {key: "kappa", title: "Absolute bound κ", description: "Largest |C(p) − p| of any client and round, mean over the seeds; the tick is the operator's bound, and the dot lies left of it", worst: "κ, in the unit of the input"}),
      contractFigure(state, {key: "delta", title: "Contraction δ", description: "Smallest 1 − |C(p) − p|²/|p|², mean over the seeds; the dot lies right of the tick where the bound holds for every input", worst: "δ"}),
      contractFigure(state, {key: "omega", title: "Variance ω", description: "Largest |C(p) − p|²/|p|²; the bound is on its mean, so single rounds may exceed it", worst: "ω"}),
    ]);
    if (!promised) section.append(element("p", {class: "note"}, "These runs do not record bounds of their operators; the measured values are below."));
    const columns = [{title: levelHead}, {title: DATA.methodKey}, {title: "mean density", number: true}, {title: "largest |C(p)−p|", number: true}, {title: "smallest δ", number: true}, {title: "largest ω", number: true}];
    const rows = DATA.cells.filter((cell) => shown(state, cell.method)).sort((a, b) => a.panel - b.panel || a.method - b.method)
      .map((cell) => [levelName(cell.panel), methodName(cell.method), ...["density", "kappa", "delta", "omega"].map((key) => meanText(cell[key]))]);
    const broken = DATA.cells.filter((cell) => shown(state, cell.method) && cell.broken);
    for (const cell of broken) section.append(element("p", {class: "note"}, `${methodName(cell.method)}${DATA.panels.length > 1 ? ` (${panelName(cell.panel)})` : ""}: ${cell.broken}.`));
    section.append(element("details", {}, element("summary", {}, "Measured, by method and level"),
      element("p", {class: "note"}, "Over all clients and measured rounds, whatever the operator states: the largest |C(p) − p|, δ = 1 − |C(p) − p|²/|p|² at its smallest, and ω = |C(p) − p|²/|p|² at its largest."),
      tableWithCsv(columns, rows, "Measured by method and level", "fedbits-operators")));
  }

  addSection({id: "operators", place: 100, fill});
}
