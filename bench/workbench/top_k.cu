// The k entries of largest magnitude in every segment (fl_core/ops/cuda/top_k.cuh) on the workbench.
//
//   bench/workbench/build.sh && build-workbench/top_k [--rows K] [--length P] [--segment ENTRIES] [--kept SHARE] [--repeats N]
#include <functional>

#include "bench/workbench/frame.cuh"
#include "fl_core/ops/cuda/top_k.cuh"

namespace {

using namespace fl;

class TopK {
 public:
  static constexpr const char* kName = "top_k";
  TopK(const workbench::Options& options, const Scope& scope) : share_(options.kept) {
    for (const Segment& segment : scope.segments) k_.push_back(workbench::kept_entries(share_, segment.size()));
  }
  void look_at(std::span<const float> /*p*/) {}
  void run(const Exec& exec, const Affine<float>& input, const Scope& scope, const StateWrite<float>& state,
           std::span<Payload<float>* const> out) const {
    cuda::top_k_rows<float>(exec, input, scope, k_, TieRule::lowest_index, kNativeWire<float>, state, out);
  }
  // Sorts by magnitude, then by position: the first of equal entries are sent.
  [[nodiscard]] std::vector<std::uint32_t> kept(std::span<const float> segment) const {
    std::vector<std::uint64_t> key(segment.size());
    for (std::size_t i = 0; i < segment.size(); ++i)
      key[i] = std::uint64_t{workbench::magnitude_bits(segment[i])} << 32 | static_cast<std::uint32_t>(~i);
    const std::size_t k = workbench::kept_entries(share_, segment.size());
    std::nth_element(key.begin(), key.begin() + static_cast<std::ptrdiff_t>(k - 1), key.end(), std::greater<>());
    std::vector<std::uint32_t> position(k);
    for (std::size_t i = 0; i < k; ++i) position[i] = ~static_cast<std::uint32_t>(key[i]);
    std::ranges::sort(position);
    return position;
  }

 private:
  double share_;
  std::vector<std::uint32_t> k_;  // [S]
};

}  // namespace

int main(int argc, char** argv) { return fl::workbench::run_program<TopK>(argc, argv); }
