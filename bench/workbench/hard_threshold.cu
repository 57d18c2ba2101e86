// The entries that reach a threshold (fl_core/ops/cuda/select.cuh) on the workbench. The threshold is the magnitude that the wanted share
// of the first row reaches.
//
//   bench/workbench/build.sh bench/workbench/hard_threshold.cu && build-workbench/hard_threshold [--rows K] [--length P] [--kept SHARE]
#include <functional>
#include <limits>

#include "bench/workbench/frame.cuh"
#include "fl_core/ops/cuda/select.cuh"

namespace {

using namespace fl;

class HardThreshold {
 public:
  static constexpr const char* kName = "hard_threshold";
  HardThreshold(const workbench::Options& options, const Scope& /*scope*/) : share_(options.kept) {}
  // A threshold of 0 would send every zero.
  void look_at(std::span<const float> p) {
    std::vector<std::uint32_t> key(p.size());
    std::ranges::transform(p, key.begin(), workbench::magnitude_bits);
    const auto kth = key.begin() + (workbench::kept_entries(share_, p.size()) - 1);
    std::nth_element(key.begin(), kth, key.end(), std::greater<>());
    threshold_ = std::max(std::bit_cast<float>(*kth), std::numeric_limits<float>::min());
  }
  void run(const Exec& exec, const Affine<float>& input, const Scope& scope, const StateWrite<float>& state,
           std::span<Payload<float>* const> out) const {
    cuda::select_rows<float>(exec, input, scope, AtLeast<float>{threshold_}, kNativeWire<float>, state, out);
  }
  [[nodiscard]] std::vector<std::uint32_t> kept(std::span<const float> segment) const {
    std::vector<std::uint32_t> position;
    for (std::size_t i = 0; i < segment.size(); ++i)
      if (std::abs(segment[i]) >= threshold_) position.push_back(static_cast<std::uint32_t>(i));
    return position;
  }

 private:
  double share_;
  float threshold_ = 0;
};

}  // namespace

int main(int argc, char** argv) { return fl::workbench::run_program<HardThreshold>(argc, argv); }
