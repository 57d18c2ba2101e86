// The answer: which method is better at equal bits.
{
  const VARIANCE_RATIO = "variance of the paired differences divided by the sum of the two methods' variances over seeds: below 1 where pairing helps";
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
    const start = mine.filter((c) => c.atStart), open = by("no claim").filter((c) => !c.atStart);
    const parts = [];
    if (by("better").length) parts.push(`better${at(by("better"))}`);
    if (by("worse").length) parts.push(`worse${at(by("worse"))}`);
    if (open.length) parts.push(`no claim${open.length === mine.length ? "" : at(open)}`);
    if (start.length) parts.push(`still at the initial model${at(start)}`);
    return parts.join("; ");
  }

  const percent = (share) => `${Math.round(100 * share)}%`;
  const budgetRange = (list) => {
    const known = list.map((c) => c.budget).filter(isKnown);
    if (!known.length) return "";
    const low = Math.min(...known), high = Math.max(...known);
    return low === high ? bits(low) : `${bits(low)} to ${bits(high)}`;
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
      const range = budgetRange(there.filter((c) => c.method === DATA.baseline));
      return element("li", {}, `At ${percent(share)} of the ${BITS_NAMES[state.bits]} of ${methodName(DATA.baseline)}${range ? ` (${range})` : ""}, against it – `, ...(parts.length ? parts : ["there is nothing to compare"]),
        started.length ? `. ${joined(started)} still ${started.length > 1 ? "stand at their initial models" : "stands at its initial model"}${at(there.filter((c) => c.atStart && methodName(c.method) === started[0]))}.` : ".");
    });
  }

  // Of a method at a share of the baseline's bits.
  function shareCell(measure, c) {
    if (!c) return element("td", {class: "none"}, "–");
    const alternative = isAlternative(c.method), kind = c.verdict === "no claim" ? "none" : c.verdict;
    const head = c.atStart ? "initial model" : alternative ? VERDICT_MARKS[c.verdict] : c.method === DATA.baseline ? "baseline" : "reference";
    const sure = alternative && c.difference.n > 1 && !c.atStart ? `${pValue(c.holm)} (Holm), ${plural(c.difference.n, "pair")}` : "";
    return element("td", {class: alternative ? kind : "none"}, element("strong", {}, head),
      isKnown(c.value.mean) ? element("span", {}, `${short(c.value.mean)} ${isKnown(c.value.t[0]) ? interval(c.value.t) : ""}`) : null,
      alternative && !c.atStart && differenceText(measure, c) ? element("small", {}, `difference ${differenceText(measure, c)}`) : null,
      sure ? element("small", {}, sure) : null,
      c.why ? element("small", {}, c.why) : null,
      c.remarks ? element("small", {class: "flag"}, c.remarks) : null);
  }

  function targetCell(to) {
    if (!to) return element("td", {class: "none"}, "–");
    return element("td", {class: "none"}, element("span", {}, to.median === "inf" ? "median not reached" : bits(to.median)),
      isKnown(to.interval[0]) ? element("small", {}, `[${bits(to.interval[0])}, ${bits(to.interval[1])}]`) : null, element("small", {}, `${to.reached} of ${to.count} reached it`));
  }

  // A row per level and method: its values at shares of the baseline's bits, and its bits to the target.
  function sharesTable(state, measure) {
    const {shares, reach} = measure.bits[state.bits];
    const head = element("thead", {}, element("tr", {}, element("th", {scope: "col"}, levelHead), element("th", {scope: "col"}, DATA.methodKey),
      ...DATA.shares.map((share) => element("th", {scope: "col"}, `at ${percent(share)} of the bits of ${methodName(DATA.baseline)}`)),
      isKnown(measure.target) ? element("th", {scope: "col"}, `bits until ${short(measure.target)}`) : null));
    const rows = DATA.panels.flatMap((_, p) => [...DATA.methods.keys()].filter((m) => shown(state, m) && cellOf(p, m)).map((m, i) => {
      const budget = shares.find((c) => c.panel === p && c.method === DATA.baseline && c.share === 1);
      return element("tr", {class: i === 0 && p > 0 ? "first" : null},
        element("th", {scope: "row"}, i === 0 ? levelName(p) : "", i === 0 && budget && isKnown(budget.budget) ? element("small", {}, `100% are ${bits(budget.budget)}`) : null),
        element("th", {scope: "row", class: "method-name"}, methodName(m), brokenNote(cellOf(p, m))),
        ...DATA.shares.map((share) => shareCell(measure, shares.find((c) => c.panel === p && c.method === m && c.share === share))),
        isKnown(measure.target) ? targetCell(reach.find((to) => to.panel === p && to.method === m)) : null);
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
    return element("p", {class: "note"}, `${measure.lower ? "Lowest" : "Highest"} mean at the bits that all methods reached (those whose runs all ended well): ${text}. `
      + "A description, not a test: fedbits report with --baseline and its label tests the others against it.");
  }

  function verdictCell(measure, comparison, cell) {
    if (!comparison) return element("td", {class: "none"}, element("strong", {}, "no runs"));
    const kind = comparison.verdict === "no claim" ? "none" : comparison.verdict;
    const sure = comparison.difference.n > 1 ? `${pValue(comparison.holm)} (Holm), ${plural(comparison.difference.n, "pair")}` : "";
    return element("td", {class: kind}, element("strong", {}, VERDICT_MARKS[comparison.verdict]),
      element("span", {}, differenceText(measure, comparison)),
      sure ? element("small", {}, sure) : null,
      comparison.why ? element("small", {}, comparison.why) : null,
      isKnown(comparison.budget) ? element("small", {}, `at ${bits(comparison.budget)}`) : null,
      isKnown(comparison.ratio) ? element("small", {title: VARIANCE_RATIO}, `variance ratio ${short(comparison.ratio, 2)}`) : null,
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
      ...DATA.panels.map((_, p) => verdictCell(measure, comparisons.find((c) => c.panel === p && c.method === m), cellOf(p, m)))));
    return element("table", {class: "verdicts"}, head, element("tbody", {}, ...rows.filter((row) => row !== null)));
  }

  function fill(section, state, measure) {
    const data = measure.bits[state.bits];
    const family = (list) => list.filter((c) => c.difference.n > 1 && isAlternative(c.method)).length;
    const references = DATA.methods.filter((_, m) => DATA.isReference[m]);
    const target = !isKnown(measure.target) ? "" : measure.targetGiven ? ` The target ${short(measure.target)} was given with --target.`
      : ` The target ${short(measure.target)} is the worst end point of ${methodName(DATA.baseline)}: chosen after the fact, it describes and tests nothing.`;
    section.append(
      element("h2", {}, `Which ${DATA.methodKey.startsWith("compressor") ? "compressor" : "method"} is better at equal bits?`),
      element("p", {class: "note"}, `${measureName(measure)} (${measure.lower ? "lower" : "higher"} is better) at shares of the ${BITS_NAMES[state.bits]} that ${methodName(DATA.baseline)} sends in all, seed by seed; each run is judged by its `
        + `mean over ${WINDOW} of the budget. Differences to ${methodName(DATA.baseline)} over paired seeds with 95% intervals.`
        + (references.length ? ` ${joined(references)} ${references.length > 1 ? "lose" : "loses"} nothing in compression and ${references.length > 1 ? "are references" : "is a reference"}: no claim is made about ${references.length > 1 ? "them" : "it"}.` : "")),
      element("ul", {class: "lead"}, ...answerSentences(state, measure)),
      scrolling(sharesTable(state, measure), "Values and verdicts at shares of the baseline's bits"),
      element("p", {class: "note"}, `Family of ${plural(family(data.shares), "comparison")}: ${measureName(measure)}, every method at every level and budget; p-values of paired t-tests, `
        + "corrected by Holm. Runs that end before a budget have no value there; the next table compares them at the bits that both reached. A claim needs p ≤ 0.05 after the correction and both intervals, Student's and BCa bootstrap, without zero." + target),
      element("h3", {}, "At the largest budget that both runs of a pair reached"), bestSentence(state, measure) ?? "",
      scrolling(verdictTable(state, measure), "Verdicts by method and level"),
      element("p", {class: "note"}, `A family of its own, of ${plural(family(data.comparisons), "comparison")}: each pair of runs is cut where the one with fewer bits ended. The variance ratio is the ${VARIANCE_RATIO}.`));
    for (const note of DATA.notes) section.append(element("p", {class: "warning"}, note));
  }

  addSection({id: "answer", place: 10, fill});
}
