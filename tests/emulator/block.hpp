// Emulates thread blocks on the CPU: every thread of a block is a fiber that runs until it waits for the others.
//
// A correct kernel gives the same result for every order of threads and blocks. set_order() reverses the order, which reveals most kernels
// that forget to wait. A wait that can never end, and a warp operation whose lanes disagree, are Faults. The address sanitizer detects
// out-of-bounds accesses; without it, device memory is not accessible to the host (runtime.cpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <type_traits>
#include <vector>

#include "tests/emulator/streams.hpp"

namespace fl::emulator {

inline constexpr unsigned kWarpLanes = 32;
inline constexpr std::size_t kMostShared = 227 * 1024;  // bytes of shared memory of a block, on sm_90

struct Index {
  unsigned x = 0, y = 0, z = 0;
};

// Indices of the running thread, which CUDA calls threadIdx, blockIdx, blockDim, gridDim.
inline thread_local constinit Index thread_index{}, block_index{}, block_size{1, 1, 1}, grid_size{1, 1, 1};

enum class Order { ascending, descending };
void set_order(Order order);

// A kernel that would hang or read what is undefined.
class Fault : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Calls thread(argument) for every thread of every block, one block after another; each finds `shared` bytes of shared_memory(). Throws
// Fault.
void run_blocks(const char* name, unsigned blocks, unsigned threads, std::size_t shared, void (*thread)(const void*), const void* argument);
[[nodiscard]] void* shared_memory();

// Calls of this thread that are recorded for a graph and not executed (cudaStreamBeginCapture).
using Recording = std::vector<std::function<void()>>;
[[nodiscard]] Recording* recording();
void set_recording(Recording* recording);
void do_or_record(std::function<void()> work);

// The kernel's work as a function. `name`, which lives as long as the process, is that of the kernel, where its bytes are counted
// (traffic.hpp).
template <class... P>
[[nodiscard]] auto work_of(const char* name, void (*kernel)(P...), unsigned blocks, unsigned threads, std::size_t shared,
                           const std::type_identity_t<P>&... arguments) {
  return [=] {
    const auto body = [&] { kernel(arguments...); };
    run_blocks(
        name, blocks, threads, shared, [](const void* f) { (*static_cast<const decltype(body)*>(f))(); }, &body);
  };
}
// Gives a kernel to a stream.
template <class... P>
void launch_on(void* stream, const char* name, void (*kernel)(P...), unsigned blocks, unsigned threads, std::size_t shared,
               const std::type_identity_t<P>&... arguments) {
  submit(stream, work_of(name, kernel, blocks, threads, shared, arguments...));
}
// Runs a kernel at once, or records it.
template <class... P>
void launch(void (*kernel)(P...), unsigned blocks, unsigned threads, std::size_t shared, const std::type_identity_t<P>&... arguments) {
  do_or_record(work_of("kernel", kernel, blocks, threads, shared, arguments...));
}

// While one of these lives, device memory may be touched: kernels and copies hold one.
class DeviceAccess {
 public:
  DeviceAccess();
  ~DeviceAccess();
  DeviceAccess(const DeviceAccess&) = delete;
  DeviceAccess& operator=(const DeviceAccess&) = delete;
};

// ---- what a thread calls ----

// Waits for all threads of the block that have not ended.
void sync_block();

enum class WarpOperation { sync, ballot, any, all, add, shuffle, shuffle_up, shuffle_down, shuffle_xor };
// Gives `value` and waits for the lanes in `mask`, which must ask for the same. [32]: what each of them gave; valid until this thread's
// next operation.
const std::uint64_t* exchange(WarpOperation operation, unsigned mask, std::uint64_t value);

// Ends the kernel with a Fault.
[[noreturn]] void report(const char* what);

}  // namespace fl::emulator
