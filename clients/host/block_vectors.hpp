// The division of a cohort into blocks of clients, and the memory of the blocks' local vectors.
//
// A vector lies in the shadow row of a client slot, in memory of its wave if it has to outlive its block (several phases), or in memory
// that a thread reuses from block to block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "clients/host/cohort_messages.hpp"
#include "fl_core/memory/buffer.hpp"
#include "fl_core/memory/exec.hpp"
#include "fl_core/round/round_views.hpp"

namespace fl {

// The constants of a runner's blocks.
struct BlockForm {
  std::vector<std::string> in_place_slots{};  // by local vector: the slot that receives it, or ""
  std::uint32_t block = 0;                    // clients of a block; 0 = as many as keep its vectors in cache
  int num_threads = 1;
  Device memory = Device::cpu;  // of the vectors
  bool is_on_device = false;    // a block is as much of the cohort as fits on the GPU
  bool outlives_blocks = false;
};

template <class T>
class BlockVectors {
 public:
  explicit BlockVectors(BlockForm form);

  // Divides the cohort of a wave's round. When it begins, the wave's vectors get their memory.
  void divide(const RoundView<T>& round, std::size_t wave, bool begins);
  // Returns a block of the clients, with its vectors, for one of the threads.
  [[nodiscard]] ClientBlock<T> open(const Exec& exec, const ClientRound<T>& round, std::uint32_t index, CohortMessages<T>& sent);

  [[nodiscard]] std::uint32_t block_size() const { return size_; }
  [[nodiscard]] std::uint32_t num_blocks() const { return count_; }
  [[nodiscard]] std::size_t num_vectors() const { return form_.in_place_slots.size(); }
  // Returns the number of vectors without a slot.
  [[nodiscard]] std::size_t num_buffered() const;
  [[nodiscard]] const std::string& first_slot() const { return form_.in_place_slots.front(); }
  [[nodiscard]] std::size_t size_bytes() const;

 private:
  const BlockForm form_;
  std::vector<std::vector<Buffer<T>>> of_thread_;  // by thread, by vector without a slot: [K,P]
  std::vector<std::vector<Buffer<T>>> of_wave_;    // by wave, by vector without a slot: [M,P]
  std::size_t wave_ = 0;
  std::uint32_t size_ = 1, count_ = 0;  // of the cohort's blocks
  std::size_t stride_ = 0;              // between the vectors of a block that have no slot
};

extern template class BlockVectors<float>;
extern template class BlockVectors<double>;

}  // namespace fl
