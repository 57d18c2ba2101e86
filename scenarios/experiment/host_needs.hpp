// Finds the parts of a scenario that make the host read or write clients' vectors, state rows or messages. Without such parts these may be
// in memory that only a GPU reaches; otherwise host and GPU share managed memory.
#pragma once

#include <string>
#include <vector>

#include "clients/learning/local_update.hpp"
#include "compressors/exchange.hpp"
#include "compressors/feedback/feedback.hpp"
#include "compressors/postprocessors/postprocessor.hpp"
#include "scenarios/file/scenario.hpp"

namespace fl {

// Returns one sentence per such part, which begins with its key: `feedback.up.kind = "cser": the host takes ...`. The text comes from the
// parts (host_walks). Operators are checked for a CUDA implementation in builds that have any.
template <class T>
[[nodiscard]] std::vector<std::string> host_needs(const Scenario& scenario, const LocalUpdate<T>& local, const Feedback<T>& feedback,
                                                  const Exchange<T>& exchange, const PostprocessorPlan& postprocessor, bool materialises);

// Returns why clients train on the CPU in a run with --device cuda, in sentences that begin with a key: `local.kind = "scaffold": ...`.
// Their vectors are then compressed and added up on the GPU all the same. Empty: they train on the GPU, if it has room for the data.
template <class T>
[[nodiscard]] std::vector<std::string> why_clients_train_on_cpu(const Scenario& scenario, const LocalUpdate<T>& local,
                                                                const Model<T>& model);

extern template std::vector<std::string> why_clients_train_on_cpu(const Scenario&, const LocalUpdate<float>&, const Model<float>&);
extern template std::vector<std::string> why_clients_train_on_cpu(const Scenario&, const LocalUpdate<double>&, const Model<double>&);
extern template std::vector<std::string> host_needs(const Scenario&, const LocalUpdate<float>&, const Feedback<float>&,
                                                    const Exchange<float>&, const PostprocessorPlan&, bool);
extern template std::vector<std::string> host_needs(const Scenario&, const LocalUpdate<double>&, const Feedback<double>&,
                                                    const Exchange<double>&, const PostprocessorPlan&, bool);

}  // namespace fl
