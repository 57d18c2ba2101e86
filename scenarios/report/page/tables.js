// What sections share that hold tables.
"use strict";

const WINDOW = `the last ${Math.round(100 * DATA.window)}%`;
const cellOf = (panel, method) => DATA.cells.find((cell) => cell.panel === panel && cell.method === method);

const changesPanel = (row, above) => row[0] !== above[0];

function tableWithCsv(columns, rows, label, file) {
  const save = () => download(`${file}.csv`, "text/csv", csv(columns.map((column) => column.title), rows));
  return element("div", {}, scrolling(table(columns, rows, {first: changesPanel}), label),
    element("div", {class: "tools"}, element("button", {type: "button", onclick: save, "aria-label": `Download ${label} as CSV`}, "CSV")));
}
