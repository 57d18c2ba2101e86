// How the rows lie with the clients.
{
  // Clients across, classes down; the darker (in the dark: the brighter), the more rows.
  function splitFigure(split) {
    const cells = split.rows.flatMap((counts, client) => counts.map((rows, c) => ({client, name: split.classes[c], rows})));
    const most = Math.max(...DATA.splits.filter((one) => !one.missing).flatMap((one) => one.rows.flat()));
    const clients = split.rows.length < split.clients ? `the first ${split.rows.length} of ${split.clients} clients` : plural(split.clients, "client");
    return figureElement({
      title: split.panels.map(panelName).join("; "),
      description: `${clients}, ${split.classes.length} classes; from no rows (pale) to ${most} (full) in every picture, seed ${split.seed}`,
      file: fileName("split", panelName(split.panels[0])),
      methods: null,
      columns: ["client", "class", "rows"],
      rows: () => cells.map((cell) => [cell.client, cell.name, cell.rows]),
      spec: (theme) => ({
        height: Math.min(26 * split.classes.length, 320) + 46,
        data: [{name: "cells", values: cells}],
        scales: [
          {name: "x", type: "band", domain: split.rows.map((_, client) => client), range: "width", paddingInner: 0.06},
          {name: "classes", type: "band", domain: split.classes, range: "height", paddingInner: 0.06},
          {name: "shade", type: "linear", domain: [0, most], range: [theme.grid, theme.name === "dark" ? "#7cc4f4" : "#00518a"], interpolate: "lab"},
        ],
        axes: [
          {orient: "bottom", scale: "x", title: "client", domain: false, ticks: false, labelOverlap: "greedy", labelSeparation: 8},
          {orient: "left", scale: "classes", title: "class", domain: false, ticks: false},
        ],
        marks: [{type: "rect", from: {data: "cells"}, encode: {update: {
          x: {scale: "x", field: "client"}, width: {scale: "x", band: 1}, y: {scale: "classes", field: "name"}, height: {scale: "classes", band: 1},
          fill: {scale: "shade", field: "rows"}, tooltip: {signal: "'client ' + datum.client + ', class ' + datum.name + ': ' + datum.rows + ' rows'"},
        }}}],
      }),
    });
  }

  function fill(section) {
    if (!DATA.splits.length) return;
    fillFigures(section, "Data distribution", "Training rows of each class at each client, for the smallest seed; split again from the stored scenario and checked against the stored hash.",
      DATA.splits.map((split) => split.missing ? null : splitFigure(split)), {otherwise: "No split can be drawn here."});
    for (const split of DATA.splits.filter((one) => one.missing))
      section.append(element("p", {class: "note"}, `${split.panels.map(panelName).join("; ")}: ${split.missing}.`));
  }

  addSection({id: "splits", place: 120, every: "study", fill});
}
