// Memory with one owner on one device: 64-byte aligned on the host (huge pages from 2 MiB on), GPU memory, CUDA managed memory, or pinned
// host memory. Both devices reach managed and pinned memory; the host must wait for the kernels that write it before reading.
// New memory is zero, unless the caller says that it writes everything. Transfers between devices are always a visible copy(), never
// implicit.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>

#include "fl_core/config/device.hpp"

namespace fl {

// Whether memory is zero where it is allocated, or holds whatever it held. To clear a block of a GPU takes longer than to find one.
enum class Contents { zero, any };

// Allocates memory; the host's is always zeroed. Throws std::bad_alloc (host) or DeviceError (GPU). A build without CUDA supports host
// memory only and otherwise throws DeviceError.
[[nodiscard]] FL_API void* allocate_bytes(Device device, std::size_t bytes, Contents contents = Contents::zero);
FL_API void free_bytes(Device device, void* memory, std::size_t bytes) noexcept;
// Copies between host and device or within one device. On a GPU, `stream` orders the copy; host copies are immediate.
FL_API void copy_bytes(void* to, Device to_device, const void* from, Device from_device, std::size_t bytes, void* stream = nullptr);

// A work queue of a device, for Exec::stream. It is null on the host.
class FL_API DeviceStream {
 public:
  explicit DeviceStream(Device device);
  ~DeviceStream();
  DeviceStream(const DeviceStream&) = delete;
  DeviceStream& operator=(const DeviceStream&) = delete;
  [[nodiscard]] void* get() const { return stream_; }

 private:
  void* stream_ = nullptr;
};

// Waits until the work of a queue is complete. Returns at once on the host.
FL_API void synchronise(Device device, void* stream);

template <class T>
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(std::size_t size, Device device = Device::cpu) : device_(device) { resize_discard(size); }
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    swap(other);
    return *this;
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() { release(); }

  // Grows to at least `size` elements; contents may be lost. GPU buffers grow by at least a quarter, because GPU allocations are slow.
  void resize_discard(std::size_t size) { resize_lost(size, Contents::zero); }
  // Does the same for elements that the caller writes before anybody reads them: new GPU memory is not cleared.
  void resize_for_overwrite(std::size_t size) { resize_lost(size, Contents::any); }
  // Grows to at least `size` elements, by half or more, and keeps the contents. On a GPU, `stream` orders the copy; null waits for all
  // streams.
  void resize_keep(std::size_t size, void* stream = nullptr) {
    if (size > capacity_) {
      const std::size_t grown = size > capacity_ + capacity_ / 2 ? size : capacity_ + capacity_ / 2;
      Buffer larger(grown, device_);
      if (size_ > 0) copy_bytes(larger.data_, device_, data_, device_, size_ * sizeof(T), stream);
      swap(larger);
    }
    size_ = size;
  }

  [[nodiscard]] T* data() { return data_; }
  [[nodiscard]] const T* data() const { return data_; }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] std::size_t capacity() const { return capacity_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] Device device() const { return device_; }
  [[nodiscard]] T& operator[](std::size_t i) { return data_[i]; }
  [[nodiscard]] const T& operator[](std::size_t i) const { return data_[i]; }
  [[nodiscard]] std::span<T> span() { return {data_, size_}; }
  [[nodiscard]] std::span<const T> span() const { return {data_, size_}; }
  [[nodiscard]] T* begin() { return data_; }
  [[nodiscard]] T* end() { return data_ + size_; }
  [[nodiscard]] const T* begin() const { return data_; }
  [[nodiscard]] const T* end() const { return data_ + size_; }

  void swap(Buffer& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
    std::swap(device_, other.device_);
  }

 private:
  void resize_lost(std::size_t size, Contents contents) {
    if (size > capacity_) {
      const std::size_t grown = device_ == Device::cpu || capacity_ == 0 ? size : std::max(size, capacity_ + capacity_ / 4);
      release();
      data_ = static_cast<T*>(allocate_bytes(device_, grown * sizeof(T), contents));
      capacity_ = grown;
    }
    size_ = size;
  }
  void release() noexcept {
    if (data_ != nullptr) free_bytes(device_, data_, capacity_ * sizeof(T));
    data_ = nullptr;
    size_ = capacity_ = 0;
  }
  T* data_ = nullptr;
  std::size_t size_ = 0, capacity_ = 0;
  Device device_ = Device::cpu;
};

}  // namespace fl
