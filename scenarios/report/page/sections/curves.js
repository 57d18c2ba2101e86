// Curves of the measure, against bits and against rounds.
{
  const common = (measure) => ({name: measureName(measure), file: measure.name, yTitle: measureName(measure), measure});

  function fillBits(section, state, measure) {
    const name = measureName(measure);
    fillFigures(section, `${name} against ${BITS_NAMES[state.bits]}`,
      "Mean over the distinct runs with Student's 95% interval. Each run holds its last measured value, and a curve ends where its first run ends; all panels share their axes. On a logarithmic axis a band that reaches zero or below ends at the lower edge.",
      curveFigures(state, measure.curves[state.bits], {...common(measure), against: state.bits}));
  }

  function fillRounds(section, state, measure) {
    fillFigures(section, `${measureName(measure)} against rounds`, "The same runs, by round: what a method loses or gains in a round, whatever its messages cost.",
      curveFigures(state, measure.curves.round, {...common(measure), against: "round"}));
  }

  addSection({id: "curves", place: 20, fill: fillBits});
  addSection({id: "rounds", place: 30, fill: fillRounds});
}
