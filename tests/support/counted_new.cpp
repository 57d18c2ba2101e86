// operator new and delete that add allocated and freed bytes to host_bytes() of the thread, which already counts Buffers. Linked into
// programs whose tests bound the memory of a reader.
#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <new>

#include "fl_core/memory/host_bytes.hpp"

namespace {

void count(std::int64_t bytes) {
  fl::HostBytes& counted = fl::host_bytes();
  counted.held += bytes;
  counted.most = std::max(counted.most, counted.held);
}

void* counted(void* memory) {
  if (memory == nullptr) throw std::bad_alloc();
  count(static_cast<std::int64_t>(malloc_usable_size(memory)));
  return memory;
}

void release(void* memory) {
  if (memory == nullptr) return;
  count(-static_cast<std::int64_t>(malloc_usable_size(memory)));
  std::free(memory);
}

}  // namespace

void* operator new(std::size_t size) { return counted(std::malloc(size > 0 ? size : 1)); }
void* operator new[](std::size_t size) { return counted(std::malloc(size > 0 ? size : 1)); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  void* const memory = std::malloc(size > 0 ? size : 1);
  return memory == nullptr ? nullptr : counted(memory);
}
void* operator new[](std::size_t size, const std::nothrow_t& none) noexcept { return operator new(size, none); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  const auto unit = static_cast<std::size_t>(alignment);
  return counted(std::aligned_alloc(unit, (size / unit + 1) * unit));
}
void* operator new[](std::size_t size, std::align_val_t alignment) { return operator new(size, alignment); }
void operator delete(void* memory) noexcept { release(memory); }
void operator delete[](void* memory) noexcept { release(memory); }
void operator delete(void* memory, std::size_t) noexcept { release(memory); }
void operator delete[](void* memory, std::size_t) noexcept { release(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { release(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { release(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { release(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { release(memory); }
