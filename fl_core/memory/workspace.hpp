// Scratch memory that grows to the size that one step needs and is then reused, so that nothing allocates inside the round.
//
//   Workspace::Frame frame(*exec.workspace);
//   float* p = frame.take<float>(n);          // 64-byte aligned, uninitialised, valid until the frame ends
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "fl_core/memory/buffer.hpp"

namespace fl {

class FL_API Workspace {
 public:
  explicit Workspace(Device device = Device::cpu) : device_(device) {}
  ~Workspace() { free_single(0); }
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  class Frame {
   public:
    explicit Frame(Workspace& owner)
        : owner_(owner), chunk_(owner.chunk_), used_(owner.used_), taken_(owner.taken_), single_(owner.single_.size()) {}
    ~Frame() {
      owner_.chunk_ = chunk_;
      owner_.used_ = used_;
      owner_.taken_ = taken_;
      owner_.free_single(single_);
    }
    Frame(const Frame&) = delete;
    Frame& operator=(const Frame&) = delete;
    template <class U>
    [[nodiscard]] U* take(std::size_t count) {
      return static_cast<U*>(owner_.take_bytes(count * sizeof(U)));
    }

   private:
    Workspace& owner_;
    std::size_t chunk_, used_, taken_, single_;
  };

  [[nodiscard]] std::size_t capacity_bytes() const;
  // Returns a number that changes whenever the addresses returned by the same sequence of takes may change.
  [[nodiscard]] std::uint64_t generation() const { return generation_; }

 private:
  void* take_bytes(std::size_t bytes);
  void* take_single(std::size_t bytes);
  void free_single(std::size_t kept) noexcept;
  Device device_;
  std::vector<Buffer<std::byte>> chunks_;
  std::size_t chunk_ = 0, used_ = 0;  // position of the next bytes: the chunk, and the bytes used in it
  std::size_t taken_ = 0, peak_ = 0;  // bytes in use: current and maximum
  std::uint64_t generation_ = 0;
  // Where blocks of a GPU are not pooled, each take is an allocation of its own until its frame ends.
  struct SingleBlock {
    void* memory;
    std::size_t bytes;
  };
  std::vector<SingleBlock> single_;
};

}  // namespace fl
