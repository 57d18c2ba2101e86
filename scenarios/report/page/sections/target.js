// Bits to a target, as a table.
{
  function fill(section, state, measure) {
    const rows = measure.bits[state.bits].reach.filter((to) => shown(state, to.method)).map((to) => [
      levelName(to.panel), methodName(to.method), `${to.reached} of ${to.count}`, to.median === "inf" ? "median not reached" : cost(to.median, state.bits),
      isKnown(to.interval[0]) ? `[${cost(to.interval[0], state.bits)}, ${cost(to.interval[1], state.bits)}]` : "–"]);
    const columns = [{title: levelHead}, {title: DATA.methodKey}, {title: "reached it", number: true}, {title: `median ${BITS_NAMES[state.bits]}`, number: true}, {title: "95% interval", number: true}];
    const origin = measure.targetGiven ? "The target was given with --target."
      : `The target is the ${measure.lower ? "largest" : "smallest"} value of ${methodName(DATA.baseline)} over all levels and seeds, each the mean over ${WINDOW} of its uplink bits. It was chosen after the fact: this table describes and tests nothing. --target fixes one beforehand.`;
    section.append(element("h2", {}, state.bits === "seconds" ? "Time to a target" : "Bits to a target"),
      element("p", {class: "note"}, `${state.bits === "seconds" ? "Simulated time" : "Bits"} until ${measureName(measure)} was first measured at ${short(measure.target)} or ${measure.lower ? "below" : "above"}; a run may be ${measure.lower ? "above" : "below"} it again later. ${origin} `
        + "Runs that never got there are censored at their end; the median is Kaplan and Meier's."),
      isKnown(measure.target) ? tableWithCsv(columns, rows, state.bits === "seconds" ? "Time to the target" : "Bits to the target", fileName(`${costWord(state.bits)}-to-target`, measure.name, state.bits))
        : element("p", {}, "No target: the baseline has no finished run."));
  }

  addSection({id: "target", place: 90, fill});
}
