// What in a study makes the host walk clients' vectors, rows of state or messages. Without any of it, all of these may lie in memory that
// only a GPU reaches; else host and GPU share managed memory.
#pragma once

#include <string>
#include <vector>

#include "clients/local_update.hpp"
#include "compressors/exchange.hpp"
#include "compressors/feedback/feedback.hpp"
#include "scenarios/file/scenario.hpp"

namespace fl {

// Returns a sentence for each, which begins with its key: `feedback.up.kind = "cser": the host takes ...`. The parts say it themselves
// (host_walks); an operator is asked for its CUDA half in builds that have any.
template <class T>
[[nodiscard]] std::vector<std::string> host_needs(const Scenario& scenario, const LocalUpdate<T>& local, const Feedback<T>& feedback,
                                                  const Exchange<T>& exchange, bool materialises);

extern template std::vector<std::string> host_needs(const Scenario&, const LocalUpdate<float>&, const Feedback<float>&,
                                                    const Exchange<float>&, bool);
extern template std::vector<std::string> host_needs(const Scenario&, const LocalUpdate<double>&, const Feedback<double>&,
                                                    const Exchange<double>&, bool);

}  // namespace fl
