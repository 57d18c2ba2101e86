// The memory that a block runner holds, and the GPU memory that rounds may take.
#include <algorithm>
#include <bit>

#include "clients/host/block_runner.hpp"
#include "clients/learning/device_room.hpp"

namespace fl {

namespace {

template <class T>
std::size_t bytes_of(const CohortMessages<T>& sent) {
  std::size_t bytes = 0;
  for (const auto& channel : sent.channels)
    for (const Payload<T>& payload : channel.payloads)
      bytes += payload.value.capacity() * sizeof(T) + payload.index.capacity() * sizeof(std::uint32_t) + payload.level_bytes.capacity();
  for (const auto& one : sent.encoded) bytes += one == nullptr ? 0 : one->capacity();
  return bytes;
}

}  // namespace

template <class T>
std::size_t BlockRunner<T>::size_bytes() const {
  std::size_t bytes = vectors_.size_bytes() + measuring_.size_bytes() + kept_.rows.capacity() * sizeof(T);
  if (training_.on_device() != nullptr) bytes += training_.on_device()->size_bytes();
  messages_.for_each([&bytes](const CohortMessages<T>& sent) { bytes += bytes_of(sent); });
  return bytes;
}

namespace {

constexpr std::uint64_t kLeastOnDevice = 16 << 20;  // bytes: the first chunks of pools and workspaces

// Returns the bytes of the sums of M messages and of error memories in double, including the sums of client groups that are joined
// (server/cuda/aggregation.cu).
std::uint64_t bytes_of_sums(std::uint64_t M, std::uint64_t P) {
  constexpr std::uint64_t kGroup = 64, kMostJoined = std::uint64_t{1} << 22;  // clients; entries
  const auto levels = static_cast<std::uint64_t>(std::bit_width((M + kGroup - 1) / kGroup));
  return (2 * P + levels * std::min(P, kMostJoined)) * sizeof(double);
}

}  // namespace

// Assumes that operators need as much temporary memory as a block's vectors. Operators and training take turns in one workspace, which
// keeps an eighth more than it needed.
template <class T>
std::uint64_t BlockRunner<T>::most_bytes_on_device(std::size_t P) const {
  const std::uint64_t M = messages_.max_cohort();
  const std::uint64_t message = P * (sizeof(T) + sizeof(std::uint32_t)), row = aligned_stride<T>(P) * sizeof(T);
  const std::uint64_t block =
      options_.block > 0 ? std::min<std::uint64_t>(options_.block, M) : device_block<T>(M, vectors_.num_vectors(), P);
  const std::uint64_t num_buffered = vectors_.num_buffered();
  const std::uint64_t training = options_.trains_on_cpu             ? 0
                                 : training_.on_device() != nullptr ? training_.on_device()->room_bytes(block)
                                                                    : device_training_bytes(parts_.local_update, *parts_.oracle, block);
  const std::uint64_t scratch = std::max(training, block * row);
  return num_buffered * (parts_.exchange.num_phases() > 1 ? M : block) * row + M * parts_.exchange.channels.size() * message + scratch +
         scratch / 8 + bytes_of_sums(M, P) + kLeastOnDevice;
}

template <class T>
std::uint64_t BlockRunner<T>::most_pinned_bytes() const {
  std::uint64_t counts = 0;
  for (const ExchangeChannel<T>& channel : parts_.exchange.channels) counts += channel.scope.segments.size() * sizeof(std::uint32_t);
  return messages_.max_cohort() * counts;
}

// Instantiates the members of this file; other files instantiate theirs.
template std::size_t BlockRunner<float>::size_bytes() const;
template std::size_t BlockRunner<double>::size_bytes() const;
template std::uint64_t BlockRunner<float>::most_bytes_on_device(std::size_t) const;
template std::uint64_t BlockRunner<double>::most_bytes_on_device(std::size_t) const;
template std::uint64_t BlockRunner<float>::most_pinned_bytes() const;
template std::uint64_t BlockRunner<double>::most_pinned_bytes() const;

}  // namespace fl
