// What both pages are made of: figures, tables that change in place, bars.
"use strict";

const percent = (value) => isKnown(value) && Number.isFinite(toNumber(value)) ? `${Number((100 * value).toPrecision(4))}%` : "–";

function duration(seconds) {
  if (!isKnown(seconds)) return "–";
  const whole = Math.max(0, Math.round(seconds)), hours = Math.floor(whole / 3600), minutes = Math.floor(whole / 60) % 60;
  if (hours >= 48) return `${Math.round(hours / 24)} days`;
  if (hours) return `${hours} h ${minutes} min`;
  return minutes ? `${minutes} min ${whole % 60} s` : `${whole} s`;
}

function bytes(value) {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let unit = 0;
  for (; value >= 999.5 && unit + 1 < units.length; ++unit) value /= 1000;
  return `${Number(value.toPrecision(4))} ${units[unit]}`;
}

// A list of named figures; each has a value and a smaller text behind it.
class Figures {
  constructor(names) {
    this.values = new Map(names.map((name) => [name, {value: document.createTextNode("–"), note: element("small", {})}]));
    this.node = element("dl", {class: "figures"}, ...names.map((name) =>
      element("div", {}, element("dt", {}, name), element("dd", {}, this.values.get(name).value, " ", this.values.get(name).note))));
  }
  set(name, value, note = "") {
    const place = this.values.get(name);
    if (place.value.data !== value) place.value.data = value;
    setText(place.note, note);
  }
}

// A table whose cells change in place. Cells are texts, {text, class} or {text, bar: share}.
class LiveTable {
  constructor(columns, label) {
    this.columns = columns;
    const whole = table(columns, []);
    this.body = whole.querySelector("tbody");
    this.node = scrolling(whole, label);
  }
  fill(rows) {
    while (this.body.rows.length > rows.length) this.body.lastChild.remove();
    rows.forEach((row, r) => {
      if (r === this.body.rows.length) this.body.append(element("tr", {}, ...this.columns.map((column, c) => element(c ? "td" : "th", {class: column.number ? "number" : null, scope: c ? null : "row"}))));
      row.forEach((cell, c) => this.fillCell(this.body.rows[r].cells[c], cell, this.columns[c]));
    });
  }
  fillCell(node, cell, column) {
    const {text, kind = "", bar} = typeof cell === "string" ? {text: cell} : cell;
    const names = [column.number ? "number" : "", kind].filter(Boolean).join(" ");
    if (node.className !== names) node.className = names;
    if (bar === undefined) return setText(node, text);
    if (!node.firstElementChild) node.replaceChildren(element("span", {}), progressBar(text));
    setText(node.firstElementChild, text);
    setBar(node.lastElementChild, bar);
  }
}

const progressBar = (label) => element("div", {class: "bar", role: "progressbar", "aria-label": label, "aria-valuemin": 0, "aria-valuemax": 100}, element("span", {}));
function setBar(bar, share) {
  const whole = Math.round(1000 * Math.max(0, Math.min(1, share))) / 10;
  if (bar.getAttribute("aria-valuenow") === String(whole)) return;
  bar.setAttribute("aria-valuenow", whole);
  bar.firstElementChild.style.width = `${whole}%`;
}

// A section with a heading, which can be hidden while it has nothing to show.
function part(title, text, ...content) {
  return element("section", {}, element("h2", {}, title), text ? element("p", {class: "note"}, text) : null, ...content);
}
