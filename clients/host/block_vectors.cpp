#include "clients/host/block_vectors.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "clients/learning/device_room.hpp"

namespace fl {

namespace {

// Vectors of one block should stay in the inner half of a 2 MiB cache next to the data.
constexpr std::size_t kBlockBytes = 256 * 1024;
constexpr std::uint32_t kMaxBlock = 64;

template <class T>
std::vector<Buffer<T>> buffers_for(const BlockForm& form) {
  std::vector<Buffer<T>> buffers;
  for (std::size_t v = 0; v < form.in_place_slots.size(); ++v) buffers.emplace_back(0, form.memory);
  return buffers;
}

}  // namespace

template <class T>
BlockVectors<T>::BlockVectors(BlockForm form) : form_(std::move(form)) {
  for (int thread = 0; thread < form_.num_threads; ++thread) of_thread_.push_back(buffers_for<T>(form_));
}

template <class T>
void BlockVectors<T>::divide(const RoundView<T>& round, std::size_t wave, bool begins) {
  const auto M = static_cast<std::uint32_t>(round.order.cohort.size());
  stride_ = aligned_stride<T>(round.P());
  const auto threads = static_cast<std::uint32_t>(form_.num_threads);
  std::uint32_t K = form_.block;
  if (K == 0) {
    const std::size_t fits = kBlockBytes / (round.P() * sizeof(T) * num_vectors());
    K = static_cast<std::uint32_t>(form_.is_on_device ? device_block<T>(M, num_vectors(), round.P())
                                                      : std::clamp<std::size_t>(fits, 1, kMaxBlock));
    if (threads > 1 && !form_.is_on_device) K = std::min(K, (M + 2 * threads - 1) / (2 * threads));
  }
  size_ = std::max(1u, std::min(K, M));
  count_ = (M + size_ - 1) / size_;
  wave_ = wave;
  if (!form_.outlives_blocks || !begins) return;
  while (of_wave_.size() <= wave) of_wave_.push_back(buffers_for<T>(form_));
  for (std::size_t v = 0; v < num_vectors(); ++v)
    if (form_.in_place_slots[v].empty()) of_wave_[wave][v].resize_discard(M * stride_);
}

template <class T>
ClientBlock<T> BlockVectors<T>::open(const Exec& exec, const ClientRound<T>& round, std::uint32_t index, CohortMessages<T>& sent) {
  std::vector<Buffer<T>>& reused = of_thread_[static_cast<std::size_t>(exec.thread)];
  ClientBlock<T> block;
  block.first = index * size_;
  block.K = std::min<std::uint32_t>(size_, static_cast<std::uint32_t>(round.order.cohort.size()) - block.first);
  block.clients = std::span(round.order.cohort).subspan(block.first, block.K);
  for (std::size_t v = 0; v < num_vectors(); ++v) {
    if (!form_.in_place_slots[v].empty()) {
      block.vectors.push_back(round.state.shadow(form_.in_place_slots[v], block.first, block.K));
    } else if (form_.outlives_blocks) {
      block.vectors.push_back({of_wave_[wave_][v].data() + block.first * stride_, nullptr, block.K, round.P(), stride_});
    } else {
      reused[v].resize_discard(size_ * stride_);
      block.vectors.push_back({reused[v].data(), nullptr, block.K, round.P(), stride_});
    }
  }
  if (const std::size_t U = sent.num_own; U > 0) block.own = {sent.own.data() + block.first * U, nullptr, block.K, U, U};
  for (auto& channel : sent.channels) block.messages.push_back({channel.pointers.data() + block.first, block.K});
  block.work = std::span(sent.work).subspan(block.first, block.K);
  return block;
}

template <class T>
std::size_t BlockVectors<T>::num_buffered() const {
  return static_cast<std::size_t>(std::ranges::count(form_.in_place_slots, ""));
}

template <class T>
std::size_t BlockVectors<T>::size_bytes() const {
  std::size_t bytes = 0;
  for (const auto* all : {&of_thread_, &of_wave_})
    for (const std::vector<Buffer<T>>& buffers : *all)
      for (const Buffer<T>& vector : buffers) bytes += vector.capacity() * sizeof(T);
  return bytes;
}

template class BlockVectors<float>;
template class BlockVectors<double>;

}  // namespace fl
