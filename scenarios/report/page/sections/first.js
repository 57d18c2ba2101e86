// The first screen: what was run in two lines, who is ahead at each level, and the curves of one level beside it; then the whole setup.
{
  const lineOf = (name) => { const found = DATA.setup.lines.find(([title]) => title === name); return found ? found[1] : ""; };
  const sentenceOf = (names) => names.map((name) => lineOf(name) ? `${name}: ${lineOf(name)}` : "").filter((text) => text !== "").join(" · ");

  // A definition list of two columns.
  const definitions = (lines) => element("dl", {class: "setup"}, ...lines.flatMap(([name, text]) => [element("dt", {}, name), element("dd", {}, text)]));

  function foundTable() {
    const rows = DATA.setup.found.map(([panel, method, key, value, remark]) => [levelName(panel), methodName(method), key, value, remark]);
    const columns = [levelHead, DATA.methodKey, "key", "value", ""].map((title) => ({title}));
    return tableWithCsv(columns, rows, "Values that tuning found", fileName("found", DATA.name));
  }

  function scenarioToCopy() {
    const text = DATA.setup.scenario;
    const copy = element("button", {type: "button", onclick: async () => {
      try {
        await navigator.clipboard.writeText(text);
        copy.textContent = "Copied";
      } catch {
        download(`${fileName(DATA.name)}.toml`, "text/plain", text);  // a page from a file may not reach the clipboard
      }
    }}, "Copy");
    const save = element("button", {type: "button", onclick: () => download(`${fileName(DATA.name)}.toml`, "text/plain", text)}, "Save as TOML");
    return [element("p", {class: "note"}, "This file plays the runs of the study again."), element("div", {class: "tools"}, copy, save),
      element("pre", {class: "scroll tall", tabindex: 0}, text)];
  }

  function setupDetails() {
    return element("details", {class: "setup"}, element("summary", {}, "Setup: everything that was run"),
      definitions(DATA.setup.lines),
      element("h3", {}, `Methods (${DATA.methodKey})`), definitions(DATA.setup.methods),
      ...(DATA.setup.found.length ? [element("h3", {}, "Values that tuning and the matching of bits found"), foundTable()] : []),
      element("div", {class: "to-copy"}, element("h3", {}, "Scenario to copy"), ...scenarioToCopy()),
      element("h3", {}, "To cite"), element("p", {}, DATA.setup.citation));
  }

  // The curves of the level whose clients differ most, if zeta^2 is known, else of the first one.
  function pictureOf(state, measure) {
    const zeta = (p) => { const cell = DATA.cells.find((c) => c.panel === p && isKnown(c.zeta.mean)); return cell ? cell.zeta.mean : -1; };
    const panel = [...DATA.panels.keys()].reduce((a, b) => zeta(b) > zeta(a) ? b : a, 0);
    const curves = measure.curves[state.bits].map((curve, p) => p === panel ? curve : {...curve, lines: []});
    const [figure] = curveFigures(state, curves, {name: measureName(measure), file: `first-${measure.name}`, yTitle: measureName(measure), measure, against: state.bits});
    return figure ?? null;
  }

  function fill(section, state, measure) {
    const sentences = measure.bits[state.bits].sentences;
    section.append(
      element("p", {class: "setup-line"}, sentenceOf(["data", "clients", "model"])),
      element("p", {class: "setup-line"}, sentenceOf(["local work", "error feedback", "taking part", "rounds", "seeds"])),
      element("div", {class: "beside"},
        element("div", {},
          element("h2", {}, "Who is ahead at equal bits?"),
          element("ul", {class: "lead"}, ...sentences.map((text) => element("li", {}, text))),
          element("p", {class: "note"}, `${measureName(measure)} (${measure.lower ? "lower" : "higher"} is better) at the largest number of ${BITS_NAMES[state.bits]} that both runs of a pair reached, seed by seed; `
            + "p-values of paired t-tests, corrected by Holm.")),
        element("div", {class: "panels"}, pictureOf(state, measure))),
      setupDetails());
  }

  addSection({id: "first", place: 5, fill});
}
