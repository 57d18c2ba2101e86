// Records of the contracts that the operator of a run broke.
//
// If a run broke the contract of its operator, its record has constants such as broken_delta_round, broken_delta_measured and
// broken_delta_stated. Other runs, and runs of earlier versions, have no such constants; nothing is claimed about those.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fl_core/config/device.hpp"
#include "scenarios/results/run_record.hpp"

namespace fl {

// The constants of a contract (compressors/compressor.hpp).
enum class Claim : std::uint32_t { kappa, delta, omega };
inline constexpr std::uint32_t kNumClaims = 3;
[[nodiscard]] FL_API const char* to_string(Claim claim);

struct BrokenContract {
  Claim claim = Claim::kappa;
  std::uint64_t round = 0;  // first round in which the claim was found broken
  std::uint64_t since = 0;  // for a claim in expectation: `measured` is a mean over the measured rounds since..round; 0 = one message
  double measured = 0, stated = 0;
  bool has_domain = false;  // the operator states in words where its claims hold
};

// Appends the constants that record a broken contract.
FL_API void record_broken(const BrokenContract& broken, std::vector<ResolvedConstant>& constants);
// Returns the broken contracts that are recorded in a run.
[[nodiscard]] FL_API std::vector<BrokenContract> broken_contracts(const RunRecord& record);
// Returns "delta 0 in round 3, stated 0.75", or "omega 19.8 as the mean of rounds 31 to 44, stated 9".
[[nodiscard]] FL_API std::string to_string(const BrokenContract& broken);
// Returns "contract broken: delta 0 in round 3, stated 0.75" for one run, and for several "contract broken in 2 of 5 runs; seed 1: delta
// ..." with the first of these runs. Returns "" if no contract was broken.
[[nodiscard]] FL_API std::string broken_text(std::span<const RunRecord* const> runs);

}  // namespace fl
