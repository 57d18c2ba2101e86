#include "clients/device_room.hpp"

#include <algorithm>
#include <variant>

namespace fl {

namespace {

constexpr std::size_t kMostRows = 512;                       // of a client in one piece
constexpr std::size_t kWaveBytes = std::size_t{2} << 30;     // of activations and weights
constexpr std::size_t kPieceBytes = std::size_t{512} << 20;  // of activations
constexpr std::size_t kMostSparseFeatures = 4096;
constexpr std::size_t kBytesPerRow = 16;  // its number, loss, and whether it is right

// Outputs that may be needed for the way back; those of functions that work in place are counted, too.
std::size_t entries_per_example(const NetworkForm& form) {
  std::size_t widest = form.layers.front().inputs, all = widest;
  for (const NetworkForm::Layer& layer : form.layers) {
    if (std::holds_alternative<form::Flatten>(layer.form)) continue;
    widest = std::max(widest, layer.outputs);
    all += layer.outputs;
  }
  return all + 2 * widest;
}

std::size_t widest_of(const NetworkForm& form) {
  std::size_t widest = form.layers.front().inputs;
  for (const NetworkForm::Layer& layer : form.layers) widest = std::max(widest, layer.outputs);
  return widest;
}

template <class T>
std::uint64_t bytes_of_wave(const NetworkForm& form, std::size_t P, std::size_t clients, std::size_t rows) {
  const std::size_t per_client = (std::min(rows, kMostRows) * entries_per_example(form) + 3 * P) * sizeof(T) + 1;
  return std::min(kWaveBytes, clients * per_client) + per_client;
}

template <class T>
std::optional<NetworkForm> form_of(const Model<T>& model) {
  const Dataset<T>* data = model.training_data();
  return data != nullptr && device_data_bytes(*data) > 0 ? model.as_form() : std::nullopt;
}

}  // namespace

template <class T>
std::uint64_t device_data_bytes(const Dataset<T>& data) {
  if (data.num_classes < 2 || data.vocabulary > 0 || data.labels_per_row() > 1 || !data.augment.is_none()) return 0;
  if (data.is_sparse && data.num_features > kMostSparseFeatures) return 0;
  const std::uint64_t rows = data.has_pixels() ? data.pixels.size()
                             : data.is_sparse ? data.row_begin.size() * sizeof(std::uint64_t) + data.column.size() * sizeof(std::uint32_t) +
                                                    data.value.size() * sizeof(T)
                                              : data.dense.size() * sizeof(T);
  return rows + data.label.size() * sizeof(std::int32_t);
}

template <class T>
std::uint64_t device_training_bytes(const LocalUpdate<T>& local_update, const GradientOracle<T>& oracle, std::size_t clients) {
  const std::optional<NetworkForm> form = local_update.descent() ? form_of(oracle.model()) : std::nullopt;
  if (!form) return 0;
  std::size_t most = oracle.batch();
  for (const Shard& shard : oracle.shards()) most = oracle.is_full() ? std::max(most, shard.size()) : most;
  return bytes_of_wave<T>(*form, oracle.model().layers().size(), clients, most);
}

template <class T>
std::uint64_t device_gradient_bytes(const Model<T>& model, std::size_t clients, std::size_t rows) {
  const std::optional<NetworkForm> form = form_of(model);
  return form ? bytes_of_wave<T>(*form, model.layers().size(), clients, rows) : 0;
}

template <class T>
std::uint64_t device_evaluation_bytes(const Model<T>& model, std::size_t rows) {
  const std::optional<NetworkForm> form = form_of(model);
  if (!form) return 0;
  const std::size_t per_row = 2 * widest_of(*form) * sizeof(T), least = per_row;
  return model.layers().size() * sizeof(T) + rows * kBytesPerRow + std::max(least, std::min(rows * per_row, kPieceBytes));
}

#define FL_INSTANTIATE(T)                                                                                        \
  template std::uint64_t device_data_bytes<T>(const Dataset<T>&);                                                \
  template std::uint64_t device_training_bytes<T>(const LocalUpdate<T>&, const GradientOracle<T>&, std::size_t); \
  template std::uint64_t device_gradient_bytes<T>(const Model<T>&, std::size_t, std::size_t);                    \
  template std::uint64_t device_evaluation_bytes<T>(const Model<T>&, std::size_t);
FL_INSTANTIATE(float)
FL_INSTANTIATE(double)
#undef FL_INSTANTIATE

}  // namespace fl
