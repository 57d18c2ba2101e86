// The answer: which method is better at equal bits.
{
  const VERDICT_MARKS = {better: "▲ better", worse: "▼ worse", "no claim": "no claim"};

  // Says that runs of a cell broke the contract of their operator; null where they did not.
  const brokenNote = (cell) => cell && cell.broken ? element("small", {class: "flag"}, cell.broken) : null;

  function differenceText(measure, comparison) {
    const {mean, t} = comparison.difference;
    if (!isKnown(mean)) return "";
    if (isAccuracy(measure)) return `${signed(100 * mean)} points ${isKnown(t[0]) ? interval(t.map((x) => 100 * x)) : ""}`;
    const base = Math.abs(comparison.base.mean);
    if (!(base > 0)) return `${signed(mean)} ${interval(t)}`;
    return `${signed(100 * mean / base)}% ${isKnown(t[0]) ? interval(t.map((x) => 100 * x / base)) : ""}`;
  }

  // Where some comparisons or values lie: "all 3 levels", "partition.alpha = 0.1 and 1".
  function levelsText(list) {
    if (list.length === DATA.panels.length && list.length > 1) return `all ${list.length} levels`;
    if (DATA.panels.length === 1) return "";
    if (onlyLevels) return `${DATA.levelKey} = ${joined(list.map((one) => levelName(one.panel)))}`;
    return joined(list.map((one) => panelName(one.panel)));
  }
  const at = (list) => { const text = levelsText(list); return text ? ` at ${text}` : ""; };

  // At which levels a method is better, worse, or nothing can be said.
  function answerText(mine) {
    const by = (verdict) => mine.filter((c) => c.verdict === verdict);
    const start = mine.filter((c) => c.atStart), ended = mine.filter((c) => (c.why || "").includes("end before this budget"));
    const open = by("no claim").filter((c) => !c.atStart && !ended.includes(c));
    const parts = [];
    if (by("better").length) parts.push(`better${at(by("better"))}`);
    if (by("worse").length) parts.push(`worse${at(by("worse"))}`);
    if (open.length) parts.push(`no claim${open.length === mine.length ? "" : at(open)}`);
    if (ended.length) parts.push(`not compared${ended.length === mine.length ? "" : at(ended)}, since its runs end before`);
    if (start.length) parts.push(`still at the initial model${at(start)}`);
    return parts.join("; ");
  }

  const percent = (share) => `${Math.round(100 * share)}%`;
  const budgetRange = (list, against) => {
    const known = list.map((c) => c.budget).filter(isKnown);
    if (!known.length) return "";
    const low = Math.min(...known), high = Math.max(...known);
    return high <= 1.005 * low ? cost(high, against) : `${cost(low, against)} to ${cost(high, against)}`;
  };

  // A sentence per budget: what is said of the methods that compress, and of those that lose nothing.
  function answerSentences(state, measure) {
    return DATA.shares.map((share) => {
      const there = measure.bits[state.bits].shares.filter((c) => c.share === share);
      const texts = new Map();
      DATA.methods.forEach((name, m) => {
        const mine = there.filter((c) => c.method === m);
        if (isAlternative(m) && mine.length) texts.set(answerText(mine), [...(texts.get(answerText(mine)) ?? []), name]);
      });
      const parts = [...texts].flatMap(([text, names], i) => [i ? "; " : "", element("strong", {}, joined(names)), `: ${text}`]);
      const started = DATA.methods.filter((_, m) => !isAlternative(m) && there.some((c) => c.method === m && c.atStart));
      const range = budgetRange(there.filter((c) => c.method === DATA.baseline), state.bits);
      return element("li", {}, `At ${percent(share)} of the ${BITS_NAMES[state.bits]} of ${methodName(DATA.baseline)}${range ? ` (${range})` : ""}: `, ...(parts.length ? parts : ["there is nothing to compare"]),
        started.length ? `. ${joined(started)} still ${started.length > 1 ? "stand at their initial models" : "stands at its initial model"}${at(there.filter((c) => c.atStart && methodName(c.method) === started[0]))}.` : ".");
    });
  }

  // Of a method at a share of the baseline's bits.
  function shareCell(measure, c) {
    if (!c) return element("td", {class: "none"}, "–");
    const alternative = isAlternative(c.method), kind = c.verdict === "no claim" ? "none" : c.verdict;
    const isOver = (c.why || "").includes("end before this budget");
    const head = c.atStart ? "initial model" : alternative && isOver ? "not compared" : alternative ? VERDICT_MARKS[c.verdict] : c.method === DATA.baseline ? "baseline" : "reference";
    const sure = alternative && c.difference.n > 1 && !c.atStart ? `${pValue(c.holm)} (Holm), ${plural(c.difference.n, "pair")}` : "";
    return element("td", {class: alternative ? kind : "none"}, element("strong", {}, head),
      isKnown(c.value.mean) ? element("span", {}, `${short(c.value.mean)} ${isKnown(c.value.t[0]) ? interval(c.value.t) : ""}`) : null,
      alternative && !c.atStart && differenceText(measure, c) ? element("small", {}, `difference ${differenceText(measure, c)}`) : null,
      sure ? element("small", {}, sure) : null,
      c.why ? element("small", {}, c.why) : null,
      c.remarks ? element("small", {class: "flag"}, c.remarks) : null);
  }

  function targetCell(to, against) {
    if (!to) return element("td", {class: "none"}, "–");
    return element("td", {class: "none"}, element("span", {}, to.median === "inf" ? "median not reached" : cost(to.median, against)),
      isKnown(to.interval[0]) ? element("small", {}, `[${cost(to.interval[0], against)}, ${cost(to.interval[1], against)}]`) : null, element("small", {}, `${to.reached} of ${to.count} reached it`));
  }

  // A row per level and method: its values at shares of the baseline's bits, and its bits to the target.
  function sharesTable(state, measure) {
    const {shares, reach} = measure.bits[state.bits];
    const head = element("thead", {}, element("tr", {}, element("th", {scope: "col"}, levelHead), element("th", {scope: "col"}, DATA.methodKey),
      ...DATA.shares.map((share) => element("th", {scope: "col"}, `at ${percent(share)} of the ${costWord(state.bits)} of ${methodName(DATA.baseline)}`)),
      isKnown(measure.target) ? element("th", {scope: "col"}, `${costWord(state.bits)} until ${short(measure.target)}`) : null));
    const rows = DATA.panels.flatMap((_, p) => [...DATA.methods.keys()].filter((m) => shown(state, m) && cellOf(p, m)).map((m, i) => {
      const budget = shares.find((c) => c.panel === p && c.method === DATA.baseline && c.share === 1);
      return element("tr", {class: i === 0 && p > 0 ? "first" : null},
        element("th", {scope: "row"}, i === 0 ? levelName(p) : "", i === 0 && budget && isKnown(budget.budget) ? element("small", {}, `100% are ${cost(budget.budget, state.bits)}`) : null),
        element("th", {scope: "row", class: "method-name"}, methodName(m), brokenNote(cellOf(p, m))),
        ...DATA.shares.map((share) => shareCell(measure, shares.find((c) => c.panel === p && c.method === m && c.share === share))),
        isKnown(measure.target) ? targetCell(reach.find((to) => to.panel === p && to.method === m), state.bits) : null);
    }));
    return element("table", {class: "verdicts shares"}, head, element("tbody", {}, ...rows));
  }

  // The best value at the budget that all methods of a level reached: a description, since the best is chosen after looking.
  function bestSentence(state, measure) {
    const best = DATA.panels.map((_, p) => {
      const values = measure.bits[state.bits].common.filter((at) => at.panel === p && isKnown(at.value.mean));
      if (values.length < 2) return null;
      return values.reduce((a, b) => (b.value.mean < a.value.mean) === measure.lower ? b : a);
    }).filter((at) => at !== null);
    if (!best.length) return null;
    const methods = [...new Set(best.map((at) => at.method))];
    const text = methods.map((m) => `${methodName(m)}${at(best.filter((one) => one.method === m))}`).join("; ");
    return element("p", {class: "note"}, `${measure.lower ? "Lowest" : "Highest"} mean at the ${costWord(state.bits)} that all methods of a level reached, without methods that have a failed run: ${text}. `
      + "This describes and tests nothing: one that is chosen as the best of these runs needs new seeds for a test (--baseline).");
  }

  function verdictCell(measure, comparison, cell, against) {
    if (!comparison) return element("td", {class: "none"}, element("strong", {}, "no runs"));
    const kind = comparison.verdict === "no claim" ? "none" : comparison.verdict;
    const sure = comparison.difference.n > 1 ? `${pValue(comparison.holm)} (Holm), ${plural(comparison.difference.n, "pair")}` : "";
    return element("td", {class: kind}, element("strong", {}, VERDICT_MARKS[comparison.verdict]),
      element("span", {}, differenceText(measure, comparison)),
      sure ? element("small", {}, sure) : null,
      comparison.why ? element("small", {}, comparison.why) : null,
      isKnown(comparison.budget) ? element("small", {}, `at ${cost(comparison.budget, against)}`) : null,
      comparison.remarks ? element("small", {class: "flag"}, comparison.remarks) : null,
      cell && !cell.done && !comparison.why ? element("small", {}, cell.runs) : null,
      brokenNote(cell));
  }

  function verdictTable(state, measure) {
    const comparisons = measure.bits[state.bits].comparisons;
    const zeta = (p) => {
      const cell = DATA.cells.find((c) => c.panel === p && isKnown(c.zeta.mean));
      return cell ? `measured ζ² ${short(cell.zeta.mean, 3)}` : "";
    };
    const head = element("thead", {}, element("tr", {}, element("th", {scope: "col"}, DATA.methodKey),
      ...DATA.panels.map((panel, p) => element("th", {scope: "col"}, panel.title, element("small", {}, zeta(p))))));
    const rows = DATA.methods.map((name, m) => !isAlternative(m) || !shown(state, m) ? null : element("tr", {}, element("th", {scope: "row"}, name),
      ...DATA.panels.map((_, p) => verdictCell(measure, comparisons.find((c) => c.panel === p && c.method === m), cellOf(p, m), state.bits))));
    return element("table", {class: "verdicts"}, head, element("tbody", {}, ...rows.filter((row) => row !== null)));
  }

  // What a reader might conclude and may not.
  function limits(measure) {
    const alternatives = DATA.methods.filter((_, m) => isAlternative(m)), baseline = methodName(DATA.baseline);
    const texts = ["That two methods are equal: “no claim” says that these runs do not tell which is better. A new study with more seeds may."];
    if (alternatives.length > 1) texts.push(`How ${joined(alternatives)} compare with each other: every test is against ${baseline}. --baseline chooses another one.`);
    const values = DATA.runs.map((run) => run.slice(10, 10 + DATA.measures.length));
    DATA.measures.forEach((one, i) => {
      if (values.length > 1 && values.every((row) => isKnown(row[i]) && row[i] === values[0][i])) texts.push(`Anything about ${measureName(one)}: every run ends at ${short(values[0][i])}.`);
    });
    if (isKnown(measure.target) && !measure.targetGiven) texts.push("That a method needs fewer bits to a target: the target was chosen from these runs.");
    if (DATA.setup.found.length) texts.push("How much would change if tuning were repeated on other seeds: the values that were found are the same in all runs of a method and level.");
    texts.push("What holds for other data, models or test rows: the seeds vary the division of the rows among clients, the initial model, the clients that take part and the minibatches.");
    return texts;
  }

  function fill(section, state, measure) {
    const data = measure.bits[state.bits];
    const family = (list) => list.filter((c) => c.difference.n > 1 && isAlternative(c.method)).length;
    const references = DATA.methods.filter((_, m) => DATA.isReference[m]);
    const target = !isKnown(measure.target) ? "" : measure.targetGiven ? ` The target ${short(measure.target)} was given with --target.`
      : ` The target ${short(measure.target)} is the ${measure.lower ? "largest" : "smallest"} value of ${methodName(DATA.baseline)} over all levels and seeds, each the mean over ${WINDOW} of its uplink bits (the last round of a run may be above it): chosen after the fact, it describes and tests nothing.`;
    section.append(
      element("h2", {}, `Which ${DATA.methodKey.startsWith("compressor") ? "compressor" : "method"} is better at ${joined(DATA.shares.map(percent))} of the ${costWord(state.bits)} of ${methodName(DATA.baseline)}?`),
      element("p", {class: "note"}, `${measureName(measure)} (${measure.lower ? "lower" : "higher"} is better) at shares of the ${BITS_NAMES[state.bits]} that ${methodName(DATA.baseline)} sends in all, seed by seed; each run is judged by its `
        + `mean over ${WINDOW} of the budget. Differences to ${methodName(DATA.baseline)} over paired seeds with 95% intervals.`
        + (references.length ? ` ${joined(references)} ${references.length > 1 ? "lose" : "loses"} nothing in compression and ${references.length > 1 ? "are references" : "is a reference"}: no claim is made about ${references.length > 1 ? "them" : "it"}.` : "")),
      element("ul", {class: "lead"}, ...answerSentences(state, measure)),
      scrolling(sharesTable(state, measure), "Values and verdicts at shares of the baseline's bits"),
      element("p", {class: "note"}, `${plural(family(data.shares), "comparison")} of ${data.shares.filter((c) => isAlternative(c.method)).length} could be tested: where a run ends before a budget (by more than a tenth of it) there is no value, and the next table compares at the bits that both reached. `
        + "The p-values are those of paired t-tests, corrected by Holm within this table; intervals are not corrected. A claim needs p ≤ 0.05 after the correction and both intervals, Student's and the BCa bootstrap's, without zero." + target),
      element("h3", {}, "At the largest budget that both runs of a pair reached"), bestSentence(state, measure) ?? "",
      scrolling(verdictTable(state, measure), "Verdicts by method and level"),
      element("p", {class: "note"}, `Each pair of runs is cut where the one with fewer bits ended. Holm's correction for the ${plural(family(data.comparisons), "comparison")} of this table is its own, so a p-value may differ from that of the same pair above. `
        + "Nothing is corrected across tables, measures and kinds of bits: choose one before you look."));
    for (const note of DATA.notes) section.append(element("p", {class: "warning"}, note));
    section.append(element("h3", {}, "What these runs do not show"), element("ul", {class: "note"}, ...limits(measure).map((text) => element("li", {}, text))));
  }

  addSection({id: "answer", place: 10, fill, earlier: (state, measure) => answerSentences(state, measure).slice(0, -1)});
}
