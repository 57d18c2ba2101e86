// Spans and ticks of scales: for the report and for the page of the status.
"use strict";

// The span of values for a scale; a log scale sees only what is above zero.
function span(values, log) {
  const usable = values.filter((value) => Number.isFinite(value) && (!log || value > 0));
  if (!usable.length) return log ? [0.1, 1] : [0, 1];
  let low = Math.min(...usable), high = Math.max(...usable);
  if (low === high) [low, high] = log ? [low / 2, high * 2] : [low - (Math.abs(low) || 1) * 0.1, high + (Math.abs(high) || 1) * 0.1];
  return [low, high];
}

// Log where the values are positive and far apart.
function wantsLog(values) {
  const usable = values.filter(Number.isFinite);
  const low = Math.min(...usable);
  return usable.length > 0 && low > 0 && Math.max(...usable) / low > 20;
}

// Places for the ticks of a log scale: powers of ten, with 2 and 5 between them where there are few; even steps where the scale is short.
function logTicks([low, high]) {
  if (high / low < 3) {
    const raw = (high - low) / 4, size = 10 ** Math.floor(Math.log10(raw)), step = [1, 2, 5, 10].find((factor) => factor * size >= raw) * size;
    return Array.from({length: 9}, (_, i) => Number(((Math.ceil(low / step) + i) * step).toPrecision(12))).filter((tick) => tick <= high);
  }
  const factors = Math.log10(high / low) < 1 ? [1, 2, 3, 5, 7] : Math.log10(high / low) < 2.5 ? [1, 2, 5] : [1];
  const step = Math.ceil(Math.log10(high / low) / 7);
  const ticks = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); ++power)
    for (const factor of factors)
      if (step <= 1 || power % step === 0) ticks.push(Number(`${factor}e${power}`));
  return ticks.filter((tick) => tick >= low * 0.999 && tick <= high * 1.001);
}
