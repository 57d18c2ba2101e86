#include <algorithm>
#include <bit>
#include <limits>
#include <vector>

#include "compressors/codec/cuda/tally.hpp"
#include "compressors/codec/cuda/tally_kernels.cuh"
#include "compressors/codec/level_coder.hpp"
#include "compressors/codec/positions.hpp"
#include "fl_core/message/payload_segments.hpp"
#include "fl_core/message/small_float.hpp"
#include "fl_core/ops/cuda/check.cuh"
#include "fl_core/ops/cuda/plan.cuh"

namespace fl::codec::cuda {
namespace {

using fl::cuda::blocks_for;
using fl::cuda::Launch;
using fl::cuda::upload;

constexpr std::size_t kLevelsPerPiece = std::size_t{1} << 16, kNumbersPerPiece = std::size_t{1} << 14;

// Returns the bits of the piece's positions in the shortest code.
[[nodiscard]] std::uint64_t bits_of_piece(const PositionPiece& piece, const GapCosts& sums) {
  const Segment segment{.begin = piece.begin, .end = piece.end, .rows = piece.end - piece.begin, .cols = 1};
  if (piece.num_kept == segment.size()) return gamma_bits(piece.num_kept + 1);
  PositionCosts costs;
  costs.of(PositionCode::rice) = sums.rice;
  costs.of(PositionCode::gamma) = 2 * sums.exponents + piece.count;
  if (piece.count >= kBlocksFrom) costs.of(PositionCode::blocks) = sums.blocks;
  if (piece.divisor != 0) {
    costs.of(PositionCode::golomb) = gamma_bits(piece.divisor) + sums.zeros + sums.long_words +
                                     piece.count * static_cast<std::uint64_t>(std::bit_width(piece.divisor - 1));
  }
  add_plain_costs(piece.count, segment, costs);
  return shortest_plan(piece.num_kept, costs).bits;
}

template <class U>
[[nodiscard]] std::vector<U> download(const Exec& exec, const U* from, std::size_t count) {
  std::vector<U> there(count);
  ::fl::copy_bytes(there.data(), Device::cpu, from, Device::cuda, count * sizeof(U), exec.stream);
  return there;
}

template <class U>
[[nodiscard]] bool is_reachable(const Buffer<U>& buffer) {
  return !buffer.empty() && buffer.device() != Device::cpu;
}

// Returns a magnitude from its bits, or infinity for NaN and infinity.
template <class T>
[[nodiscard]] double magnitude_of(std::uint64_t bits) {
  using Bits = decltype(small_float_detail::bits(T(0)));
  constexpr T kInfinity = std::numeric_limits<T>::infinity();
  return bits < small_float_detail::bits(kInfinity) ? static_cast<double>(small_float_detail::from_bits(static_cast<Bits>(bits)))
                                                    : std::numeric_limits<double>::infinity();
}

template <class T>
class Counter final : public DeviceTally<T> {
 public:
  Counter() {
    exec_.device = Device::cuda;
    exec_.stream = stream_.get();
    exec_.workspace = &workspace_;
  }

  void count(std::span<Channel<T>> messages) override {
    for (Channel<T>& message : messages) message.tally = {};
    find_magnitudes(messages);
    count_levels(messages);
    count_positions(messages);
  }

 private:
  // The position of one message's tables; its tally is filled when the tables are on the host.
  struct Counted {
    std::size_t message, first, size;
  };

  // Finds the largest magnitudes. Each message has three slots: values, scales and excluded values.
  void find_magnitudes(std::span<Channel<T>> messages) {
    constexpr std::size_t kKinds = 3;
    std::vector<NumberPiece<T>> pieces;
    std::vector<std::size_t> counted;
    for (std::size_t m = 0; m < messages.size(); ++m) {
      const Payload<T>& message = *messages[m].payload;
      const Buffer<T>* const numbers[kKinds] = {&message.value, &message.scale, &message.excluded};
      const bool there = std::ranges::all_of(numbers, [](const Buffer<T>* n) { return n->empty() || is_reachable(*n); });
      if (message.silent || message.rest != nullptr || !there) continue;
      for (std::size_t kind = 0; kind < kKinds; ++kind)
        for (std::size_t first = 0; first < numbers[kind]->size(); first += kNumbersPerPiece)
          pieces.push_back(
              {numbers[kind]->data() + first, std::min(kNumbersPerPiece, numbers[kind]->size() - first), counted.size() * kKinds + kind});
      counted.push_back(m);
    }
    if (pieces.empty()) return;
    Workspace::Frame frame(workspace_);
    auto* largest = frame.take<unsigned long long>(counted.size() * kKinds);
    FL_CUDA_CHECK(cudaMemsetAsync(largest, 0, counted.size() * kKinds * sizeof *largest, fl::cuda::stream_of(exec_)));
    Launch(exec_, "find_largest", pieces.size())(find_largest<T>, upload(exec_, std::span<const NumberPiece<T>>(pieces), frame),
                                                 pieces.size(), largest);
    const std::vector<unsigned long long> found = download(exec_, largest, counted.size() * kKinds);
    for (std::size_t i = 0; i < counted.size(); ++i) {
      Tally& tally = messages[counted[i]].tally;
      tally.has_magnitudes = true;
      tally.largest_value = magnitude_of<T>(found[i * kKinds]);
      tally.largest_scale = magnitude_of<T>(found[i * kKinds + 1]);
      tally.largest_excluded = magnitude_of<T>(found[i * kKinds + 2]);
    }
  }

  void count_levels(std::span<Channel<T>> messages) {
    std::vector<LevelPiece> pieces;
    std::vector<Counted> counted;
    std::size_t total = 0;
    for (std::size_t m = 0; m < messages.size(); ++m) {
      const Payload<T>& message = *messages[m].payload;
      const LevelFormat& format = message.level_format;
      const bool whole = message.level_bytes.size() == message.num_sent * static_cast<std::size_t>(message.level_width);
      if (message.silent || message.values != WireValue::levels || message.rest != nullptr || !whole) continue;
      if (!is_reachable(message.level_bytes) || !check_format(format).empty() || num_levels(format) > kMostDirect) continue;
      const auto size = static_cast<std::uint32_t>(num_levels(format));
      for (std::size_t first = 0; first < message.num_sent; first += kLevelsPerPiece)
        pieces.push_back({message.level_bytes.data(), message.level_width, format.min_level, size, first,
                          std::min(kLevelsPerPiece, message.num_sent - first), total});
      counted.push_back({m, total, size});
      total += size + 1;
    }
    if (pieces.empty()) return;
    Workspace::Frame frame(workspace_);
    auto* tables = frame.take<std::uint32_t>(total);
    FL_CUDA_CHECK(cudaMemsetAsync(tables, 0, total * sizeof *tables, fl::cuda::stream_of(exec_)));
    Launch(exec_, "count_levels", pieces.size())(count_pieces, upload(exec_, std::span<const LevelPiece>(pieces), frame), pieces.size(),
                                                 tables);
    levels_ = download(exec_, tables, total);
    for (const Counted& one : counted)
      if (levels_[one.first + one.size] == 0) messages[one.message].tally.levels = std::span(levels_).subspan(one.first, one.size);
  }

  // Adds the pieces of a message. Returns false if the host must count the message.
  [[nodiscard]] static bool add_pieces(const Payload<T>& message, const Scope& scope, std::vector<PositionPiece>& pieces) {
    if (message.silent || message.positions != Positions::list || message.has_known_positions() || message.rest != nullptr ||
        !is_reachable(message.index))
      return false;
    Segment plain;
    const auto segments = message_segments(scope, has_own_shape(message, scope), message.length, plain);
    if (message.counts.size() != segments.size() || message.index.size() != message.num_sent) return false;
    const std::size_t before = pieces.size();
    std::size_t sent = 0;
    for (std::size_t s = 0; s < segments.size(); ++s) {
      const std::size_t count = message.counts[s], size = segments[s].size();
      if (count > size || segments[s].end > 0xffffffffULL || sent + count > message.num_sent) {
        pieces.resize(before);
        return false;
      }
      if (count > 0) {
        const std::size_t described = count < size ? std::min(count, size - count) : count;
        pieces.push_back({message.index.data() + sent, count, segments[s].begin, segments[s].end, described, nullptr, 0});
      }
      sent += count;
    }
    if (sent == message.num_sent) return true;
    pieces.resize(before);
    return false;
  }

  void count_positions(std::span<Channel<T>> messages) {
    std::vector<PositionPiece> pieces;
    std::vector<Counted> counted;  // pieces of each message
    std::size_t total = 0;         // segments
    for (std::size_t m = 0; m < messages.size(); ++m) {
      const std::size_t first = pieces.size();
      if (!add_pieces(*messages[m].payload, *messages[m].scope, pieces)) continue;
      counted.push_back({m, first, pieces.size() - first});
      total += messages[m].payload->counts.size();
    }
    if (pieces.empty()) return;
    const std::vector<GapCosts> costs = costs_of(pieces);
    positions_.clear();
    positions_.reserve(total);  // tallies point into it
    for (const Counted& one : counted) add_tally(messages[one.message], pieces.data() + one.first, costs.data() + one.first);
  }

  // Appends the bits of the message's segments, unless a piece is out of order.
  void add_tally(Channel<T>& message, const PositionPiece* piece, const GapCosts* costs) {
    const std::size_t first = positions_.size();
    for (const std::uint32_t count : message.payload->counts) {
      if (count == 0) {
        positions_.push_back(gamma_bits(1));
        continue;
      }
      if (costs->ascending == 0) {
        positions_.resize(first);
        return;
      }
      positions_.push_back(bits_of_piece(*piece++, *costs++));
    }
    message.tally.positions = std::span(positions_).subspan(first);
  }

  [[nodiscard]] std::vector<GapCosts> costs_of(std::vector<PositionPiece>& pieces) {
    Workspace::Frame frame(workspace_);
    const std::vector<std::uint32_t> disorder = list_other_positions(pieces, frame);
    auto* last = frame.take<std::uint32_t>(pieces.size());
    Launch(exec_, "find_last", blocks_for(pieces.size()))(find_last, upload(exec_, std::span<const PositionPiece>(pieces), frame),
                                                          pieces.size(), last);
    const std::vector<std::uint32_t> ends = download(exec_, last, pieces.size());
    for (std::size_t p = 0; p < pieces.size(); ++p) {
      PositionPiece& piece = pieces[p];
      if (piece.count >= kGolombFrom && ends[p] >= piece.begin + piece.count - 1)
        piece.divisor = golomb_divisor(ends[p] - piece.begin - (piece.count - 1), piece.count);
    }
    auto* costs = frame.take<GapCosts>(pieces.size());
    Launch(exec_, "add_gaps", pieces.size())(add_gaps, upload(exec_, std::span<const PositionPiece>(pieces), frame), pieces.size(), costs);
    std::vector<GapCosts> sums = download(exec_, costs, pieces.size());
    for (std::size_t p = 0; p < disorder.size(); ++p)
      if (disorder[p] != 0) sums[p].ascending = 0;
    return sums;
  }

  // Lists the positions that are not kept for pieces that describe them. Returns which pieces are out of order, or an empty list if nothing
  // had to be listed.
  [[nodiscard]] std::vector<std::uint32_t> list_other_positions(std::vector<PositionPiece>& pieces, Workspace::Frame& frame) {
    std::size_t total = 0;
    for (const PositionPiece& piece : pieces) total += piece.count < piece.num_kept ? piece.count : 0;
    if (total == 0) return {};
    auto* others = frame.take<std::uint32_t>(total);
    auto* disorder = frame.take<std::uint32_t>(pieces.size());
    FL_CUDA_CHECK(cudaMemsetAsync(disorder, 0, pieces.size() * sizeof *disorder, fl::cuda::stream_of(exec_)));
    for (PositionPiece& piece : pieces) {
      if (piece.count == piece.num_kept) continue;
      piece.others = others;
      others += piece.count;
    }
    Launch(exec_, "list_others", pieces.size())(list_others, upload(exec_, std::span<const PositionPiece>(pieces), frame), pieces.size(),
                                                disorder);
    return download(exec_, disorder, pieces.size());
  }

  DeviceStream stream_{Device::cuda};
  Workspace workspace_{Device::cuda};
  Exec exec_;
  std::vector<std::uint32_t> levels_;     // tables of all messages
  std::vector<std::uint64_t> positions_;  // bits of all segments of all messages
};

}  // namespace

template <class T>
std::unique_ptr<DeviceTally<T>> make_tally() {
  return std::make_unique<Counter<T>>();
}
template std::unique_ptr<DeviceTally<float>> make_tally();
template std::unique_ptr<DeviceTally<double>> make_tally();

}  // namespace fl::codec::cuda
