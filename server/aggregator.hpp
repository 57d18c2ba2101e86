// Weighted sums of messages over the cohort, in a fixed order.
//
//   sum_j = sum_i weight_i c_ij, in double, in the tree of server/sum_tree.hpp
// Threads split the coordinates, never the clients, so the number of threads does not affect the result. A silent or lost message counts
// as zero. Messages in memory that a GPU reaches are summed on the GPU if they have a device form (device_aggregation.hpp); the bytes are
// the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "fl_core/memory/buffer.hpp"
#include "fl_core/memory/thread_pool.hpp"
#include "fl_core/message/layer_table.hpp"
#include "fl_core/message/payload.hpp"
#include "server/aggregation_rule.hpp"
#include "server/device_aggregation.hpp"
#include "server/sum_tree.hpp"

namespace fl {

template <class T>
class Aggregator {
 public:
  explicit Aggregator(ThreadPool& pool) : pool_(pool) {}
  // Computes the weighted sum. messages[i] may be null (nothing arrived). sum: [L], L = the messages' length.
  void sum(std::span<const Payload<T>* const> messages, std::span<const double> weights, const Scope& scope, std::span<double> sum);
  // Combines the messages by a rule that is no sum, on the CPU. Those that are null have no row; without any the result is zero. out: [L].
  void combine(const AggregationRule& rule, std::span<const Payload<T>* const> messages, std::span<const double> weights,
               const Scope& scope, std::span<double> out);

 private:
  [[nodiscard]] bool sum_on_device(std::span<const Payload<T>* const> messages, std::span<const double> weights, const Scope& scope,
                                   std::span<double> sum);
  [[nodiscard]] static std::span<const Payload<T>* const> on_host(std::span<const Payload<T>* const> messages,
                                                                  std::vector<Payload<T>>& copies, std::vector<const Payload<T>*>& here);
  void sum_range(std::span<const Payload<T>* const> messages, std::span<const double> weights, const Scope& scope, SumRange range,
                 std::span<double> sum, const Exec& exec) const;
  ThreadPool& pool_;
  std::unique_ptr<DeviceAggregation<T>> device_;  // created for the first messages that a GPU reaches
};

extern template class Aggregator<float>;
extern template class Aggregator<double>;

}  // namespace fl
