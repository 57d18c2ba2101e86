// The page: what is chosen, and when its sections are filled.
"use strict";

const state = {study: 0, measure: 0, bits: "up", xScale: "auto", yScale: "auto", methods: new Set(DATA.methods.keys())};
const section = (id) => document.getElementById(id);

// Fills the sections that are filled anew at this time (sections.js).
function fillSections(every) {
  for (const one of SECTIONS.filter((each) => each.every === every)) {
    clearSection(section(one.id));
    one.fill(section(one.id), state, DATA.measures[state.measure]);
  }
}

// ---- the toolbar ---------------------------------------------------------------------------------------------------------------

function fillStudies() {
  const select = section("study");
  section("study-choice").hidden = STUDIES.length < 2;
  select.replaceChildren(...STUDIES.map((study, i) => element("option", {value: i}, `${study.name} (${plural(study.runs.length, "run")})`)));
  select.addEventListener("change", () => {
    state.study = Number(select.value);
    showStudy(state.study);
    Object.assign(state, {measure: 0, methods: new Set(DATA.methods.keys())});
    if (!knownBits().includes(state.bits)) state.bits = "up";
    fillStudy();
  });
}

function choice(place, options, isChosen, choose) {
  const buttons = options.map(({label, value, swatch, meaning}) => element("button", {type: "button", title: meaning || null, class: swatch ? "method" : null, "aria-pressed": String(isChosen(value)), onclick: () => {
    choose(value);
    options.forEach((option, i) => buttons[i].setAttribute("aria-pressed", String(isChosen(option.value))));
    fill();
  }}, swatch || "", label));
  section(place).replaceChildren(...buttons);
}

function swatchOf(index) {
  const style = methodStyle(index, currentTheme());
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("class", "swatch");
  svg.setAttribute("aria-hidden", "true");
  const line = document.createElementNS("http://www.w3.org/2000/svg", "line");
  for (const [name, value] of Object.entries({x1: 0, x2: "100%", y1: "50%", y2: "50%", stroke: style.color, "stroke-dasharray": style.dash.join(" ")})) line.setAttribute(name, value);
  svg.append(line);
  return svg;
}

function fillToolbar() {
  choice("measures", DATA.measures.map((measure, value) => ({label: measureName(measure), value})), (value) => state.measure === value, (value) => { state.measure = value; });
  choice("bits", knownBits().map((value) => ({label: BITS_LABELS[value], meaning: BITS_MEANINGS[value], value})), (value) => state.bits === value, (value) => { state.bits = value; });
  for (const [place, key] of [["x-scale", "xScale"], ["y-scale", "yScale"]])
    choice(place, ["auto", "linear", "log"].map((value) => ({label: value, value})), (value) => state[key] === value, (value) => { state[key] = value; });
  choice("methods", DATA.methods.map((label, value) => ({label, value, swatch: swatchOf(value)})), (value) => state.methods.has(value),
    (value) => state.methods.has(value) && state.methods.size > 1 ? state.methods.delete(value) : state.methods.add(value));
}

function fillTheme() {
  const button = section("theme");
  const isDark = currentTheme().name === "dark";
  button.textContent = isDark ? "Light theme" : "Dark theme";
  button.setAttribute("aria-pressed", String(isDark));
}

function changeTheme() {
  document.documentElement.dataset.theme = currentTheme().name === "dark" ? "light" : "dark";
  themeChanged();
}

function themeChanged() {
  fillTheme();
  fillToolbar();
  drawAll();
}

// ---- all of it -----------------------------------------------------------------------------------------------------------------

function fill() {
  fillSections("choice");
  drawAll();
}

// What belongs to the study and not to what is chosen of it.
function fillStudy() {
  const seeds = [...new Set(DATA.runs.map((run) => run[3]))];
  const levels = DATA.levelKey ? `${plural(DATA.panels.length, "level")} of ${DATA.levelKey}` : plural(DATA.panels.length, "setting");
  const others = DATA.inStore.length > 1 ? `study “${DATA.name}”, one of ${DATA.inStore.length} in this store, which are not compared with each other · ` : "";
  section("facts").textContent = `${others}${plural(DATA.runs.length, "run")} · ${plural(DATA.methods.length, "method")} (${DATA.methodKey}) · ${levels} · ${plural(seeds.length, "paired seed")}`;
  section("origin").textContent = `Made by fedbits ${DATA.version} from ${DATA.source}. Charts: Vega (BSD 3-clause, UW Interactive Data Lab), inside this file with its licence.`;
  fillToolbar();
  fillSections("study");
  fill();
}

// Paper is white, a figure is as wide as its column there, and what was run stands on it.
function preparePaper(printing) {
  isPrinting = printing;
  for (const setup of document.querySelectorAll("details.setup")) {
    if (printing) setup.dataset.wasOpen = String(setup.open);
    setup.open = printing || setup.dataset.wasOpen === "true";
  }
  drawAll();
}

function start() {
  section("theme").addEventListener("click", changeTheme);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { if (!document.documentElement.dataset.theme) themeChanged(); });
  addEventListener("beforeprint", () => preparePaper(true));
  addEventListener("afterprint", () => preparePaper(false));
  document.querySelector("main").append(...SECTIONS.map(({id}, i) => element("section", {id, tabindex: i === 0 ? -1 : null})));
  fillTheme();
  fillStudies();
  fillSections("page");
  fillStudy();
  document.documentElement.dataset.ready = "yes";
}

start();
