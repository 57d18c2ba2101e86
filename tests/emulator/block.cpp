#include "tests/emulator/block.hpp"

#include <algorithm>
#include <boost/context/fiber.hpp>
#include <boost/context/protected_fixedsize_stack.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/emulator/card.hpp"
#include "tests/support/sanitized.hpp"
#if defined(FL_CUDA_COUNT_BYTES)
#include "tests/emulator/traffic.hpp"
#endif

#if FL_SANITIZED
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace fl::emulator {
namespace {

namespace context = boost::context;

constexpr std::size_t kStackBytes = 256 * 1024;  // mapped as it is used

// Tells the address sanitizer which stack is in use.
class StackSwitch {
 public:
#if FL_SANITIZED
  void leave(const void* bottom, std::size_t bytes) { __sanitizer_start_switch_fiber(&fake_, bottom, bytes); }
  static void end(const void* bottom, std::size_t bytes) { __sanitizer_start_switch_fiber(nullptr, bottom, bytes); }
  void arrive(const void** from = nullptr, std::size_t* bytes = nullptr) { __sanitizer_finish_switch_fiber(fake_, from, bytes); }

 private:
  void* fake_ = nullptr;
#else
  void leave(const void*, std::size_t) {}
  static void end(const void*, std::size_t) {}
  void arrive(const void** = nullptr, std::size_t* = nullptr) {}
#endif
};

// Stacks that are clean when they are reused: the address sanitizer remembers the frames of a fiber that never returned.
struct CleanStack : context::protected_fixedsize_stack {
  using context::protected_fixedsize_stack::protected_fixedsize_stack;
  void deallocate(context::stack_context& stack) noexcept {
#if FL_SANITIZED
    __asan_unpoison_memory_region(static_cast<const char*>(stack.sp) - stack.size, stack.size);
#endif
    context::protected_fixedsize_stack::deallocate(stack);
  }
};

enum class Waits { nothing, block, warp, ended };

struct Thread {
  Waits waits = Waits::nothing;
  WarpOperation operation = WarpOperation::sync;
  unsigned mask = 0;
  std::uint64_t given = 0;
  std::size_t fiber = 0;  // that it runs on, once begun
  bool begun = false;
};

// A stack and the thread that runs on it; when a thread has ended, the next one begins there.
struct Fiber {
  context::fiber fiber, caller;
  StackSwitch own, of_caller;
  const void* bottom = nullptr;
  std::size_t bytes = 0;
};

class Machine {
 public:
  Machine() = default;
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;
  // Lets every fiber come to its end.
  ~Machine() {
    call_ = nullptr;
    for (auto& fiber : fibers_) switch_to(*fiber);
  }
  static Machine& here() {
    static thread_local Machine machine;
    return machine;
  }

  void run(unsigned blocks, unsigned threads, void (*thread)(const void*), const void* argument) {
    // In descending order a few blocks do the work of all, so that what a kernel leaves in a block's memory meets the next piece of work
    // there: on a GPU grids are large enough, and in a test they would never be too small.
    constexpr unsigned kFewBlocks = 3;
    if (order == Order::descending) blocks = std::min(blocks, kFewBlocks);
    call_ = thread;
    argument_ = argument;
    grid_size = {blocks, 1, 1};
    block_size = {threads, 1, 1};
    for (unsigned b = 0; b < blocks; ++b) {
      block_index = {in_order(b, blocks), 0, 0};
      run_block(threads);
    }
  }

  void sync_block() {
    threads_[running_].waits = Waits::block;
    yield();
  }
  const std::uint64_t* exchange(WarpOperation operation, unsigned mask, std::uint64_t value) {
    Thread& thread = threads_[running_];
    thread.waits = Waits::warp;
    thread.operation = operation;
    thread.mask = mask;
    thread.given = value;
    yield();
    return given_.data() + thread_index.x / kWarpLanes * kWarpLanes;
  }
  [[noreturn]] void report(const char* what) {
    fault_ = what;
    for (;;) yield();
  }
  Order order = Order::ascending;

 private:
  [[nodiscard]] unsigned in_order(unsigned i, unsigned count) const { return order == Order::ascending ? i : count - 1 - i; }

  void run_block(unsigned threads) {
#if defined(FL_CUDA_COUNT_BYTES)
    count_block();
#endif
    threads_.assign(threads, {});
    given_.assign((threads + kWarpLanes - 1) / kWarpLanes * kWarpLanes, 0);
    for (unsigned ended = 0; ended < threads;) {
      for (unsigned i = 0; i < threads; ++i) {
        const unsigned t = in_order(i, threads);
        if (threads_[t].waits != Waits::nothing) continue;
        resume(t);
        if (threads_[t].waits == Waits::ended) ++ended;
      }
      if (ended < threads) release(threads);
    }
  }

  // Called if no thread can continue: releases warps whose lanes have all arrived, or else the whole block.
  void release(unsigned threads) {
    bool released = false;
    for (unsigned t = 0; t < threads; ++t)
      if (threads_[t].waits == Waits::warp) released = release_warp(t, threads) || released;
    if (released) return;
    for (const Thread& thread : threads_)
      if (thread.waits == Waits::warp) fail("some threads of a block wait for their warp, others for the block or for nothing any more");
    for (Thread& thread : threads_)
      if (thread.waits == Waits::block) thread.waits = Waits::nothing;
#if defined(FL_CUDA_COUNT_BYTES)
    count_barrier();
#endif
  }

  // The lanes that thread t waits for, if they are all there.
  bool release_warp(unsigned t, unsigned threads) {
    const Thread& first = threads_[t];
    const unsigned warp = t / kWarpLanes * kWarpLanes;
    if ((first.mask >> (t % kWarpLanes) & 1) == 0) fail("a lane is not in the mask that it gives");
    for (unsigned lane = 0; lane < kWarpLanes; ++lane) {
      if ((first.mask >> lane & 1) == 0) continue;
      if (warp + lane >= threads || threads_[warp + lane].waits == Waits::ended) fail("a warp waits for a lane that has ended");
      const Thread& other = threads_[warp + lane];
      if (other.waits != Waits::warp) return false;
      if (other.mask != first.mask || other.operation != first.operation) fail("the lanes of a warp ask for different things");
    }
    const unsigned mask = first.mask;
    for (unsigned lane = 0; lane < kWarpLanes; ++lane) {
      if ((mask >> lane & 1) == 0) continue;
      threads_[warp + lane].waits = Waits::nothing;
      given_[warp + lane] = threads_[warp + lane].given;
    }
    return true;
  }

  void resume(unsigned t) {
    Thread& thread = threads_[t];
    if (!thread.begun) {
      thread.begun = true;
      thread.fiber = free_fiber();
    }
    running_ = t;
    thread_index = {t, 0, 0};
    switch_to(*fibers_[thread.fiber]);
    if (fault_ != nullptr) fail(std::exchange(fault_, nullptr));
    if (thread.waits == Waits::ended) free_.push_back(thread.fiber);
  }

  static void switch_to(Fiber& fiber) {
    fiber.of_caller.leave(fiber.bottom, fiber.bytes);
    fiber.fiber = std::move(fiber.fiber).resume();
    fiber.of_caller.arrive();
  }

  // Returns to run_block() until this thread is resumed.
  void yield() {
    Fiber& fiber = *fibers_[threads_[running_].fiber];
    fiber.own.leave(caller_bottom_, caller_bytes_);
    fiber.caller = std::move(fiber.caller).resume();
    fiber.own.arrive(&caller_bottom_, &caller_bytes_);
  }

  std::size_t free_fiber() {
    if (!free_.empty()) {
      const std::size_t fiber = free_.back();
      free_.pop_back();
      return fiber;
    }
    fibers_.push_back(std::make_unique<Fiber>());
    Fiber& fiber = *fibers_.back();
    CleanStack allocator(kStackBytes);
    const context::stack_context stack = allocator.allocate();
    fiber.bottom = static_cast<const char*>(stack.sp) - stack.size;
    fiber.bytes = stack.size;
    fiber.fiber = context::fiber(std::allocator_arg, context::preallocated(stack.sp, stack.size, stack), allocator,
                                 [this, &fiber](context::fiber&& caller) {
                                   fiber.caller = std::move(caller);
                                   fiber.own.arrive(&caller_bottom_, &caller_bytes_);
                                   while (call_ != nullptr) {
                                     call_(argument_);
                                     threads_[running_].waits = Waits::ended;
                                     yield();
                                   }
                                   StackSwitch::end(caller_bottom_, caller_bytes_);
                                   return std::move(fiber.caller);
                                 });
    return fibers_.size() - 1;
  }

  // Fibers that wait are given up with what lies on their stacks: kernels own nothing.
  [[noreturn]] void fail(const char* what) {
    static auto* abandoned = new std::vector<std::unique_ptr<Fiber>>;
    for (auto& fiber : fibers_) abandoned->push_back(std::move(fiber));
    fibers_.clear();
    free_.clear();
    throw Fault(std::string(what) + " (block " + std::to_string(block_index.x) + ")");
  }

  void (*call_)(const void*) = nullptr;
  const void* argument_ = nullptr;
  std::vector<Thread> threads_;
  std::vector<std::uint64_t> given_;  // in the warp's last operation, per thread
  std::vector<std::unique_ptr<Fiber>> fibers_;
  std::vector<std::size_t> free_;
  unsigned running_ = 0;
  const char* fault_ = nullptr;
  const void* caller_bottom_ = nullptr;
  std::size_t caller_bytes_ = 0;
};

}  // namespace

void set_order(Order order) { Machine::here().order = order; }
namespace {

thread_local constinit void* memory_of_this_block = nullptr;
thread_local constinit Recording* recorded = nullptr;

// Exactly the bytes that were asked for, with nonsense in them.
class SharedMemory {
 public:
  explicit SharedMemory(std::size_t bytes) : before_(memory_of_this_block), memory_(bytes) {
    constexpr unsigned char kNonsense = 0xA5;
    std::fill(memory_.begin(), memory_.end(), std::byte{kNonsense});
    memory_of_this_block = memory_.data();
  }
  ~SharedMemory() { memory_of_this_block = before_; }
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

 private:
  void* before_;
  std::vector<std::byte> memory_;
};

}  // namespace

void run_blocks(const char* name, unsigned blocks, unsigned threads, std::size_t shared, void (*thread)(const void*),
                const void* argument) {
  if (shared > kMostShared) throw Fault("a block asks for more shared memory than there is");
  const DeviceAccess access;
  const SharedMemory memory(shared);
#if defined(FL_CUDA_COUNT_BYTES)
  const CountedKernel counted(name);
#endif
  Machine::here().run(blocks, threads, thread, argument);
  find_overruns(name);
}
void* shared_memory() { return memory_of_this_block; }

Recording* recording() { return recorded; }
void set_recording(Recording* recording) { recorded = recording; }
void do_or_record(std::function<void()> work) {
  if (recorded != nullptr)
    recorded->push_back(std::move(work));
  else
    work();
}

void sync_block() { Machine::here().sync_block(); }
const std::uint64_t* exchange(WarpOperation operation, unsigned mask, std::uint64_t value) {
  return Machine::here().exchange(operation, mask, value);
}

[[noreturn]] void report(const char* what) { Machine::here().report(what); }

}  // namespace fl::emulator
