// How the numbers are made.
{
  function fill(section) {
    const say = (...texts) => element("p", {}, ...texts);
    section.append(element("h2", {}, "How these numbers are made"),
      say("Bits are the exact lengths of the encoded messages, headers included, all clients together; those of the downlink include what absent clients catch up on."),
      ...knownBits().filter((key) => key === "published" || key === "entropy").map((key) => say(`"${BITS_LABELS[key]}" is ${BITS_MEANINGS[key]}.`)),
      say("Seeds are paired: equal seeds give the same division of the rows among clients, initial model, participating clients and minibatches, so methods are compared seed by seed; the test rows are the same for all seeds. A cell in which a run diverged, failed or was interrupted has no mean; "
        + "it says so, and nothing is claimed about it."),
      say("Intervals are 95%: Student's t over the seeds, and the bias-corrected accelerated bootstrap (Efron 1987) from ", String(DATA.resamples), " resamples with a fixed key. "
        + "With few seeds both are rough, and the bootstrap's are too short. The p-values take the paired differences as normally distributed, which so few of them cannot check: "
        + "an exact sign-flip test of n pairs has no p-value below 2/2ⁿ, which is 0.0625 for 5 pairs, 0.0078 for 8 and 0.002 for 10."),
      say(`Between measurements a run keeps its last measured value. Equal bits means truncation: for each pair of runs, the smaller of their totals. A run's value there is the mean of its steps over ${WINDOW} of `
        + `that budget, weighted by bits, so that neither the phase of an oscillation nor the noise of one minibatch decides. No claim is made from fewer than ${DATA.leastEvaluations} evaluations in that window.`),
      say("Seeds that gave one and the same run (equal checksums of the final model, equal bits) are one observation and count once everywhere. No claim is made about cells in which updates were refused because they were not finite, "
        + "or from pairs that all have the same difference."),
      say("Bits to a target: runs that never reach it are censored at their last bit, runs that diverged never arrive; the median and its interval are Kaplan and Meier's with the log-log interval of Brookmeyer and Crowley."));
  }

  addSection({id: "method", place: 140, every: "page", fill});
}
