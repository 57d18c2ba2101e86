#include "clients/nn/neural_model.hpp"

#include <algorithm>

namespace fl::nn {

namespace {

constexpr std::size_t kPieceEntries = 1 << 17;  // of the largest activation; more leaves the second-level cache
constexpr std::size_t kLeastPiece = 8;

// The numbers that images are changed with: those of a layer that no network has.
RandomStream of_images(RandomStream minibatch) {
  minibatch.step_layer |= 0xFFFF;
  return minibatch;
}

}  // namespace

template <class T>
void NeuralModel<T>::bind(const Dataset<T>& data) {
  const auto refuse = [&data](const std::string& why) { throw ConfigError("data set \"" + data.name + "\" " + why); };
  if (data.num_rows == 0 || data.num_features == 0) refuse("has no rows or no features");
  const Shape input = data.shape.empty() ? Shape{{data.num_features}} : Shape{data.shape};
  DataNames names{{"features", static_cast<std::int64_t>(data.num_features)}};
  if (data.num_classes > 0) names["classes"] = static_cast<std::int64_t>(data.num_classes);
  if (data.vocabulary > 0) names["vocabulary"] = static_cast<std::int64_t>(data.vocabulary);
  if (loss_ == Loss::softmax_cross_entropy && data.num_classes < 2)
    refuse("has " + std::to_string(data.num_classes) + " classes; softmax cross-entropy needs at least two");
  if (loss_ != Loss::softmax_cross_entropy && data.target.empty()) refuse("has no targets (data.labels = \"target\")");
  network_ = Network<T>(texts_, input, names);
  const std::size_t outputs = network_.output().size();
  if (network_.size() == 0) throw ConfigError("model.layers: no layer has a parameter");
  if (loss_ == Loss::softmax_cross_entropy && outputs != data.num_classes)
    throw ConfigError("model.layers: the last layer has " + std::to_string(outputs) + " outputs, the data " +
                      std::to_string(data.num_classes) + " classes; end with \"dense(classes)\"");
  if (loss_ == Loss::logistic && outputs != 1)
    throw ConfigError("model.layers: the logistic loss needs one output, the last layer has " + std::to_string(outputs));
  for (const Layer& tensor : network_.tensors())
    if (tensor.statistic_rate > 0) statistics_.emplace_back(tensor.begin, tensor.begin + tensor.size());
  data_ = &data;
}

template <class T>
void NeuralModel<T>::initial(std::uint64_t seed, T* x) const {
  RandomSequence random(seed, Purpose::initial_model);
  network_.initial(random, x);
}

template <class T>
std::size_t NeuralModel<T>::piece_size() const {
  return std::clamp(kPieceEntries / network_.largest(), kLeastPiece, kLargestPiece);
}

template <class T>
double NeuralModel<T>::loss_of(Workspace::Frame& frame, const Dataset<T>& data, std::span<const std::uint32_t> rows, const T* z,
                               double scale, T* d_z, std::uint64_t* correct) const {
  const std::size_t C = network_.output().size();
  if (loss_ == Loss::softmax_cross_entropy) {
    auto* label = frame.take<std::int32_t>(rows.size());
    for (std::size_t r = 0; r < rows.size(); ++r) label[r] = data.label[rows[r]];
    return softmax_cross_entropy(rows.size(), C, z, label, scale, d_z, frame.take<T>(C), correct);
  }
  auto* target = frame.take<double>(rows.size());
  for (std::size_t r = 0; r < rows.size(); ++r) target[r] = data.target[rows[r]];
  if (loss_ == Loss::squared_error) return squared_error(rows.size(), C, z, target, scale, d_z);
  return logistic(rows.size(), z, target, scale, d_z, correct);
}

template <class T>
void NeuralModel<T>::one_gradient(const Exec& exec, const T* x, std::span<const std::uint32_t> rows, const RandomStream* random,
                                  T* gradient, double* loss) const {
  Workspace::Frame frame(*exec.workspace);
  const std::size_t most = random != nullptr ? kLargestPiece : piece_size();
  const Tape<T> tape = network_.open(frame, std::min(most, rows.size()));
  const double scale = rows.empty() ? 0 : 1 / static_cast<double>(rows.size());
  double total = 0;
  if (rows.empty()) std::fill_n(gradient, network_.size(), T(0));
  for (std::size_t first = 0; first < rows.size(); first += most) {
    const std::span<const std::uint32_t> piece = rows.subspan(first, std::min(most, rows.size() - first));
    Workspace::Frame inner(*exec.workspace);
    Pass pass{.exec = exec, .B = piece.size(), .training = true, .accumulate = first > 0, .drops = random != nullptr};
    if (random != nullptr) pass.random = *random;
    if (random != nullptr)
      data_->gather_changed(piece, of_images(*random), first, tape.activation[0]);
    else
      data_->gather(piece, tape.activation[0]);
    const T* z = network_.forward(pass, x, tape);
    total += loss_of(inner, *data_, piece, z, scale, network_.slope_of_output(tape), nullptr);
    network_.backward(pass, x, tape, nullptr, gradient);
  }
  // Statistics are no part of the objective: their "gradient" is for local steps alone, and the regulariser leaves them out.
  if (random == nullptr)
    for (const auto& [begin, end] : statistics_) std::fill(gradient + begin, gradient + end, T(0));
  const Regulariser& reg = this->regulariser_;
  if (reg.l2 != 0 || reg.nonconvex != 0)
    for (std::size_t j = 0; j < network_.size(); ++j) gradient[j] += static_cast<T>(reg.derivative(static_cast<double>(x[j])));
  if (loss != nullptr) *loss = total * scale + reg.value(x, network_.size());
}

template <class T>
void NeuralModel<T>::gradient(const Exec& exec, BatchView<const T> x, std::span<const std::span<const std::uint32_t>> rows,
                              BatchView<T> gradient, double* loss) const {
  for (std::size_t k = 0; k < rows.size(); ++k)
    one_gradient(exec, x.row(k), rows[k], nullptr, gradient.row(k), loss == nullptr ? nullptr : loss + k);
}

template <class T>
void NeuralModel<T>::stochastic_gradient(const Exec& exec, BatchView<const T> x, const Minibatch& batch, BatchView<T> gradient,
                                         double* loss) const {
  for (std::size_t k = 0; k < batch.rows.size(); ++k)
    one_gradient(exec, x.row(k), batch.rows[k], &batch.random[k], gradient.row(k), loss == nullptr ? nullptr : loss + k);
}

template <class T>
double NeuralModel<T>::loss_sum(const Exec& exec, const T* x, const Dataset<T>& data, std::span<const std::uint32_t> rows,
                                std::uint64_t* correct) const {
  if (data.num_features != data_->num_features)
    throw ConfigError("data set \"" + data.name + "\" has " + std::to_string(data.num_features) + " features, the model has " +
                      std::to_string(data_->num_features));
  Workspace::Frame frame(*exec.workspace);
  const std::size_t most = piece_size();
  const Tape<T> tape = network_.open_forward(frame, std::min(most, rows.size()));
  if (correct != nullptr) *correct = 0;
  double total = 0;
  for (std::size_t first = 0; first < rows.size(); first += most) {
    const std::span<const std::uint32_t> piece = rows.subspan(first, std::min(most, rows.size() - first));
    Workspace::Frame inner(*exec.workspace);
    data.gather(piece, tape.activation[0]);
    const T* z = network_.forward({.exec = exec, .B = piece.size(), .training = false}, x, tape);
    total += loss_of(inner, data, piece, z, 0, nullptr, correct);
  }
  return total;
}

template class NeuralModel<float>;
template class NeuralModel<double>;

}  // namespace fl::nn
