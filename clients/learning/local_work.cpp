#include "clients/learning/local_work.hpp"

namespace fl {

std::int64_t LocalWork::amount(std::uint64_t seed, std::uint32_t client, std::uint32_t round) const {
  const std::int64_t full = epochs > 0 ? epochs : steps;
  if (stragglers == 0) return full;
  const RandomStream random(hash64(seed, static_cast<std::uint64_t>(Purpose::local_work)), client, redraw == Redraw::round ? round : 0, 0);
  if (random.uniform<double>(0) >= stragglers) return full;
  const auto range = static_cast<std::uint64_t>(full - least + 1);
  return least + static_cast<std::int64_t>((static_cast<std::uint64_t>(random.bits(1)) * range) >> 32);
}

void describe(Schema& s, LocalWork& o) {
  using Redraw = LocalWork::Redraw;
  s.field("steps", o.steps, "local steps per round").at_least(1).at_most(kMostLocalSteps).unit("steps");
  s.field("epochs", o.epochs, "passes over the client's rows per round, in random order, instead of steps; 0 = count steps")
      .at_least(0)
      .at_most(kMostLocalSteps);
  s.field("stragglers", o.stragglers, "share of the clients that do less: a number drawn uniformly from least to steps (or epochs)")
      .at_least(0)
      .at_most(1);
  s.field("least", o.least, "smallest number of steps (or epochs) of a straggler").at_least(1).at_most(kMostLocalSteps);
  s.choice("redraw", o.redraw, {{Redraw::round, "round"}, {Redraw::client, "client"}},
           "whether stragglers and their steps are drawn in every round, or once for each client");
}

void validate(const LocalWork& work, Problems& problems) {
  if (work.epochs > 0 && work.steps != LocalWork{}.steps)
    problems.push_back({"steps", "has no effect beside epochs = " + std::to_string(work.epochs) +
                                     ", which counts passes over the rows instead; leave one of them out, or set epochs = 0"});
  const std::int64_t full = work.epochs > 0 ? work.epochs : work.steps;
  if (work.stragglers > 0 && work.least > full)
    problems.push_back({"least", "must be at most " + std::string(work.epochs > 0 ? "epochs" : "steps") + " = " + std::to_string(full) +
                                     ", is " + std::to_string(work.least)});
}

}  // namespace fl
