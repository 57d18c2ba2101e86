// The results of an operator for a block of clients on one device, for tests that compare devices.
//
// Memory of a device is kept from case to case (Room), because a driver takes longer to allocate it than most cases take to compute.
// Before a case all of it holds a byte that is another one on the GPU than on the CPU, so that entries which no kernel writes differ, and a
// case finds nothing of the one before. The bytes behind the vectors are looked at after the case. Where a tool watches each allocation
// (the address sanitizer; compute-sanitizer, for which FEDBITS_CUDA_POOL=off is set), every case has new memory.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "compressors/conversation.hpp"
#include "fl_core/config/registry.hpp"
#include "fl_core/memory/cuda/memory.hpp"
#include "fl_core/memory/workspace.hpp"
#include "fl_core/ops/cuda/check.cuh"
#include "fl_core/ops/cuda/payload_copy.hpp"
#include "tests/compressors/operator_case.hpp"
#include "tests/fl_core/cpu/op_cases.hpp"
#include "tests/gpu/same_messages.hpp"
#include "tests/support/sanitized.hpp"
#if defined(FL_CUDA_EMULATOR)
#include "tests/emulator/block.hpp"
#endif

namespace fl::test {

using Settings = std::vector<std::pair<std::string, Value>>;

// An operator with some of its options.
struct OperatorCase {
  std::string label, name;
  Settings settings;
  // Many small kernels, one segment after another: emulated on short vectors alone.
  [[nodiscard]] bool is_slow() const { return name == "accordion" || name == "lgreco" || name == "induced"; }
  [[nodiscard]] std::string text() const { return operator_text(name, settings); }
};
inline void PrintTo(const OperatorCase& c, std::ostream* out) { *out << c.label; }

// The results of one device for a block of clients, copied to the host.
template <class T>
struct Outcome {
  std::vector<Payload<T>> messages;  // [rounds * phases * K]
  std::vector<T> state;              // [K,P]
  std::vector<T> memory;             // [K,L]
  std::vector<std::uint8_t> behind;  // bytes behind state and memory: 0 if they are as they were
};

// Compares all of it; the line names the first array that differs.
template <class T>
[[nodiscard]] testing::AssertionResult same_outcome(const Where& where, const Outcome<T>& cpu, const Outcome<T>& gpu) {
  if (auto result = same_messages(where, cpu.messages, gpu.messages); !result) return result;
  if (auto result = same_numbers(where, "state", cpu.state, gpu.state); !result) return result;
  if (auto result = same_numbers(where, "memory", cpu.memory, gpu.memory); !result) return result;
  return same_words(where, "changes behind the end of state and memory", cpu.behind, gpu.behind);
}

// One block of clients: K x P inputs, p = 1 * e + 0.5 * g, the state written over e. With more terms, those of other clients' g as well.
template <class T>
struct ParityBlock {
  std::uint32_t K;
  std::size_t P;
  std::vector<T> e, g;  // [K,P]
  std::vector<std::uint32_t> clients, rows;
  int num_terms = 2;
};

template <class T>
ParityBlock<T> make_block(Pattern pattern, std::uint32_t K, std::size_t P) {
  ParityBlock<T> block{K, P, {}, {}, {}, {}, 2};
  for (std::uint32_t k = 0; k < K; ++k) {
    const RandomStream stream(7, k, 0);
    for (std::size_t j = 0; j < P; ++j) {
      block.e.push_back(number<T>(pattern, stream.bits(2 * j), j));
      block.g.push_back(number<T>(pattern, stream.bits(2 * j + 1), j));
    }
    block.clients.push_back(100 + 3 * k);
    block.rows.push_back(K - 1 - k);
  }
  return block;
}

// Returns whether memory is kept from case to case.
[[nodiscard]] inline bool keeps_rooms() { return !kSanitized && cuda::pools_memory(); }

// The memory of one device in which cases are computed, one after another.
template <class T>
class Room {
 public:
  explicit Room(Device device) : workspace(device), e(0, device), g(0, device), before(0, device), after(0, device), rows(0, device) {}

  // Makes it ready for a case with K vectors of P numbers and L remembered ones.
  void prepare(const ParityBlock<T>& block, std::size_t L) {
#if defined(FL_CUDA_EMULATOR)
    const emulator::DeviceAccess once;  // instead of one for each buffer, which takes longer than filling it
#endif
    messages.resize(std::max<std::size_t>(messages.size(), block.K));
    if (keeps_rooms()) {
      for (Payload<T>& message : messages) poison(message);
      poison_workspace();
    }
    for (Buffer<T>* buffer : {&e, &g}) resize(*buffer, block.K * block.P);
    for (Buffer<T>* buffer : {&before, &after}) resize(*buffer, block.K * L);
    resize(rows, block.K);
    copy(block.e, e);
    copy(block.g, g);
    copy(std::vector<T>(block.K * L), before);
    copy(block.rows, rows);
  }
  // Copies the first `count` entries to the host, and adds to `behind` what has become of the bytes after them.
  std::vector<T> fetch(const Buffer<T>& buffer, std::size_t count, std::vector<std::uint8_t>& behind) const {
    std::vector<T> values(buffer.size());
    if (!values.empty()) copy_bytes(values.data(), Device::cpu, buffer.data(), buffer.device(), values.size() * sizeof(T));
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(values.data());
    for (std::size_t i = count * sizeof(T); i < values.size() * sizeof(T); ++i) behind.push_back(bytes[i] ^ fill());
    values.resize(count);
    return values;
  }

  Workspace workspace;
  Buffer<T> e, g, before, after;
  Buffer<std::uint32_t> rows;
  std::vector<Payload<T>> messages;

 private:
  static constexpr std::size_t kBehind = 64;  // entries

  // Large as an index and as a number, and no NaN, which equals any other one.
  [[nodiscard]] std::uint8_t fill() const { return e.device() == Device::cpu ? 0xA5 : 0x5A; }
  void fill_bytes(void* memory, Device device, std::size_t bytes) const {
    if (bytes == 0) return;
    if (device == Device::cuda)
      FL_CUDA_CHECK(cudaMemsetAsync(memory, fill(), bytes, nullptr));
    else
      std::memset(memory, fill(), bytes);
  }
  template <class U>
  void resize(Buffer<U>& buffer, std::size_t size) const {
    if (!keeps_rooms()) {
      buffer.resize_discard(size);
      return;
    }
    buffer.resize_discard(size + kBehind);
    fill_bytes(buffer.data(), buffer.device(), buffer.size() * sizeof(U));
  }
  template <class U>
  void poison(Buffer<U>& buffer) const {
    fill_bytes(buffer.data(), buffer.device(), buffer.capacity() * sizeof(U));
  }
  void poison(Payload<T>& message) const {
    for (Payload<T>* part : {&message, &message.code()}) {
      poison(part->counts);
      poison(part->index);
      poison(part->value);
      poison(part->level_bytes);
      poison(part->scale);
      poison(part->excluded);
    }
    message.clear(0);
  }
  // One take of all there is, a multiple of what takes are rounded to.
  void poison_workspace() {
    constexpr std::size_t kRounded = 64;
    const std::size_t bytes = workspace.capacity_bytes() / kRounded * kRounded;
    if (bytes == 0) return;
    Workspace::Frame frame(workspace);
    fill_bytes(frame.take<std::byte>(bytes), e.device(), bytes);
  }
  template <class U>
  static void copy(const std::vector<U>& from, Buffer<U>& to) {
    if (!from.empty()) copy_bytes(to.data(), to.device(), from.data(), Device::cpu, from.size() * sizeof(U));
  }
};

template <class T>
[[nodiscard]] std::unique_ptr<Room<T>>& kept_room(Device device) {
  static std::unique_ptr<Room<T>> on_cpu, on_gpu;
  return device == Device::cpu ? on_cpu : on_gpu;
}
template <class T>
[[nodiscard]] Room<T>& room_of(Device device) {
  std::unique_ptr<Room<T>>& room = kept_room<T>(device);
  if (room == nullptr || !keeps_rooms()) room = std::make_unique<Room<T>>(device);
  return *room;
}
// Gives all rooms back, at the end of a suite that has used them.
inline void release_rooms() {
  for (const Device device : {Device::cpu, Device::cuda}) {
    kept_room<float>(device).reset();
    kept_room<double>(device).reset();
  }
}

// One round, or two where something is remembered; the mean of a phase is the first client's message.
template <class T>
Outcome<T> compress_on(Device device, const OperatorCase& tested, const Scope& wanted, StateRule rule, const ParityBlock<T>& block) {
  const auto op =
      make_part<Compressor<T>>("compressor", tested.name, compressor_options(tested.name, tested.settings), device, kPrecisionOf<T>);
  const Scope scope = op->adapt(wanted);
  op->check(scope);
  const std::size_t L = op->client_state_size(scope);
  Room<T>& room = room_of<T>(device);
  room.prepare(block, L);
  Exec exec;
  exec.device = device;
  exec.workspace = &room.workspace;
  const std::uint32_t* rows = room.rows.data();
  Affine<T> input;
  input.add(T(1), BatchView<const T>{room.e.data(), rows, block.K, block.P, block.P});
  if (block.num_terms > 1) input.add(T(0.5), BatchView<const T>{room.g.data(), nullptr, block.K, block.P, block.P});
  while (input.num_terms < block.num_terms)
    input.add(T(-0.3) * T(input.num_terms), BatchView<const T>{room.g.data(), rows, block.K, block.P, block.P});
  std::vector<T> estimate(block.P);
  Conversation<T> conversation(*op, scope, 42);

  Outcome<T> outcome;
  std::vector<Payload<T>*> pointers;
  for (std::uint32_t k = 0; k < block.K; ++k) pointers.push_back(&room.messages[k]);
  for (std::uint32_t round = 3; round < (L > 0 ? 5u : 4u); ++round) {
    for (conversation.open(round); !conversation.is_over();) {
      conversation.send(exec,
                        {.clients = block.clients,
                         .input = input,
                         .state = {rule, {room.e.data(), rows, block.K, block.P, block.P}},
                         .remembered = {room.before.data(), rows, block.K, L, L},
                         .remember = {room.after.data(), rows, block.K, L, L}},
                        pointers);
      for (const Payload<T>* message : pointers) cuda::copy_payload(*message, outcome.messages.emplace_back(), nullptr);
      const Payload<T>& first = *(outcome.messages.end() - block.K);
      std::vector<T> mean(first.length);
      if (conversation.num_phases() > 1) std::copy_n(first.value.data(), first.num_sent, mean.begin());
      conversation.receive(mean, estimate);
    }
    room.before.swap(room.after);
  }
  outcome.state = room.fetch(room.e, block.K * block.P, outcome.behind);
  outcome.memory = room.fetch(room.before, block.K * L, outcome.behind);
  return outcome;
}

}  // namespace fl::test
