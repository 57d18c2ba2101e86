// Numbers as people read them, and the few words that build elements: for the report and for the page of the status.
"use strict";

// "inf" stands for infinity in JSON.
const toNumber = (value) => value === "inf" ? Infinity : value === "-inf" ? -Infinity : value;
const isKnown = (value) => value !== null && value !== undefined && !Number.isNaN(value);

function short(value, digits = 4) {
  value = toNumber(value);
  if (!isKnown(value)) return "–";
  if (!Number.isFinite(value)) return value > 0 ? "∞" : "−∞";
  if (value === 0) return "0";
  const size = Math.abs(value);
  const text = size >= 1e-3 && size < 1e5 ? String(Number(value.toPrecision(digits))) : value.toExponential(digits - 1).replace(/\.?0+e/, "e").replace("e+", "e");
  return text.replace(/-/g, "−");
}

// Bits as `report --text` prints them: those of a target that is not reached are "never".
function bits(value) {
  value = toNumber(value);
  if (value === Infinity) return "never";
  if (!isKnown(value) || !Number.isFinite(value)) return short(value);
  const units = ["bit", "kbit", "Mbit", "Gbit", "Tbit", "Pbit"];
  let unit = 0;
  for (; Math.abs(value) >= 999.5 && unit + 1 < units.length; ++unit) value /= 1000;
  return `${Number(value.toPrecision(4))} ${units[unit]}`;
}

// Seconds likewise.
function duration(value) {
  value = toNumber(value);
  if (value === Infinity) return "never";
  if (!isKnown(value) || !Number.isFinite(value)) return short(value);
  for (const [size, unit] of [[86400, "days"], [3600, "h"], [60, "min"]])
    if (value >= 2 * size) return `${Number((value / size).toPrecision(4))} ${unit}`;
  return value >= 1 || value === 0 ? `${Number(value.toPrecision(4))} s` : `${Number((1000 * value).toPrecision(4))} ms`;
}

const plural = (count, word) => `${count} ${word}${count === 1 ? "" : "s"}`;
const joined = (words) => words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} and ${words[words.length - 1]}`;

// element("td", {class: "number"}, "text", child, ...): text is never taken for markup.
function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== null && value !== false) node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

// columns: [{title, number?}], rows: arrays of texts or elements; `first` tells which rows begin a group.
function table(columns, rows, {caption, first = () => false} = {}) {
  const cell = (tag, content, column, extra = {}) => element(tag, {class: column.number ? "number" : null, ...extra}, content);
  return element("table", {},
    caption ? element("caption", {class: "soft"}, caption) : null,
    element("thead", {}, element("tr", {}, ...columns.map((column) => cell("th", column.title, column, {scope: "col"})))),
    element("tbody", {}, ...rows.map((row, i) => element("tr", {class: i > 0 && first(row, rows[i - 1]) ? "first" : null},
      ...row.map((content, c) => c === 0 ? cell("th", content, columns[c], {scope: "row"}) : cell("td", content, columns[c]))))));
}

const scrolling = (content, label, tall = false) =>
  element("div", {class: tall ? "scroll tall" : "scroll", tabindex: 0, role: "region", "aria-label": label}, content);
