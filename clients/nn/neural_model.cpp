#include "clients/nn/neural_model.hpp"

#include <algorithm>

#include "fl_core/config/key_error.hpp"
#include "fl_core/config/stopping.hpp"
#include "fl_core/data/image_change.hpp"

namespace fl::nn {

namespace {

constexpr std::size_t kPieceEntries = 1 << 17;  // of the largest activation; more leaves the second-level cache
constexpr std::size_t kLeastPiece = 8;

// Whether the layers begin with one that multiplies features by weights, without an embedding anywhere.
bool reads_numbers(const std::vector<std::string>& layers) {
  const auto embeds = [](const std::string& layer) { return layer.find("embedding") != std::string::npos; };
  if (layers.empty() || std::ranges::any_of(layers, embeds)) return false;
  return layers.front().starts_with("dense") || layers.front().starts_with("flatten");
}

}  // namespace

template <class T>
void NeuralModel<T>::bind(const Dataset<T>& data) {
  const auto refuse = [&data](const std::string& why) { throw ConfigError("data set \"" + data.name + "\" " + why); };
  if (data.num_rows == 0 || data.num_features == 0) refuse("has no rows or no features");
  const Shape input = data.shape.empty() ? Shape{{data.num_features}} : Shape{data.shape};
  DataNames names{{"features", static_cast<std::int64_t>(data.num_features)}};
  const auto name = [&names](const char* word, std::size_t number) {
    if (number > 0) names[word] = static_cast<std::int64_t>(number);
  };
  name("classes", data.num_classes);
  name("vocabulary", data.vocabulary.size);
  name("users", data.vocabulary.num_users);
  name("items", data.num_items());
  if (loss_ == Loss::softmax_cross_entropy && data.num_classes < 2)
    refuse("has " + std::to_string(data.num_classes) + " classes; softmax cross-entropy needs at least two");
  const bool has_targets = !data.target.empty() || (loss_ == Loss::logistic && data.num_classes == 2);
  if (loss_ != Loss::softmax_cross_entropy && !has_targets) refuse("has no targets (data.labels = \"target\")");
  if (loss_ != Loss::softmax_cross_entropy && data.labels_per_row() > 1)
    refuse("has a label at every position, which softmax cross-entropy alone takes");
  if (data.vocabulary.size > 0 && data.vocabulary.num_users == 0 && reads_numbers(texts_))
    throw key_error(key_, "data set \"" + data.name + "\" is text, whose features are the numbers of characters or words; \"" +
                              texts_.front() +
                              "\" would take them for quantities: begin with \"embedding(vocabulary, 8)\", or use kind = \"char_lstm\"");
  try {
    network_ = Network<T>(texts_, input, names);
  } catch (const ConfigError& error) {
    throw key_error(key_, error.what());
  }
  if (network_.size() == 0) throw key_error("model.layers", "no layer has a parameter");
  check_output(data);
  running_averages_ = running_averages_of({network_.tensors()});
  data_ = &data;
  this->cost_ = stated_cost(data.labels_per_row());
}

namespace {

// Returns the number of weights before entry `end` of the layers' order: their order in the model, where running averages are last.
std::size_t weights_before(std::span<const ParameterRange> running_averages, std::size_t end) {
  std::size_t averages = 0;
  for (const ParameterRange& range : running_averages)
    if (range.begin < end) averages += std::min(range.end, end) - range.begin;
  return end - averages;
}

// Returns the cost of a loss for one label and C outputs: values in the forward pass, and the derivatives in the backward pass.
template <class T>
StretchCost cost_of_loss(Loss loss, double C) {
  const double functions = loss == Loss::squared_error ? 0 : kFunctionOperations;
  const double values = loss == Loss::softmax_cross_entropy ? C * (functions + 3) + functions : C * (2 * functions + 3);
  return {.begin = 0, .end = 0, .forward = {.row = work_on<T>(values, 2 * C)}, .backward = {.row = work_on<T>(2 * C, 2 * C)}};
}

}  // namespace

template <class T>
std::optional<ModelCost> NeuralModel<T>::stated_cost(std::size_t labels_per_row) const {
  std::optional<std::vector<StretchCost>> stretches = network_.stretches();
  if (!stretches) return std::nullopt;
  const auto labels = static_cast<double>(loss_ == Loss::softmax_cross_entropy ? labels_per_row : 1);
  StretchCost loss = cost_of_loss<T>(loss_, static_cast<double>(network_.output().size()) / labels);
  loss.forward.row = labels * loss.forward.row;
  loss.backward.row = labels * loss.backward.row;
  loss.begin = loss.end = network_.size();
  stretches->front().forward.row += work_on<T>(0, 2 * static_cast<double>(network_.input().size()));  // examples are gathered
  stretches->push_back(loss);
  for (StretchCost& stretch : *stretches) {
    stretch.begin = weights_before(running_averages_, stretch.begin);
    stretch.end = weights_before(running_averages_, stretch.end);
    stretch.forward.row = static_cast<double>(examples_per_row_) * stretch.forward.row;
    stretch.backward.row = static_cast<double>(examples_per_row_) * stretch.backward.row;
  }
  return ModelCost{std::move(*stretches)};
}

template <class T>
void NeuralModel<T>::check_output(const Dataset<T>& data) const {
  const Shape& output = network_.output();
  const std::size_t L = data.labels_per_row(), C = data.num_classes;
  if (loss_ == Loss::logistic && output.size() != 1)
    throw key_error("model.layers", "the logistic loss needs one output, the last layer has " + std::to_string(output.size()));
  if (loss_ != Loss::softmax_cross_entropy) return;
  if (L > 1 && output != Shape{{L, C}})
    throw key_error("model.layers", "every one of " + std::to_string(L) + " positions has a label of " + std::to_string(C) +
                                        " classes, the last layer gives " + output.text() +
                                        "; let \"dense(classes)\" follow a layer that keeps positions");
  if (output.size() != L * C)
    throw key_error("model.layers", "the last layer has " + std::to_string(output.size()) + " outputs, the data " + std::to_string(C) +
                                        " classes; end with \"dense(classes)\"");
}

template <class T>
std::optional<NetworkForm> NeuralModel<T>::form_of_layers() const {
  std::optional<NetworkForm> form = network_.as_form();
  if (!form) return std::nullopt;
  form->loss = loss_ == Loss::softmax_cross_entropy ? NetworkForm::Loss::softmax
               : loss_ == Loss::logistic            ? NetworkForm::Loss::logistic
                                                    : NetworkForm::Loss::squared;
  form->running_averages = running_averages_;
  form->takes_whole_minibatches = takes_whole_minibatches();
  return form;
}

template <class T>
void NeuralModel<T>::initial(std::uint64_t seed, T* x) const {
  RandomSequence random(seed, Purpose::initial_model);
  std::vector<T> w(network_.size());
  network_.initial(random, w.data());
  put_weights_first<T>(running_averages_, w.size(), w.data(), x);
}

template <class T>
std::size_t NeuralModel<T>::piece_size() const {
  return std::clamp(kPieceEntries / (network_.largest() * examples_per_row_), kLeastPiece, kLargestPiece);
}

template <class T>
std::size_t NeuralModel<T>::gradient_piece(std::size_t rows, bool is_full) const {
  return takes_whole_minibatches() ? rows : std::min(rows, is_full ? piece_size() : kLargestPiece);
}

template <class T>
std::size_t NeuralModel<T>::least_rows() const {
  const std::size_t E = examples_per_row_;
  return (network_.least_examples() + E - 1) / E;
}

template <class T>
MinibatchNeeds NeuralModel<T>::minibatch_needs(std::size_t rows) const {
  const std::size_t examples = gradient_piece(rows, false) * examples_per_row_;
  return {least_rows(), takes_whole_minibatches(), std::uint64_t{network_.room_size(examples)} * sizeof(T)};
}

template <class T>
void NeuralModel<T>::check_rows(std::size_t rows) const {
  if (rows > 0 && rows < least_rows())
    throw key_error("local.batch", "a minibatch of " + std::to_string(rows) +
                                       " row gives batch_norm one value per channel, which has no variance; it needs " +
                                       std::to_string(least_rows()) + " rows or more");
}

template <class T>
void NeuralModel<T>::make_examples(const Dataset<T>& data, std::span<const std::uint32_t> rows, const RandomStream* random,
                                   std::size_t first, T* in, double* target) const {
  if (random != nullptr)
    data.gather_changed(rows, numbers_of_images(*random), first, in);
  else
    data.gather(rows, in);
  for (std::size_t r = 0; target != nullptr && r < rows.size(); ++r)
    target[r] = data.target.empty() ? static_cast<double>(data.label[rows[r]]) : data.target[rows[r]];
}

template <class T>
double* NeuralModel<T>::room_for_targets(Workspace::Frame& frame, std::size_t rows) const {
  return loss_ == Loss::softmax_cross_entropy ? nullptr : frame.take<double>(rows * examples_per_row_);
}

template <class T>
double NeuralModel<T>::loss_of(Workspace::Frame& frame, const Dataset<T>& data, std::span<const std::uint32_t> rows, const double* target,
                               const T* z, double scale, T* d_z, std::uint64_t* correct) const {
  if (loss_ != Loss::softmax_cross_entropy) {
    const std::size_t E = examples_per_row_, B = rows.size() * E;
    const double share = 1 / static_cast<double>(E);
    return share * (loss_ == Loss::squared_error ? squared_error(B, network_.output().size(), z, target, scale * share, d_z)
                                                 : logistic(B, z, target, scale * share, d_z, correct));
  }
  const std::size_t L = data.labels_per_row(), C = network_.output().size() / L;
  const double share = 1 / static_cast<double>(L);
  auto* label = frame.take<std::int32_t>(rows.size() * L);
  data.gather_labels(rows, label);
  return share * softmax_cross_entropy(rows.size() * L, C, z, label, scale * share, d_z, frame.take<T>(C), correct);
}

template <class T>
double NeuralModel<T>::one_gradient(const Exec& exec, const T* x, std::span<const std::uint32_t> rows, const RandomStream* random,
                                    T* gradient) const {
  check_rows(rows.size());
  Workspace::Frame frame(*exec.workspace);
  const std::size_t most = gradient_piece(rows.size(), random == nullptr);
  const std::size_t E = examples_per_row_;
  const Tape<T> tape = network_.open(frame, most * E);
  const double scale = share_of(rows.size());
  double total = 0;
  if (rows.empty()) std::fill_n(gradient, network_.size(), T(0));
  for (std::size_t first = 0; first < rows.size(); first += most) {
    check_for_stop();
    const std::span<const std::uint32_t> piece = rows.subspan(first, std::min(most, rows.size() - first));
    Workspace::Frame inner(*exec.workspace);
    Pass pass{.exec = exec, .B = piece.size() * E, .training = true, .accumulate = first > 0, .drops = random != nullptr};
    pass.first = first * E;
    if (random != nullptr) pass.random = *random;
    double* target = room_for_targets(inner, piece.size());
    make_examples(*data_, piece, random, first, tape.activation[0], target);
    const T* z = network_.forward(pass, x, tape);
    total += loss_of(inner, *data_, piece, target, z, scale, network_.slope_of_output(tape), nullptr);
    network_.backward(pass, x, tape, nullptr, gradient);
  }
  const Regulariser& reg = this->regulariser_;
  if (reg.l2 != 0 || reg.nonconvex != 0) {
    for_each_run_outside(running_averages_, 0, network_.size(), [&](std::size_t begin, std::size_t end) {
      for (std::size_t j = begin; j < end; ++j) gradient[j] += static_cast<T>(reg.derivative(static_cast<double>(x[j])));
    });
  }
  return total;
}

template <class T>
const T* NeuralModel<T>::in_order_of_layers(Workspace::Frame& frame, const T* x) const {
  if (running_averages_.empty()) return x;
  T* w = frame.take<T>(network_.size());
  put_in_order_of_layers<T>(running_averages_, network_.size(), x, w);
  return w;
}

template <class T>
double NeuralModel<T>::gradient_at(const Exec& exec, const T* x, std::span<const std::uint32_t> rows, const RandomStream* random,
                                   T* gradient) const {
  Workspace::Frame frame(*exec.workspace);
  const std::size_t P = network_.size();
  T* g = running_averages_.empty() ? gradient : frame.take<T>(P);
  const double loss_sum = one_gradient(exec, in_order_of_layers(frame, x), rows, random, g);
  if (g != gradient) put_weights_first<T>(running_averages_, P, g, gradient);
  return loss_sum;
}

// Running averages are no part of the objective: their "gradient" is for clients' work alone.
template <class T>
void NeuralModel<T>::clear_running_averages_of(T* gradient) const {
  const std::size_t S = num_entries(running_averages_);
  std::fill_n(gradient + (network_.size() - S), S, T(0));
}

template <class T>
void NeuralModel<T>::gradient(const Exec& exec, BatchView<const T> x, std::span<const std::span<const std::uint32_t>> rows,
                              BatchView<T> gradient, double* loss) const {
  for (std::size_t k = 0; k < rows.size(); ++k) {
    const double loss_sum = gradient_at(exec, x.row(k), rows[k], nullptr, gradient.row(k));
    if (loss != nullptr) loss[k] = value_of(loss_sum, rows[k].size(), x.row(k));
    clear_running_averages_of(gradient.row(k));
  }
}

template <class T>
void NeuralModel<T>::stochastic_gradient(const Exec& exec, BatchView<const T> x, const Minibatch& batch, BatchView<T> gradient,
                                         double* loss) const {
  for (std::size_t k = 0; k < batch.rows.size(); ++k) {
    const RandomStream* random = batch.random.empty() ? nullptr : &batch.random[k];
    const double loss_sum = gradient_at(exec, x.row(k), batch.rows[k], random, gradient.row(k));
    if (loss != nullptr) loss[k] = value_of(loss_sum, batch.rows[k].size(), x.row(k));
  }
}

// A network with running statistics is evaluated with them, but its gradient takes those of the rows, so that their losses differ.
template <class T>
double NeuralModel<T>::loss_and_gradient(const Exec& exec, const T* x, std::span<const std::uint32_t> rows, T* gradient) const {
  const double sum = gradient_at(exec, x, rows, nullptr, gradient);
  clear_running_averages_of(gradient);
  return running_averages_.empty() ? sum : loss_sum(exec, x, *data_, rows, nullptr);
}

// Calls use(frame, piece, tape) for pieces of rows of `data`, in order.
template <class T>
template <class Use>
void NeuralModel<T>::for_each_piece(const Exec& exec, const Dataset<T>& data, std::span<const std::uint32_t> rows, std::size_t examples,
                                    const Use& use) const {
  if (data.num_features != data_->num_features)
    throw ConfigError("data set \"" + data.name + "\" has " + std::to_string(data.num_features) + " features, the model has " +
                      std::to_string(data_->num_features));
  Workspace::Frame frame(*exec.workspace);
  const std::size_t most = piece_size();
  const Tape<T> tape = network_.open_forward(frame, std::min(most, rows.size()) * examples);
  for (std::size_t first = 0; first < rows.size(); first += most) {
    check_for_stop();
    Workspace::Frame inner(*exec.workspace);
    use(inner, first, rows.subspan(first, std::min(most, rows.size() - first)), tape);
  }
}

template <class T>
double NeuralModel<T>::loss_sum(const Exec& exec, const T* x, const Dataset<T>& data, std::span<const std::uint32_t> rows,
                                std::uint64_t* correct) const {
  if (correct != nullptr) *correct = 0;
  double total = 0;
  const std::size_t E = examples_per_row_;
  Workspace::Frame outer(*exec.workspace);
  const T* w = in_order_of_layers(outer, x);
  for_each_piece(exec, data, rows, E, [&](Workspace::Frame& frame, std::size_t, std::span<const std::uint32_t> piece, const Tape<T>& tape) {
    double* target = room_for_targets(frame, piece.size());
    make_examples(data, piece, nullptr, 0, tape.activation[0], target);
    const T* z = network_.forward({.exec = exec, .B = piece.size() * E, .training = false}, w, tape);
    total += loss_of(frame, data, piece, target, z, 0, nullptr, correct);
  });
  return total;
}

template <class T>
void NeuralModel<T>::outputs(const Exec& exec, const T* x, const Dataset<T>& data, std::span<const std::uint32_t> rows, T* z) const {
  const std::size_t C = network_.output().size();
  Workspace::Frame outer(*exec.workspace);
  const T* w = in_order_of_layers(outer, x);
  for_each_piece(exec, data, rows, 1, [&](Workspace::Frame&, std::size_t first, std::span<const std::uint32_t> piece, const Tape<T>& tape) {
    data.gather(piece, tape.activation[0]);
    const T* from = network_.forward({.exec = exec, .B = piece.size(), .training = false}, w, tape);
    std::copy_n(from, piece.size() * C, z + first * C);
  });
}

template class NeuralModel<float>;
template class NeuralModel<double>;

}  // namespace fl::nn
