// How the model serves its clients.
{
  // Points of one panel: the median with the percentiles as its band, and the smallest. The four curves have the same grid and lines.
  function clientPoints(panel, line, m) {
    const [p10, p50, p90, worst] = DATA.clients.map((panels) => curvePoints(panels[panel], panels[panel].lines[line]));
    return p50.map((point, i) => ({method: methodName(m), x: point.x, y: point.y, lo: p10[i].y, hi: p90[i].y, worst: worst[i].y}));
  }

  function clientFigures(state) {
    const all = DATA.panels.map((_, p) => DATA.clients[1][p].lines.flatMap((line, i) => shown(state, line.m) ? clientPoints(p, i, line.m) : []));
    const flat = all.flat();
    const domain = span(flat.flatMap((point) => [point.hi, point.worst]), false);
    const xDomain = span(flat.map((point) => point.x), false);
    return all.map((points, p) => points.length === 0 ? null : figureElement({
      title: panelName(p),
      description: "accuracy on each client's own rows against rounds",
      file: fileName("clients", DATA.panels[p].title),
      methods: DATA.methods.filter((_, m) => shown(state, m)),
      spec: (theme) => {
        const spec = curveSpec(points, {log: false, xLog: false, domain, xDomain, xTitle: "round", yTitle: "accuracy", xLabels: null, height: 220})(theme);
        spec.marks.push({type: "group", from: {facet: {name: "low", data: "points", groupby: "method"}}, marks: [{
          type: "line", from: {data: "low"}, encode: {update: {
            x: {scale: "x", field: "x"}, y: {scale: "y", field: "worst"}, stroke: {scale: "color", field: "method"}, strokeWidth: {value: 1.5},
            strokeDash: {value: [1, 3]}, strokeCap: {value: "round"}, interpolate: {value: "step-after"},
          }}}]});
        return spec;
      },
      columns: ["method", "round", "median", "p10", "p90", "worst"],
      rows: () => points.map((point) => [point.method, point.x, point.y, point.lo, point.hi, point.worst]),
    })).filter((figure) => figure !== null);
  }

  // Only where it was recorded.
  function fill(section, state) {
    const figures = clientFigures(state);
    if (!figures.length) return;
    fillFigures(section, "How the model serves its clients",
      "Accuracy of the one global model on each client's own rows, over all clients: the line is the median client, the band reaches from the 10th to the 90th percentile, "
      + "the dotted line is the client that is served worst. Means over the seeds.", figures);
  }

  addSection({id: "clients", place: 50, fill});
}
