#include "fl_core/memory/buffer.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>

#include "fl_core/config/error.hpp"
#include "fl_core/memory/cuda/memory.hpp"
#include "fl_core/memory/device_memory.hpp"
#include "fl_core/memory/host_bytes.hpp"

namespace fl {
namespace {

constexpr std::size_t kAlignment = 64;                   // bytes: a cache line, and the widest vector register
constexpr std::size_t kHugePage = std::size_t{2} << 20;  // bytes
constexpr std::size_t kPage = 4096;                      // bytes

std::size_t round_up(std::size_t bytes, std::size_t unit) {
  if (bytes > SIZE_MAX - 2 * kHugePage) throw std::bad_alloc();
  return (bytes + unit - 1) / unit * unit;
}

// Pages from the kernel are zero already and cost nothing until touched. The start is put on a huge-page boundary; what the mapping
// has before and after it is given back.
void* map_huge(std::size_t bytes) {
  const std::size_t length = round_up(bytes, kPage);
  void* mapped = mmap(nullptr, length + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  auto* begin = static_cast<std::byte*>(mapped);
  const std::size_t head = (kHugePage - reinterpret_cast<std::uintptr_t>(begin) % kHugePage) % kHugePage;
  if (head > 0) munmap(begin, head);
  if (head < kHugePage) munmap(begin + head + length, kHugePage - head);
  madvise(begin + head, length, MADV_HUGEPAGE);  // a wish: a kernel without huge pages may refuse it
  return begin + head;
}

void count_host(std::int64_t bytes) {
  HostBytes& counted = host_bytes();
  counted.held += bytes;
  counted.most = std::max(counted.most, counted.held);
}

void* allocate_host(std::size_t bytes) {
  if (bytes == 0) return nullptr;
  void* memory = nullptr;
  if (bytes >= kHugePage) {
    memory = map_huge(bytes);
  } else {
    const std::size_t length = round_up(bytes, kAlignment);
    memory = std::aligned_alloc(kAlignment, length);
    if (memory == nullptr) throw std::bad_alloc();
    std::memset(memory, 0, length);
  }
  count_host(static_cast<std::int64_t>(bytes));
  return memory;
}

void free_host(void* memory, std::size_t bytes) noexcept {
  if (memory == nullptr) return;
  count_host(-static_cast<std::int64_t>(bytes));
  if (bytes >= kHugePage)
    munmap(memory, (bytes + kPage - 1) / kPage * kPage);
  else
    std::free(memory);
}

}  // namespace

HostBytes& host_bytes() {
  static thread_local HostBytes counted;
  return counted;
}

void* allocate_bytes(Device device, std::size_t bytes, Contents contents) {
  if (device == Device::cpu) return allocate_host(bytes);
  return cuda::allocate_bytes(device, bytes, contents);
}

void free_bytes(Device device, void* memory, std::size_t bytes) noexcept {
  if (device == Device::cpu) {
    free_host(memory, bytes);
    return;
  }
  cuda::free_bytes(device, memory, bytes);
}

std::uint64_t free_bytes_of(Device device) {
  if (device != Device::cpu) return cuda::free_bytes_of_device(device);
  return ~std::uint64_t{0};
}

bool shares_managed_memory() { return cuda::shares_managed_memory(); }

void upload_bytes(void* to, const void* from, std::size_t bytes, void* stream) { cuda::upload_bytes(to, from, bytes, stream); }

DeviceStream::DeviceStream(Device device) {
  if (device == Device::cuda) stream_ = cuda::create_stream();
}
DeviceStream::~DeviceStream() {
  if (stream_ != nullptr) cuda::destroy_stream(stream_);
}

void synchronise(Device device, void* stream) {
  if (device != Device::cpu) cuda::synchronise(stream);
}

void copy_bytes(void* to, Device to_device, const void* from, Device from_device, std::size_t bytes, void* stream) {
  if (bytes == 0) return;
  if (to_device == Device::cpu && from_device == Device::cpu) {
    std::memcpy(to, from, bytes);
    return;
  }
  cuda::copy_bytes(to, to_device, from, from_device, bytes, stream);
}

}  // namespace fl
