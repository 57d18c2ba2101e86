#include "clients/learning/minibatches.hpp"

#include <algorithm>
#include <string>

#include "fl_core/config/key_error.hpp"

namespace fl {

namespace {

std::string text_of_rows(std::size_t rows) { return std::to_string(rows) + (rows == 1 ? " row" : " rows"); }

// Epochs: the file must have rows for each of their steps, and a round has no more steps than can be counted.
template <class T>
void check_local_steps(const LocalUpdate<T>& local_update, const GradientOracle<T>& oracle) {
  const LocalWork* work = local_update.step_settings().work;
  if (work == nullptr || work->epochs == 0) return;
  if (oracle.replays_rounds())
    throw key_error("local.epochs",
                    "a sample_file with a column per client gives one row per round, and epochs take all of them; use the "
                    "form with the columns round,client,step,rows");
  for (std::size_t i = 0; i < oracle.sizes().num_clients(); ++i) {
    const std::size_t rows = oracle.sizes()[i], batch = oracle.is_full() ? rows : oracle.batch();
    const std::uint64_t count = static_cast<std::uint64_t>(work->epochs) * ((rows + batch - 1) / batch);
    if (count > kMostLocalSteps)
      throw key_error("local.epochs", "client " + std::to_string(i) + " would take " + std::to_string(count) +
                                          " local steps in a round, at most " + std::to_string(kMostLocalSteps) + " are possible");
  }
}

}  // namespace

template <class T>
void check_minibatches(const LocalUpdate<T>& local_update, const GradientOracle<T>& oracle, bool measures_gradients) {
  check_local_steps(local_update, oracle);
  const std::size_t least = oracle.model().minibatch_needs(0).least_rows, batch = oracle.batch();
  if (least < 2) return;
  const bool in_epochs = local_update.step_settings().work != nullptr && local_update.step_settings().work->epochs > 0;
  const auto refuse = [least](const std::string& key, const std::string& what, const std::string& way_out) {
    throw key_error(key, what + ", one value per channel for batch_norm, which has no variance; it needs " + text_of_rows(least) +
                             " or more: " + way_out);
  };
  if (!oracle.is_full() && batch < least)
    refuse("local.batch", "a minibatch has " + text_of_rows(batch), "use a larger batch, or group_norm");
  for (std::size_t i = 0; i < oracle.sizes().num_clients(); ++i) {
    const std::size_t rows = oracle.sizes()[i], rest = batch > 0 ? rows % batch : 0;
    const std::string client = "client " + std::to_string(i) + " has " + text_of_rows(rows);
    if (rows > 0 && rows < least && (oracle.is_full() || in_epochs || measures_gradients))
      refuse(oracle.is_full() || in_epochs ? "local.batch" : "evaluate.gradient", client,
             measures_gradients && !oracle.is_full() && !in_epochs ? "use evaluate.gradient = \"never\", or a partition with more rows"
                                                                   : "use a partition with more rows, or group_norm");
    if (in_epochs && !oracle.is_full() && rest > 0 && rest < least)
      refuse("local.batch",
             client + ", so that the last minibatch of its epochs with batch = " + std::to_string(batch) + " has " + text_of_rows(rest),
             "use another batch, steps instead of epochs, or group_norm");
  }
}

template <class T>
WholeMinibatch largest_minibatch(const GradientOracle<T>& oracle, bool measures_gradients) {
  if (!oracle.model().minibatch_needs(0).takes_whole) return {};
  std::size_t rows = oracle.batch();
  if (oracle.is_full() || measures_gradients)
    for (const Shard& shard : oracle.shards()) rows = std::max(rows, shard.size());
  return {rows, oracle.model().minibatch_needs(rows).bytes};
}

#define FL_INSTANTIATE(T)                                                                    \
  template void check_minibatches<T>(const LocalUpdate<T>&, const GradientOracle<T>&, bool); \
  template WholeMinibatch largest_minibatch<T>(const GradientOracle<T>&, bool);
FL_INSTANTIATE(float)
FL_INSTANTIATE(double)
#undef FL_INSTANTIATE

}  // namespace fl
