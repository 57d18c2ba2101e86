// Values at equal bits, as a table.
{
  function fill(section, state, measure) {
    const rows = measure.bits[state.bits].common.filter((at) => shown(state, at.method)).map((at) => {
      const cell = cellOf(at.panel, at.method);
      return [levelName(at.panel), methodName(at.method), cell.runs, isKnown(at.value.mean) ? short(at.value.mean) : "–", interval(at.value.t, 4), interval(at.value.b, 4),
        cost(at.budget, state.bits), isKnown(at.value.mean) ? String(at.evaluations) : "–", at.remarks];
    });
    const columns = [{title: levelHead}, {title: DATA.methodKey}, {title: "runs"}, {title: measureName(measure), number: true}, {title: "Student 95%", number: true},
      {title: "BCa 95%", number: true}, {title: BITS_NAMES[state.bits], number: true}, {title: "evaluations", number: true}, {title: "remarks"}];
    section.append(element("h2", {}, `At the ${costWord(state.bits)} that all methods of a level reached`),
      element("p", {class: "note"}, `Each seed is cut where its shortest run ended; means over ${WINDOW} of these ${costWord(state.bits)}, weighted by ${costWord(state.bits)}. “Evaluations” counts those `
        + `in that window, the fewest of any run: claims need ${DATA.leastEvaluations}. A method “oscillates” if most of its runs do, by more than a tenth of the distance to the nearest other method.`),
      tableWithCsv(columns, rows, `Values at equal ${costWord(state.bits)}`, fileName(`equal-${costWord(state.bits)}`, measure.name, state.bits)));
  }

  addSection({id: "equal-bits", place: 80, fill});
}
