#include <algorithm>

#include "clients/cuda/device_data.cuh"
#include "clients/cuda/evaluation.hpp"
#include "clients/cuda/network.hpp"
#include "clients/learning/weights_first.hpp"
#include "fl_core/memory/cuda/memory.hpp"
#include "fl_core/ops/cuda/plan.cuh"

namespace fl::cuda {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{512} << 20;  // of activations
constexpr std::size_t kMostEntries = std::size_t{1} << 30;   // of one activation: kernels count them in 32 bits

template <class T>
class Evaluation final : public DeviceEvaluation<T> {
 public:
  Evaluation(const NetworkForm& form, std::size_t P, const Dataset<T>& data)
      : network_(form), P_(P), averages_(form.running_averages), examples_(form, data) {}

  void run(const Exec& exec, const T* x, std::span<const std::uint32_t> rows, std::span<double> loss,
           std::span<std::uint32_t> correct) override {
    Workspace::Frame frame(*exec.workspace);
    std::vector<T> ordered(averages_.empty() ? 0 : P_);
    if (!averages_.empty()) put_in_order_of_layers<T>(averages_, P_, x, ordered.data());
    const T* w = upload(exec, std::span<const T>(averages_.empty() ? x : ordered.data(), P_), frame);
    const std::uint32_t* row = upload(exec, rows, frame);
    auto* loss_there = frame.take<double>(rows.size());
    auto* correct_there = frame.take<std::uint32_t>(rows.size());
    const std::size_t piece = std::min(rows.size(), largest_piece());
    const auto tape = network_.open_forward(frame, piece * examples_.per_row());
    for (std::size_t first = 0; first < rows.size(); first += piece) {
      const std::size_t places = std::min(piece, rows.size() - first);
      const LayerPass pass{.exec = exec, .clients = 1, .B = places * examples_.per_row(), .training = false};
      examples_.make(exec, row + first, 1, places, nullptr, 0, tape.activation[0]);
      const T* z = network_.forward(pass, {w, 0}, tape);
      examples_.losses(exec, row + first, places, z, loss_there + first, correct_there + first);
    }
    ::fl::copy_bytes(loss.data(), Device::cpu, loss_there, Device::cuda, loss.size_bytes(), exec.stream);
    ::fl::copy_bytes(correct.data(), Device::cpu, correct_there, Device::cuda, correct.size_bytes(), exec.stream);
  }

 private:
  [[nodiscard]] std::size_t largest_piece() const {
    const std::size_t entries = network_.entries_per_example() * examples_.per_row();
    return std::max<std::size_t>(1, std::min(kPieceBytes / (entries * sizeof(T)), kMostEntries / entries));
  }
  DeviceNetwork<T> network_;
  std::size_t P_;
  std::vector<ParameterRange> averages_;
  DeviceExamples<T> examples_;
};

}  // namespace

template <class T>
std::unique_ptr<DeviceEvaluation<T>> make_evaluation(const NetworkForm& form, std::size_t P, const Dataset<T>& data) {
  return std::make_unique<Evaluation<T>>(form, P, data);
}
template std::unique_ptr<DeviceEvaluation<float>> make_evaluation(const NetworkForm&, std::size_t, const Dataset<float>&);
template std::unique_ptr<DeviceEvaluation<double>> make_evaluation(const NetworkForm&, std::size_t, const Dataset<double>&);

}  // namespace fl::cuda
