// The small problem on which methods are traced: four clients of unequal weight in twenty dimensions, Top-4, minibatches of 2, gamma = 0.2.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "fl_core/message/payload_ops.hpp"
#include "tests/support/plain_loop.hpp"
#include "tests/support/scenario_text.hpp"

namespace fl::test {

inline constexpr double kTolerance = 1e-12;
inline constexpr std::size_t kDimension = 20, kKept = 4;
inline constexpr std::uint32_t kClients = 4;
inline constexpr double kStep = 0.2;

inline ScenarioText problem(const std::string& feedback) {
  ScenarioText s = uneven_quadratics();
  s.start = "kind = 'zero'\nshift = 1";
  s.local = "kind = 'gradient'\nlearning_rate = 0.2\nbatch = 2";
  s.up = "kind = 'top_k'\nk = 4";
  s.feedback = feedback;
  return s;
}

inline std::vector<Vector> zeros() { return std::vector<Vector>(kClients, Vector(kDimension, 0.0)); }

// C(p) as it arrived from the client at this position in the last round; zero where the channel was silent.
inline Vector message_of(OneRun<double>& run, std::uint32_t position, std::size_t channel = 0) {
  Vector c(run.problem().P());
  const Payload<double>& message = *run->runner().payload(channel, position);
  if (!message.silent) write_dense(message, run->exchange().channels[channel].scope, c.data());
  return c;
}

// Checks that `sent` is `scale` times the entries of `expected` at the same places.
inline testing::AssertionResult holds_entries_of(const Vector& expected, double scale, const Vector& sent) {
  for (std::size_t j = 0; j < sent.size(); ++j)
    if (sent[j] != 0 && std::fabs(sent[j] - scale * expected[j]) > kTolerance)
      return testing::AssertionFailure() << sent[j] << " at " << j << " is not " << scale << " * " << expected[j];
  return testing::AssertionSuccess();
}

}  // namespace fl::test
