#include "clients/learning/device_room.hpp"

#include <algorithm>

namespace fl {

namespace {

constexpr std::size_t kMostRows = 512;                       // of a client in one piece
constexpr std::size_t kWaveBytes = std::size_t{2} << 30;     // of activations and weights
constexpr std::size_t kPieceBytes = std::size_t{512} << 20;  // of activations
constexpr std::size_t kMostSparseFeatures = 4096;
constexpr std::size_t kBytesPerRow = 16;  // row number, loss, and whether the row is correct

std::size_t widest_of(const NetworkForm& form) {
  std::size_t widest = form.layers.front().inputs;
  for (const NetworkForm::Layer& layer : form.layers) widest = std::max(widest, layer.outputs);
  return widest;
}

// Entries per example that layers keep for the backward pass, outputs included, and their temporary entries.
struct NetworkRoom {
  std::size_t kept = 0, room = 0;
};

NetworkRoom room_of(const NetworkForm& form) {
  NetworkRoom all;
  for (const NetworkForm::Layer& layer : form.layers) {
    const LayerMemory& memory = layer.form.memory;
    if (!memory.writes_output) continue;
    all.kept += layer.outputs + memory.kept;  // also for functions that work in place
    std::size_t inside = 0;
    for (const NetworkForm& network : layer.form.networks) {
      const NetworkRoom own = room_of(network);
      all.kept += own.kept;
      inside = std::max(inside, own.room);
    }
    all.room = std::max(all.room, memory.room + inside);
  }
  all.room += 2 * widest_of(form);
  return all;
}

// Returns the entries of a pass over an example.
std::size_t entries_per_example(const NetworkForm& form) {
  const NetworkRoom room = room_of(form);
  return form.layers.front().inputs + room.kept + room.room;
}

// Returns the entries of an example's largest matrix of windows, if a layer lays windows out.
std::size_t window_entries(const NetworkForm& form) {
  std::size_t most = 0;
  for (const NetworkForm::Layer& layer : form.layers) {
    most = std::max(most, layer.form.memory.windows);
    for (const NetworkForm& network : layer.form.networks) most = std::max(most, window_entries(network));
  }
  return most;
}

// Returns the entries of a product [m,d] [d,n] in parts.
std::size_t entries_in_parts(std::size_t m, std::size_t n, std::size_t d) {
  const std::size_t parts = (d + kSumPart - 1) / kSumPart;
  return parts < 2 ? 0 : m * n * parts;
}

// Returns the entries of the largest product in parts, for a client with `examples` examples: forward, by weights and by input.
std::size_t partial_entries(const NetworkForm& form, std::size_t examples) {
  std::size_t most = 0;
  for (const NetworkForm::Layer& layer : form.layers) {
    for (const auto& [own_rows, outputs, inputs] : layer.form.memory.products) {
      const std::size_t rows = examples * own_rows;
      most = std::max({most, entries_in_parts(rows, outputs, inputs), entries_in_parts(outputs, inputs, rows),
                       entries_in_parts(rows, inputs, outputs)});
    }
    for (const NetworkForm& network : layer.form.networks) most = std::max(most, partial_entries(network, examples));
  }
  return most;
}

// `vectors` are y, g and those of the optimizer.
template <class T>
std::uint64_t bytes_of_wave(const NetworkForm& form, std::size_t P, std::size_t clients, std::size_t rows, std::size_t vectors = 3) {
  const std::size_t examples = (form.takes_whole_minibatches ? rows : std::min(rows, kMostRows)) * (1 + form.negatives);
  const std::size_t per_client = (examples * entries_per_example(form) + vectors * P) * sizeof(T) + 1;
  return std::min(kWaveBytes, clients * per_client) + per_client + product_bytes(form, clients, examples, sizeof(T));
}

template <class T>
std::optional<NetworkForm> form_of(const Model<T>& model) {
  const Dataset<T>* data = model.training_data();
  return data != nullptr && device_data_bytes(*data) > 0 ? model.as_form() : std::nullopt;
}

}  // namespace

std::uint64_t product_bytes(const NetworkForm& form, std::size_t clients, std::size_t examples, std::size_t number) {
  const std::uint64_t all = std::uint64_t{clients} * number;
  return std::min<std::uint64_t>(kMostLaidOutBytes, all * examples * window_entries(form)) +
         std::min<std::uint64_t>(kMostPartialBytes, all * partial_entries(form, examples));
}

template <class T>
std::uint64_t device_data_bytes(const Dataset<T>& data) {
  if (data.label.empty() && data.target.empty()) return 0;
  if (data.is_sparse && data.num_features > kMostSparseFeatures) return 0;
  const std::uint64_t rows = data.has_pixels()          ? data.images.pixels.size()
                             : data.vocabulary.size > 0 ? data.tokens.size() * sizeof(std::int32_t)
                             : data.is_sparse           ? data.sparse.row_begin.size() * sizeof(std::uint64_t) +
                                                    data.sparse.column.size() * sizeof(std::uint32_t) + data.sparse.value.size() * sizeof(T)
                                              : data.dense.size() * sizeof(T);
  return rows + data.label.size() * sizeof(std::int32_t) + data.target.size() * sizeof(double);
}

template <class T>
std::uint64_t device_training_bytes(const LocalUpdate<T>& local_update, const GradientOracle<T>& oracle, std::size_t clients) {
  const std::optional<NetworkForm> form = local_update.descent() ? form_of(oracle.model()) : std::nullopt;
  if (!form) return 0;
  const std::size_t vectors = local_update.descent()->by_optimizer ? 2 + local_update.optimizer()->num_states() : 3;
  return bytes_of_wave<T>(*form, oracle.model().layers().size(), clients, oracle.most_rows(), vectors);
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
  const std::size_t per_row = (1 + form->negatives) * (2 * widest_of(*form) + room_of(*form).room) * sizeof(T);
  return model.layers().size() * sizeof(T) + rows * kBytesPerRow + std::max(per_row, std::min(rows * per_row, kPieceBytes)) +
         product_bytes(*form, 1, rows, sizeof(T));
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
