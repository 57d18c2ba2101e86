// What convergence theorems bound, beside the bounds.
{
  const THEOREMS = {
    4: "Theorem 4 (absolute, strongly convex): 2(R₀²exp(−γμT/2)/γ + γν + 3Lκ²γ²).",
    5: "Theorem 5 (absolute, convex): 2(R₀²/(γT) + γν + 2Lκ²γ²).",
    6: "Theorem 6 (absolute): 4Δ/(γT) + 2γLν + 2γ²L²κ².",
    7: "Theorem 7 (contraction): 8Δ/(γT) + 4γLν + 8γ²L²((2/δ + M)ζ² + σ²)(1−δ)/δ.",
    8: "Theorem 8 (nothing lost, or unbiased): 2Δ/(γT) + γLν.",
    9: "Tight step (Thomsen, Taylor, Dieuleveut 2025 and 2026): f − f* falls at least as fast as the dots, but for a constant factor; in one dimension a worst case attains their rate.",
  };
  const NOISE = "ν, the noise of the clients' mean gradient, is 0 for full gradients and exact operators; for minibatches it is the clients' mean σᵢ²/n, and an unbiased operator without feedback has M = ω.";

  // What is bounded, in the order of DATA.theory.
  const BOUNDED = [
    {file: "theory", yTitle: "mean of |∇f|²", description: "mean of |∇f|² over the rounds so far, and its bound"},
    {file: "theory-average", yTitle: "f − f* at the average", description: "f − f* at the weighted average of the models so far, and its bound"},
    {file: "theory-tight", yTitle: "f − f*", description: "f − f* under a tight step, and the rate of its worst case"},
  ];

  // What was measured as lines, its bounds as dots of the same colour.
  function theoryFigures(state, theory) {
    const {file, yTitle, description} = BOUNDED[theory];
    const points = (curves, p) => curves[p].lines.filter((line) => shown(state, line.m)).flatMap((line) => curvePoints(curves[p], line));
    const all = DATA.panels.map((_, p) => ({measured: points(DATA.theory[theory][0], p), bounds: points(DATA.theory[theory][1], p)}));
    const flat = all.flatMap((panel) => [...panel.measured, ...panel.bounds]);
    const domain = span(flat.map((point) => point.y), true), xDomain = span(flat.map((point) => point.x).filter((x) => x > 0), true);
    return all.map(({measured, bounds}, p) => measured.length === 0 ? null : figureElement({
      title: panelName(p),
      description,
      file: fileName(file, DATA.panels[p].title),
      methods: DATA.methods.filter((name) => measured.some((point) => point.method === name)),
      spec: (theme) => {
        const spec = curveSpec(measured, {log: true, xLog: true, domain, xDomain, xTitle: "rounds T", yTitle, xLabels: null, height: 260})(theme);
        spec.data.push({name: "bounds", values: bounds});
        spec.marks.push({type: "group", from: {facet: {name: "bound", data: "bounds", groupby: "method"}}, marks: [{
          type: "line", from: {data: "bound"}, encode: {update: {
            x: {scale: "x", field: "x"}, y: {scale: "y", field: "y"}, stroke: {scale: "color", field: "method"}, strokeWidth: {value: 2.5},
            strokeDash: {value: [0.1, 5]}, strokeCap: {value: "round"},
          }}}]});
        return spec;
      },
      columns: ["method", "rounds", "measured", "bound"],
      rows: () => measured.map((point, i) => [point.method, point.x, point.y, bounds[i].y]),
    })).filter((figure) => figure !== null);
  }

  // Only where a theorem's assumptions hold.
  function fill(section, state) {
    const figures = DATA.theory.flatMap((_, theory) => theoryFigures(state, theory));
    if (!figures.length) return;
    const cells = DATA.cells.filter((cell) => shown(state, cell.method));
    const theorems = [...new Set(cells.flatMap((cell) => cell.theorem).filter(isKnown))].sort();
    fillFigures(section, "Theory beside measurement",
      "What convergence theorems bound (lines) and their bounds (dots), for the runs that satisfy the assumptions of Sahu et al. (NeurIPS 2021): error feedback or unbiased operators, "
      + "full gradients or minibatches of a known variance, all clients in every round, a constant step size that is small enough. " + theorems.map((theorem) => THEOREMS[theorem]).join(" ") + " " + NOISE, figures);
    const random = [...new Set(cells.filter((cell) => cell.inExpectation.some((is) => is)).map((cell) => methodName(cell.method)))];
    if (random.length) section.append(element("p", {class: "note"}, `The bounds of ${random.join(", ")} hold in expectation over random operators and minibatches: a single run may cross them.`));
    const left = [...new Set(cells.filter((cell) => !cell.theorem.some(isKnown)).map((cell) => methodName(cell.method)))];
    if (left.length) section.append(element("p", {class: "note"}, `No bound is drawn for ${left.join(", ")}: the assumptions do not hold there.`));
  }

  addSection({id: "theory", place: 110, fill});
}
