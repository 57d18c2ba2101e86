// The rows of one client slot, in one pool: a row for each frame, from its first use on, and shadow rows for the members of open rounds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "fl_core/memory/batch_view.hpp"
#include "fl_core/memory/buffer.hpp"
#include "fl_core/state/slot_spec.hpp"

namespace fl {

// The rounds that may be open at the same time, and their members.
struct OpenRounds {
  std::size_t waves = 1, max_cohort = 0;
  std::size_t shadows = 0;  // of each wave, in slots that are double-buffered
};

template <class T>
class SlotRows {
 public:
  SlotRows() = default;
  SlotRows(const SlotSpec& spec, std::size_t P)
      : length_(spec.length == 0 ? P : spec.length), stride_(aligned_stride<T>(length_)), double_buffered_(spec.double_buffered) {}

  // Gives the rows memory. `in_order`: each frame has the row of its own number at once.
  void reserve(std::size_t num_frames, const OpenRounds& open, Device memory, bool in_order) {
    num_shadows_ = double_buffered_ ? open.shadows : 0;
    max_cohort_ = open.max_cohort;
    pool_ = Buffer<T>((num_frames + open.waves * num_shadows_) * stride_, memory);
    row_of_frame_.assign(num_frames, kNoRow);
    num_rows_ = in_order ? static_cast<std::uint32_t>(num_frames) : 0;
    if (in_order) std::iota(row_of_frame_.begin(), row_of_frame_.end(), 0u);
    shadow_rows_.resize(open.waves * num_shadows_);
    std::iota(shadow_rows_.begin(), shadow_rows_.end(), static_cast<std::uint32_t>(num_frames));
    rows_.assign(open.waves * max_cohort_, 0);
  }

  // Gives a wave the frames of its members.
  void open(std::size_t wave, std::span<const std::uint32_t> frames) {
    for (std::size_t i = 0; i < frames.size(); ++i) rows_[wave * max_cohort_ + i] = row_of(frames[i]);
  }
  // Return the rows [count,L] of the members at positions first, first + 1, ...: their state, or what takes its place with swap().
  [[nodiscard]] BatchView<T> stored(std::size_t wave, std::uint32_t first, std::uint32_t count) {
    return {pool_.data(), rows_.data() + wave * max_cohort_ + first, count, length_, stride_};
  }
  [[nodiscard]] BatchView<T> shadow(std::size_t wave, std::uint32_t first, std::uint32_t count) {
    return {pool_.data(), shadow_rows_.data() + wave * num_shadows_ + first, count, length_, stride_};
  }
  // Makes the shadow row of a member, which has this frame, its state.
  void swap(std::size_t wave, std::uint32_t position, std::uint32_t frame) {
    std::uint32_t& row = row_of_frame_[frame];  // open() has given the frame a row
    std::swap(row, shadow_rows_[wave * num_shadows_ + position]);
    rows_[wave * max_cohort_ + position] = row;
  }

  // Returns the row of a frame. A frame that has none gets the next one, which is zero.
  [[nodiscard]] std::uint32_t row_of(std::uint32_t frame) {
    std::uint32_t& row = row_of_frame_[frame];
    if (row == kNoRow) row = num_rows_++;
    return row;
  }
  [[nodiscard]] bool has_row(std::uint32_t frame) const { return row_of_frame_[frame] != kNoRow; }
  // Return the memory of all rows, and of a frame's row [stride].
  [[nodiscard]] T* data() { return pool_.data(); }
  [[nodiscard]] std::span<T> of_frame(std::uint32_t frame) { return {pool_.data() + row_of(frame) * stride_, stride_}; }

  [[nodiscard]] std::size_t length() const { return length_; }
  [[nodiscard]] std::size_t stride() const { return stride_; }  // rows begin on cache lines: vector loads that cross two lines are slower
  [[nodiscard]] bool is_double_buffered() const { return double_buffered_; }
  [[nodiscard]] std::size_t num_shadows() const { return num_shadows_; }  // of each wave
  [[nodiscard]] std::size_t size_bytes() const { return pool_.size() * sizeof(T); }

 private:
  static constexpr std::uint32_t kNoRow = ~std::uint32_t{0};

  std::size_t length_ = 0, stride_ = 0;
  bool double_buffered_ = false;
  std::size_t num_shadows_ = 0, max_cohort_ = 0;
  Buffer<T> pool_;                           // [frames + waves * num_shadows, stride]
  std::vector<std::uint32_t> row_of_frame_;  // [frames], kNoRow where the frame has not been used
  std::uint32_t num_rows_ = 0;               // that frames have
  std::vector<std::uint32_t> shadow_rows_;   // [waves, num_shadows]
  std::vector<std::uint32_t> rows_;          // [waves, max_cohort] of the members
};

}  // namespace fl
