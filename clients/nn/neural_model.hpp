// A neural network as a client model: layers, a loss, and the gradients of clients' minibatches.
//
// f_i(x) = mean over client i's rows of loss(network(x; row)) + regulariser(x). Rows are computed in pieces that stay in cache, and a
// minibatch in pieces of kLargestPiece rows. If batch normalisation couples the rows of a minibatch, all of them are one piece, whatever
// their number; the full gradient then treats all the client's rows as one minibatch. A full gradient has no randomness (dropout off,
// images not augmented). A stochastic gradient draws its dropout from (seed, client, round, step, layer) and the changes to its images from
// (seed, client, round, step, example).
//
// A row may be several examples (one observed, others drawn), and an example may have a label at each of its positions: the loss of a row
// is the mean over all of them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "clients/learning/loss_with_gradient.hpp"
#include "clients/learning/model.hpp"
#include "clients/learning/weights_first.hpp"
#include "clients/nn/losses.hpp"
#include "clients/nn/network.hpp"

namespace fl::nn {

inline constexpr std::size_t kLargestPiece = 512;
static_assert(kLargestPiece % 4 == 0, "Pass::first is a multiple of 4");

// The losses along with the gradient, from NeuralModel::loss_and_gradient.
template <class T, class Self>
class NeuralPass : public LossWithGradient<T> {
 public:
  double gradient_with_loss_sum(const Exec& exec, const T* x, std::span<const std::uint32_t> rows, T* gradient) const final {
    return static_cast<const Self&>(*this).loss_and_gradient(exec, x, rows, gradient);
  }
};

template <class T>
class FL_API NeuralModel : public Model<T>, public NeuralPass<T, NeuralModel<T>> {
 public:
  // `layers` have the form of layer_text.hpp; the last one has the outputs that the loss needs (`dense(classes)` before
  // softmax_cross_entropy). `key` is the option of the model that errors about its layers name; "" = the model itself.
  NeuralModel(std::vector<std::string> layers, Loss loss, std::string key = {})
      : texts_(std::move(layers)), loss_(loss), key_(std::move(key)) {}

  void bind(const Dataset<T>& data) override;
  [[nodiscard]] LayerTable layers() const override { return weights_first(network_.tensors()); }
  void initial(std::uint64_t seed, T* x) const override;
  [[nodiscard]] ModelTraits traits() const override { return {.starts_at_random = true, .takes_pixels = true, .takes_tokens = true}; }
  [[nodiscard]] std::optional<NetworkForm> as_form() const override { return examples_per_row_ == 1 ? form_of_layers() : std::nullopt; }
  [[nodiscard]] MinibatchNeeds minibatch_needs(std::size_t rows) const override;

  void gradient(const Exec& exec, BatchView<const T> x, std::span<const std::span<const std::uint32_t>> rows, BatchView<T> gradient,
                double* loss) const override;
  void stochastic_gradient(const Exec& exec, BatchView<const T> x, const Minibatch& batch, BatchView<T> gradient,
                           double* loss) const override;
  [[nodiscard]] double loss_and_gradient(const Exec& exec, const T* x, std::span<const std::uint32_t> rows, T* gradient) const;
  [[nodiscard]] double loss_sum(const Exec& exec, const T* x, const Dataset<T>& data, std::span<const std::uint32_t> rows,
                                std::uint64_t* correct) const override;
  [[nodiscard]] std::size_t num_outputs() const override { return network_.output().size(); }
  void outputs(const Exec& exec, const T* x, const Dataset<T>& data, std::span<const std::uint32_t> rows, T* z) const override;

 protected:
  // Returns its layers and its loss for a GPU, if all of them have such a form.
  [[nodiscard]] std::optional<NetworkForm> form_of_layers() const;
  // Replaces the layers of the constructor by layers that depend on the data. Call before NeuralModel::bind.
  void set_layers(std::vector<std::string> layers) { texts_ = std::move(layers); }
  // Sets the number of examples per row: 1 unless make_examples() makes others.
  void set_examples_per_row(std::size_t examples) { examples_per_row_ = examples; }
  // Makes the examples of `rows`: in [rows,examples,n] and, unless null, the loss's targets, target [rows,examples]. Without random numbers
  // they depend on the rows alone; with those of a minibatch, `first` is the position of rows[0] in it.
  virtual void make_examples(const Dataset<T>& data, std::span<const std::uint32_t> rows, const RandomStream* random, std::size_t first,
                             T* in, double* target) const;

 private:
  void check_output(const Dataset<T>& data) const;
  // Returns the cost of its layers and its loss, unless a layer states none.
  [[nodiscard]] std::optional<ModelCost> stated_cost(std::size_t labels_per_row) const;

  template <class Use>
  void for_each_piece(const Exec& exec, const Dataset<T>& data, std::span<const std::uint32_t> rows, std::size_t examples,
                      const Use& use) const;
  // Returns x itself, or x in the layers' order if that order differs.
  [[nodiscard]] const T* in_order_of_layers(Workspace::Frame& frame, const T* x) const;
  // Computes the gradient at x and returns the sum of the rows' losses; x and gradient are in the layers' order.
  double one_gradient(const Exec& exec, const T* x, std::span<const std::uint32_t> rows, const RandomStream* random, T* gradient) const;
  // Does the same with both in the model's order.
  double gradient_at(const Exec& exec, const T* x, std::span<const std::uint32_t> rows, const RandomStream* random, T* gradient) const;
  // Returns f at x from the sum of the rows' losses.
  [[nodiscard]] double value_of(double loss_sum, std::size_t rows, const T* x) const {
    return loss_sum * share_of(rows) + this->regulariser(x);
  }
  [[nodiscard]] static double share_of(std::size_t rows) { return rows == 0 ? 0 : 1 / static_cast<double>(rows); }
  void clear_running_averages_of(T* gradient) const;
  // Returns the sum of the rows' losses from the last activations z, and computes `scale` times its derivative.
  double loss_of(Workspace::Frame& frame, const Dataset<T>& data, std::span<const std::uint32_t> rows, const double* target, const T* z,
                 double scale, T* d_z, std::uint64_t* correct) const;
  [[nodiscard]] std::size_t piece_size() const;
  // Returns how many rows of a gradient are computed at once.
  [[nodiscard]] std::size_t gradient_piece(std::size_t rows, bool is_full) const;
  [[nodiscard]] bool takes_whole_minibatches() const { return !running_averages_.empty(); }
  [[nodiscard]] std::size_t least_rows() const;
  void check_rows(std::size_t rows) const;
  [[nodiscard]] double* room_for_targets(Workspace::Frame& frame, std::size_t rows) const;

  std::vector<std::string> texts_;
  Loss loss_;
  std::string key_;
  using Model<T>::data_;
  std::size_t examples_per_row_ = 1;
  Network<T> network_;
  std::vector<ParameterRange> running_averages_;  // in the layers' order
};

extern template class NeuralModel<float>;
extern template class NeuralModel<double>;

}  // namespace fl::nn
