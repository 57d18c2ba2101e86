// The page: it asks for the state again and again, and says when the run has ended and when nobody answers.
"use strict";

const EVERY_MS = 1000, SLOW_MS = 5000, GIVE_UP_MS = 5000, SPEAK_MS = 15000;
const PAGES = {serve: ServePage, sweep: SweepPage};
const place = (id) => document.getElementById(id);
let page = null, kind = "", missed = 0, answered = null, spoken = 0, phase = "", purpose = "", outcome = "";

const ENDS = {done: "It has ended.", failed: "It has failed.", interrupted: "It was interrupted."};
const endText = (status) => `${ENDS[status.outcome] || `It has ended: ${status.outcome}.`}${status.message ? ` ${status.message}` : ""} The figures below are the last ones.`;

// Changes the text that is read aloud only when the phase changes, and every few seconds.
function speak(status) {
  const now = Date.now(), isNew = status.phase !== phase || status.purpose !== purpose || status.outcome !== outcome;
  if (!isNew && (now - spoken < SPEAK_MS || status.phase === "ended")) return;
  spoken = now;
  phase = status.phase;
  purpose = status.purpose;
  outcome = status.outcome;
  setText(place("state"), status.phase === "ended" ? endText(status) : page.say(status));
}

function show(status) {
  if (kind !== status.kind) {
    kind = status.kind;
    CHARTS.length = 0;
    place("main").replaceChildren();
    page = new PAGES[kind](place("main"));
  }
  const root = document.documentElement.dataset;
  root.phase = status.phase === "running" || status.phase === "tuning" ? "playing" : status.phase;
  root.outcome = status.outcome;
  setText(place("title"), status.scenario || "fedbits");
  setText(place("facts"), page.facts(status));
  setText(place("origin"), `fedbits ${status.version}. The same figures are at /metrics and /status.json of this address.`);
  document.title = `${status.scenario || "fedbits"} · ${status.phase === "ended" ? status.outcome : status.phase} · fedbits status`;
  page.show(status);
  speak(status);
  root.ready = "yes";
}

// Says that nobody answers, unless the run has ended and its process is gone for good.
function showLost() {
  place("lost").hidden = missed < 2 || phase === "ended";
  if (missed < 2 || phase === "ended") return;
  document.documentElement.dataset.phase = "lost";
  setText(place("lost"), answered === null ? "Nobody answers at this address. The page tries again." :
    `The server has not answered since ${answered.toLocaleTimeString()}: it may have ended or be out of reach. The page tries again; the figures below are the last ones.`);
}

// Returns the state, or null if nobody answers in time.
async function fetchStatus() {
  const stop = new AbortController(), timer = setTimeout(() => stop.abort(), GIVE_UP_MS);
  try {
    const answer = await fetch("status.json", {cache: "no-store", signal: stop.signal});
    return answer.ok ? await answer.json() : null;
  } catch {
    return null;
  } finally {
    clearTimeout(timer);
  }
}

async function ask() {
  const status = await fetchStatus();
  missed = status === null ? missed + 1 : 0;
  setTimeout(ask, missed > 5 || (status && status.phase === "ended") ? SLOW_MS : EVERY_MS);
  if (status !== null) {
    answered = new Date();
    show(status);
  }
  showLost();
}

function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}
function fillTheme() {
  setText(place("theme"), isDark() ? "Light theme" : "Dark theme");
  place("theme").setAttribute("aria-pressed", String(isDark()));
}
function preparePaper(printing) {
  isPrinting = printing;
  for (const chart of CHARTS) chart.draw();
  if (page && page.grid) page.grid.lay();
}

place("theme").addEventListener("click", () => {
  document.documentElement.dataset.theme = isDark() ? "light" : "dark";
  fillTheme();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", fillTheme);
addEventListener("beforeprint", () => preparePaper(true));
addEventListener("afterprint", () => preparePaper(false));
fillTheme();
ask();
