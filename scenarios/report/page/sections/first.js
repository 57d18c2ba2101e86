// The first screen: what was run in two lines, who is ahead at each level, and the curves of one level beside it; then the whole setup.
{
  const lineOf = (name) => { const found = DATA.setup.lines.find(([title]) => title === name); return found ? found[1] : ""; };
  const sentenceOf = (names) => names.map((name) => lineOf(name) ? `${name}: ${lineOf(name)}` : "").filter((text) => text !== "").join(" · ");

  // A definition list of two columns.
  const definitions = (lines) => element("dl", {class: "setup"}, ...lines.flatMap(([name, text]) => [element("dt", {}, name), element("dd", {}, text)]));

  function foundTable() {
    const rows = DATA.setup.found.map(([panel, method, key, value, remark]) => [levelName(panel), methodName(method), key, value, remark]);
    const columns = [levelHead, DATA.methodKey, "key", "value", "how it was found"].map((title) => ({title}));
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
    return [element("p", {class: "note"}, "Saved as study.toml, it plays the runs of the study again with fedbits run study.toml, each level with its own values; nothing is tuned anew."
      + (text.startsWith("#") && text.split("\n\n")[0].split("\n").length > 1 ? " A comment on top names what it could not say." : "")), element("div", {class: "tools"}, copy, save),
      element("pre", {class: "scroll tall", tabindex: 0}, text)];
  }

  function setupDetails() {
    return element("details", {class: "setup"}, element("summary", {}, "Setup: all that was run, the values that were found, and the scenario to run again"),
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

  // What was found before the runs, by key: "learning_rate (tuned), threshold of hard (matched bits)".
  function foundLine() {
    const ways = new Map();
    for (const [, method, key, , remark] of DATA.setup.found) {
      const text = `${key} (${remark.split(":")[0]})`;
      ways.set(text, [...new Set([...(ways.get(text) ?? []), methodName(method)])]);
    }
    const all = new Set(DATA.setup.found.map(([, method]) => method)).size;
    const texts = [...ways].map(([text, methods]) => methods.length === Math.max(all, 2) ? text : `${text} of ${joined(methods)}`);
    return texts.length ? [element("p", {class: "setup-line"}, `found before these runs: ${texts.join("; ")}; Setup below has the values`)] : [];
  }

  // What changes in the answer for the uplink when the bits down count as well: marked where it changes.
  function bothWays(state, measure) {
    if (state.bits !== "up" || !measure.bothWays) return [];
    const isSame = measure.bothWays.includes("every verdict is the same");
    return [element("p", {class: isSame ? "note" : "warning"}, measure.bothWays)];
  }

  // The answers at smaller budgets, which may differ from that at the end.
  function earlier(state, measure) {
    const answer = SECTIONS.find((one) => one.id === "answer");
    return [element("ul", {class: "note"}, ...answer.earlier(state, measure))];
  }

  function howSure(state, measure) {
    const tested = measure.bits[state.bits].comparisons.filter((c) => isAlternative(c.method) && c.difference.n > 1).length;
    return `${measureName(measure)} (${measure.name}; ${measure.lower ? "lower" : "higher"} is better) at the largest number of ${BITS_NAMES[state.bits]} that both runs of a pair reached, seed by seed. `
      + `Paired t-tests${tested > 1 ? `, p-values corrected by Holm for these ${tested} comparisons` : ""}; Student's intervals${isAccuracy(measure) ? "" : `, in per cent of the mean of ${methodName(DATA.baseline)}`}. `
      + "“No claim” does not mean equal: these runs do not show which one is better.";
  }

  function fill(section, state, measure) {
    const sentences = measure.bits[state.bits].sentences;
    section.append(
      element("p", {class: "setup-line"}, sentenceOf(["data", "clients", "model"])),
      element("p", {class: "setup-line"}, sentenceOf(["local work", "error feedback", "taking part", "rounds", "seeds"])),
      ...foundLine(),
      element("div", {class: "beside"},
        element("div", {},
          element("h2", {}, `Who is ahead at equal ${BITS_NAMES[state.bits]}?`),
          element("ul", {class: "lead"}, ...sentences.map((text) => element("li", {}, text))),
          ...earlier(state, measure),
          ...bothWays(state, measure),
          element("p", {class: "note"}, howSure(state, measure))),
        element("div", {class: "panels"}, pictureOf(state, measure),
          DATA.panels.length > 1 ? element("p", {class: "note"}, "This is the level whose clients differ most; all levels are below. Lines are means over the seeds, bands their 95% intervals; a band that reaches zero falls to the lower edge.") : null)),
      setupDetails());
  }

  addSection({id: "first", place: 5, fill});
}
