// A large store of artificial runs: a sweep over levels, methods and seeds whose curves decrease like those of real runs.
#pragma once

#include <cmath>
#include <string>
#include <vector>

#include "fl_core/random/random.hpp"
#include "scenarios/results/run_store.hpp"

namespace fl::test {

struct SyntheticSweep {
  std::uint64_t levels = 5, methods = 20, seeds = 10, rounds = 1000, evaluate_every = 1;
};

// Method m sends 1/(m+1) of the bits and converges a little slower for it.
inline std::vector<RoundRow> synthetic_rounds(const SyntheticSweep& sweep, std::uint64_t level, std::uint64_t method, std::uint64_t seed) {
  RandomSequence noise(seed + 100 * level, Purpose::synthetic_data, static_cast<std::uint32_t>(method));
  const double start = 0.6 + 0.05 * noise.normal(), rate = 0.02 / (1 + 0.05 * static_cast<double>(method * level));
  std::vector<RoundRow> rows(sweep.rounds + 1);
  for (std::uint64_t r = 0; r <= sweep.rounds; ++r) {
    RoundRow& row = rows[r];
    row.round = r;
    row.clients = r == 0 ? 0 : 20;
    if (r > 0) {
      row.elements_up = 20 * 1000 / (method + 1);
      row.bits_up = 32 * row.elements_up + 640;
      row.bits_down = 640'000;
      row.density = 1.0 / static_cast<double>(method + 1);
      row.error_norm_sq = 0.1 * static_cast<double>(method);
      row.measured_delta = row.density;
      row.measured_omega = 1 - row.density;
      row.measured_kappa = 0.2;
    }
    if (r % sweep.evaluate_every == 0) {
      row.f_gap = start * std::exp(-rate * static_cast<double>(r)) + 1e-4 * noise.uniform();
      row.train_loss = row.f_gap + 0.02;
      row.test_accuracy = 0.98 - 0.5 * row.f_gap;
    }
  }
  return rows;
}

inline void fill_synthetic(RunStore& store, const SyntheticSweep& sweep) {
  for (std::uint64_t level = 0; level < sweep.levels; ++level)
    for (std::uint64_t method = 0; method < sweep.methods; ++method)
      for (std::uint64_t seed = 1; seed <= sweep.seeds; ++seed) {
        const std::vector<RoundRow> rows = synthetic_rounds(sweep, level, method, seed);
        RunRecord run{.run = "run-" + std::to_string(level) + "-" + std::to_string(method) + "-" + std::to_string(seed),
                      .name = "synthetic",
                      .seed = seed,
                      .status = RunStatus::done,
                      .rounds = sweep.rounds};
        for (const RoundRow& row : rows) {
          run.bits_up += row.bits_up;
          run.bits_down += row.bits_down;
        }
        run.f_gap = rows.back().f_gap;
        run.zeta_sq = std::pow(10.0, -static_cast<double>(level)) * (1 + 0.01 * static_cast<double>(seed));
        run.total_error = 0.1 * static_cast<double>(method * sweep.rounds);
        run.axes = {{"partition.alpha", std::to_string(level)},
                    {"compressor.up", method == 0 ? "none" : "method-" + std::to_string(method)}};
        store.append(run, rows);
      }
}

}  // namespace fl::test
