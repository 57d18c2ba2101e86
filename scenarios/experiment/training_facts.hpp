// Facts about training rows for a process that does not have them: numbers that are computed once, where the rows are.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "clients/learning/model.hpp"
#include "scenarios/partitioners/skew.hpp"

namespace fl {

// A minimiser x* [P] and f*.
struct Minimum {
  std::vector<double> x;
  double value = 0;
  double error = 0;      // bound on f(x) - min f; NaN if x is from a file
  bool is_known = true;  // false: no minimum was found; f may have none
};

// The clients whose rows a process has although it does not have all rows. The rows of one client follow those of the one before it.
struct HeldRows {
  std::vector<std::uint32_t> clients;        // ascending; empty = none
  std::vector<std::uint64_t> own_test_rows;  // of each of these clients; empty = clients are judged on their training rows
};

struct TrainingFacts {
  // The split, and the rows of client_accuracy.
  struct Split {
    std::uint64_t hash = 0, data_hash = 0;  // of the shards, and of the rows that were split
    std::string note;                       // Partitioner::note
    std::vector<std::uint64_t> rows;        // [n] of each client
    std::vector<std::uint64_t> row_hashes;  // [n] of what each client's rows contain (hash_of_rows)
    std::vector<std::uint64_t> own_labels;  // [n] labels of each client's own rows (FederatedProblem::client_rows)
    bool own_rows_are_test_rows = false;
    SplitSkew skew;
  };
  Split split;
  HeldRows held;
  // Facts about models with second derivatives.
  std::optional<SecondOrder::Curvature> curvature;
  std::optional<double> least_convexity;
  std::vector<double> client_smoothness;  // [n]; empty = not computed
  std::vector<double> gradient_variance;  // [n]; empty = not bounded
  std::map<std::string, Minimum> minima;  // by source and regulariser
  bool loss_is_convex = false;
};

}  // namespace fl
