// Names as people read them, downloads and CSV.
"use strict";

// The studies of the store, and the one that is shown.
const STUDIES = JSON.parse(document.getElementById("data").textContent).studies;
let DATA = STUDIES[0];

const BITS_NAMES = {
  up: "uplink bits", both: "bits up and down", published: "uplink bits as published", entropy: "entropy bound of the uplink bits", round: "rounds",
  seconds: "simulated seconds",
};
const BITS_LABELS = {up: "up, exact", both: "up + down, exact", published: "up, published", entropy: "up, entropy bound", seconds: "simulated seconds"};
const BITS_MEANINGS = {
  up: "exact length of what the clients sent", both: "exact length of what clients and server sent",
  published: "what the clients sent by the formula of the method's paper, which often leaves out headers and positions (docs/compressors.md has each formula)",
  entropy: "what an ideal code would need that knows no more of a message than how often each symbol occurs: log₂ of the number of ways to place the entries that are sent, their levels at the empirical entropy, raw values at full width, no headers",
  seconds: "time that the devices and links of the scenario need for the exact bits of all messages and the stated cost of computing (docs/devices.md)",
};

// What a budget counts, in a word, and an amount of it as people read it.
const costWord = (against) => against === "seconds" ? "time" : "bits";
const cost = (value, against) => against === "seconds" ? duration(value) : bits(value);
// Whose cost it is: time passes for all at once.
const costOfAll = (against) => against === "seconds" ? BITS_NAMES.seconds : `${BITS_NAMES[against]}, all clients together`;

// Those that the runs of the study have.
const knownBits = () => Object.keys(BITS_LABELS).filter((key) => DATA.measures[0].bits[key]);

const measureName = (measure) => measure.title;
// Shares between 0 and 1, on a plain scale, whose differences are percentage points.
const isAccuracy = (measure) => measure.share;
const methodName = (index) => DATA.methods[index];
// An objective's distance to its optimum, which belongs on a log scale.
const isGap = (measure) => measure.gap;
const panelName = (index) => DATA.panels[index].title;
// In a table whose column is headed by the axis, the label alone tells the level.
let onlyLevels = false, levelHead = "level";
function showStudy(index) {
  DATA = STUDIES[index];
  onlyLevels = DATA.levelKey !== "" && DATA.panels.every((panel) => panel.rest === "");
  levelHead = onlyLevels ? DATA.levelKey : "level";
}
showStudy(0);
const isAlternative = (m) => m !== DATA.baseline && !DATA.isReference[m];
const levelName = (index) => onlyLevels ? DATA.panels[index].level : panelName(index);

const signed = (value, digits = 3) => (toNumber(value) > 0 ? "+" : "") + short(value, digits);
const interval = (pair, digits = 3) => isKnown(pair[0]) ? `[${short(pair[0], digits)}, ${short(pair[1], digits)}]` : "no interval";
const pValue = (p) => p < 1e-4 ? "p < 0.0001" : `p = ${Number(p.toPrecision(2))}`;
const meanText = (estimate) => isKnown(estimate.mean) ? `${short(estimate.mean)} ${interval(estimate.t, 4)}` : "–";

function download(name, type, text) {
  const link = element("a", {href: URL.createObjectURL(new Blob([text], {type})), download: name});
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

// A text that a spreadsheet would run as a formula has an apostrophe in front, as in `fedbits export`.
const csvCell = (value) => {
  const raw = value === null || value === undefined ? "" : String(value);
  const isFormula = /^[=+\-@'\u0000-\u001f]/.test(raw) && !(typeof value === "number" || Number.isFinite(Number(raw)));
  const text = isFormula ? `'${raw}` : raw;
  return /[",\r\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
};
const csv = (columns, rows) => [columns, ...rows].map((row) => row.map(csvCell).join(",")).join("\n") + "\n";
const fileName = (...parts) => ["fedbits", ...parts].join("-").toLowerCase().replace(/[^a-z0-9.]+/g, "-").replace(/^-|-$/g, "");
