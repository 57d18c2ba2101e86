// One operation of the GPU engine alone: inputs on the GPU, a comparison with a plain reference, and times.
//
//   p = e + 0.1 g is sent by the operation, and the residual overwrites e, as in a round with error feedback     e, g, p: [K,P] float32
//
// A program of the workbench is a class with these members, and a call of run_program<Operation>():
//
//   static constexpr const char* kName;
//   Operation(const Options&, const Scope&);
//   void look_at(std::span<const float> p);      // row 0 of each kind of input, before the operation runs
//   void run(const Exec&, const Affine<float>&, const Scope&, const StateWrite<float>&, std::span<Payload<float>* const>);
//   std::vector<std::uint32_t> kept(std::span<const float> segment) const;    // the reference: positions that are sent, ascending
//
// bench/workbench/build.sh builds it with nvcc alone. In the preset `emulator` it is a program of the build; the times are not real there.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "fl_core/memory/batch_view.hpp"
#include "fl_core/memory/buffer.hpp"
#include "fl_core/memory/cuda/memory.hpp"
#include "fl_core/memory/exec.hpp"
#include "fl_core/message/layer_table.hpp"
#include "fl_core/message/payload.hpp"
#include "fl_core/ops/cuda/check.cuh"
#include "fl_core/ops/cuda/measured_choice.hpp"
#include "fl_core/ops/cuda/payload_copy.hpp"

namespace fl::workbench {

// ---- options ----

struct Options {
  std::uint32_t rows = 1000;       // K
  std::size_t length = 1'000'000;  // P
  std::size_t segment = 0;         // entries of a segment; 0: a row is one segment
  double kept = 0.01;              // share of a segment that is sent
  std::uint32_t checked = 8;       // rows that are compared
  int repeats = 20;                // timed runs; 0: the comparison alone
  std::string input = "all";       // or one of kInputNames
};

enum class Input { normal, ties, zeros };
inline constexpr Input kInputs[] = {Input::normal, Input::ties, Input::zeros};
inline constexpr const char* kInputNames[] = {"normal", "ties", "zeros"};
[[nodiscard]] inline const char* to_string(Input input) { return kInputNames[static_cast<std::size_t>(input)]; }

// Sets `to` to the number in `text`. Returns false if it is no number from `least` to `most`.
template <class Number>
[[nodiscard]] bool set_number(const char* text, double least, double most, Number& to) {
  char* end = nullptr;
  const double number = std::strtod(text, &end);
  if (end == text || *end != '\0' || !(number >= least && number <= most)) return false;
  to = static_cast<Number>(number);
  return true;
}

// Sets an option. Returns false if it is unknown or its value is not valid.
[[nodiscard]] inline bool set_option(std::string_view name, const char* value, Options& to) {
  constexpr double kMost = 4294967295.0;  // positions in a message are 32-bit numbers
  if (name == "--rows") return set_number(value, 1, kMost, to.rows);
  if (name == "--length") return set_number(value, 1, kMost, to.length);
  if (name == "--segment") return set_number(value, 0, kMost, to.segment);
  if (name == "--kept") return set_number(value, 0, 1, to.kept);
  if (name == "--checked") return set_number(value, 1, kMost, to.checked);
  if (name == "--repeats") return set_number(value, 0, 1e6, to.repeats);
  if (name != "--input") return false;
  to.input = value;
  return to.input == "all" || std::ranges::find(kInputNames, to.input) != std::end(kInputNames);
}

// Returns what is wrong with the command line, or "".
[[nodiscard]] inline std::string parse(std::span<char* const> words, Options& to) {
  for (std::size_t i = 0; i < words.size(); i += 2) {
    const std::string name = words[i];
    if (i + 1 == words.size()) return name + ": unknown option, or no value";
    if (!set_option(name, words[i + 1], to)) return name + " " + words[i + 1] + ": unknown option or invalid value";
  }
  return "";
}

// Returns rows of `length` entries cut into segments of `segment` entries; the last one may be shorter.
[[nodiscard]] inline Scope scope_of(const Options& options) {
  Scope scope;
  scope.P = options.length;
  const std::size_t step = options.segment == 0 ? options.length : options.segment;
  for (std::size_t begin = 0; begin < scope.P; begin += step) {
    const std::size_t end = std::min(begin + step, scope.P);
    scope.segments.push_back({begin, end, end - begin, 1});
  }
  return scope;
}

// Returns how many entries of a segment of this size are sent: at least one.
[[nodiscard]] inline std::uint32_t kept_entries(double share, std::size_t size) {
  const auto entries = static_cast<std::size_t>(share * static_cast<double>(size));
  return static_cast<std::uint32_t>(std::clamp<std::size_t>(entries, 1, size));
}

// Returns |p| as an integer in the order of magnitudes.
[[nodiscard]] inline std::uint32_t magnitude_bits(float p) { return std::bit_cast<std::uint32_t>(p) & 0x7FFFFFFFu; }

// ---- inputs ----

// Returns random word i of a seed (SplitMix64: Steele, Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014).
[[nodiscard]] FL_HD inline std::uint64_t random_word(std::uint64_t seed, std::uint64_t i) {
  std::uint64_t z = (seed << 40) + (i + 1) * 0x9E3779B97F4A7C15u;
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
  z = (z ^ z >> 27) * 0x94D049BB133111EBu;
  return z ^ z >> 31;
}

// normal: approximately, the sum of four uniform numbers. ties: 150 magnitudes. zeros: of both signs.
[[nodiscard]] FL_HD inline float number(Input input, std::uint64_t word) {
  const float sign = word % 2 == 0 ? 1.0f : -1.0f;
  switch (input) {
    case Input::normal:
      return static_cast<float>((word & 0xFFFF) + (word >> 16 & 0xFFFF) + (word >> 32 & 0xFFFF) + (word >> 48)) * 0x1p-16f - 2;
    case Input::ties: return sign * static_cast<float>((word >> 8) % 150);
    case Input::zeros: break;
  }
  return sign * 0.0f;
}

template <class T>
__global__ void draw(Input input, std::uint64_t seed, std::size_t n, T* out) {
  for (std::size_t i = cuda::thread_index(); i < n; i += cuda::num_threads()) out[i] = number(input, random_word(seed, i));
}

// The vectors and messages of K clients on the GPU.
class Cohort {
 public:
  Cohort(const Options& options, const Scope& scope)
      : K_(options.rows),
        P_(scope.P),
        scope_(scope),
        workspace_(Device::cuda),
        stream_(Device::cuda),
        drawn_(K_ * P_, Device::cuda),
        error_(K_ * P_, Device::cuda),
        gradient_(K_ * P_, Device::cuda),
        messages_(K_) {
    exec_.device = Device::cuda;
    exec_.stream = stream_.get();
    exec_.workspace = &workspace_;
    for (Payload<float>& message : messages_) {
      message.place_on(Device::cuda);
      out_.push_back(&message);
    }
  }

  [[nodiscard]] const Exec& exec() const { return exec_; }
  [[nodiscard]] double row_bytes() const { return 4.0 * static_cast<double>(K_) * static_cast<double>(P_); }  // of one matrix

  // Draws e and g. Ties draw both alike, so that equal entries of e are equal entries of p.
  void draw_inputs(Input input) {
    const std::size_t n = K_ * P_, blocks = std::min<std::size_t>(cuda::blocks_for(n), 1 << 16);
    cuda::Launch(exec_, "draw", blocks)(draw<float>, input, 1, n, drawn_.data());
    cuda::Launch(exec_, "draw", blocks)(draw<float>, input, input == Input::ties ? 1 : 2, n, gradient_.data());
  }
  // Sets e to what was drawn, and clears the messages.
  void restore() {
    copy_bytes(error_.data(), Device::cuda, drawn_.data(), Device::cuda, K_ * P_ * sizeof(float), exec_.stream);
    for (Payload<float>& message : messages_) message.clear(P_);
  }
  template <class Operation>
  void run(Operation& operation) {
    const BatchView<float> e{error_.data(), nullptr, K_, P_, P_}, g{gradient_.data(), nullptr, K_, P_, P_};
    operation.run(exec_, Affine<float>().add(1.0f, e).add(kGamma, g), scope_, {StateRule::residual, e}, out_);
  }

  // Returns p of a row, computed on the host.
  [[nodiscard]] std::vector<float> input_row(std::uint32_t k) {
    const std::vector<float> e = fetched(drawn_, k), g = fetched(gradient_, k);
    const BatchView<const float> e_row{e.data(), nullptr, 1, P_, P_}, g_row{g.data(), nullptr, 1, P_, P_};
    const Affine<float> input = Affine<float>().add(1.0f, e_row).add(kGamma, g_row);
    std::vector<float> p(P_);
    for (std::size_t j = 0; j < P_; ++j) p[j] = input.at(0, j);
    return p;
  }
  [[nodiscard]] std::vector<float> state_row(std::uint32_t k) { return fetched(error_, k); }
  // Copies the message of a row to the host.
  void fetch_message(std::uint32_t k, Payload<float>& to) { cuda::copy_payload(messages_[k], to, exec_.stream); }
  [[nodiscard]] double num_sent() const {
    double sum = 0;
    for (const Payload<float>& message : messages_) sum += static_cast<double>(message.num_sent);
    return sum;
  }

 private:
  static constexpr float kGamma = 0.1f;
  [[nodiscard]] std::vector<float> fetched(const Buffer<float>& from, std::uint32_t k) {
    std::vector<float> row(P_);
    copy_bytes(row.data(), Device::cpu, from.data() + k * P_, Device::cuda, P_ * sizeof(float), exec_.stream);
    return row;
  }

  std::uint32_t K_;
  std::size_t P_;
  const Scope& scope_;
  Workspace workspace_;
  DeviceStream stream_;
  Exec exec_;
  Buffer<float> drawn_, error_, gradient_;  // [K,P]
  std::vector<Payload<float>> messages_;    // [K]
  std::vector<Payload<float>*> out_;
};

// ---- comparison ----

// Compares arrays bit by bit and prints the first differences, as the GPU tests do (tests/gpu/first_difference.hpp).
class Comparison {
 public:
  explicit Comparison(std::string where) : where_(std::move(where)) {}

  template <class U>
  void compare(std::uint32_t row, const char* what, std::span<const U> reference, std::span<const U> gpu) {
    const std::size_t shared = std::min(reference.size(), gpu.size());
    std::vector<std::size_t> differing;
    for (std::size_t i = 0; i < shared; ++i)
      if (std::bit_cast<std::uint32_t>(reference[i]) != std::bit_cast<std::uint32_t>(gpu[i])) differing.push_back(i);
    if (differing.empty() && reference.size() == gpu.size()) return;
    if (++num_arrays_ > kMostArrays) return;
    std::printf("%s: %s, row %u, %s: ", num_arrays_ == 1 ? "FIRST DIFFERENCE" : "DIFFERENCE", where_.c_str(), row, what);
    if (reference.size() != gpu.size())
      std::printf("%zu entries in the reference and %zu entries on the GPU; ", reference.size(), gpu.size());
    for (std::size_t n = 0; n < std::min(differing.size(), kMostEntries); ++n) {
      const std::size_t i = differing[n];
      std::printf("[%zu] is %s in the reference and %s on the GPU; ", i, text_of(reference[i]).c_str(), text_of(gpu[i]).c_str());
    }
    std::printf("%zu of %zu differ\n", differing.size(), shared);
  }
  [[nodiscard]] bool is_same() const { return num_arrays_ == 0; }
  void print_omitted() const {
    if (num_arrays_ > kMostArrays) std::printf("%zu more arrays differ\n", num_arrays_ - kMostArrays);
  }

 private:
  static constexpr std::size_t kMostArrays = 8, kMostEntries = 4;
  // Returns a 32-bit number in hexadecimal and in decimal.
  template <class U>
  [[nodiscard]] static std::string text_of(U value) {
    char text[64];
    const auto bits = std::bit_cast<std::uint32_t>(value);
    if constexpr (std::is_floating_point_v<U>)
      std::snprintf(text, sizeof text, "0x%08x (%.9g)", bits, static_cast<double>(value));
    else
      std::snprintf(text, sizeof text, "0x%08x (%u)", bits, bits);
    return text;
  }
  std::string where_;           // the operation and the input
  std::size_t num_arrays_ = 0;  // that differ
};

// A message and the state, as the reference computes them.
struct Expected {
  std::vector<std::uint32_t> counts, index;
  std::vector<float> value, state;
};
template <class Operation>
[[nodiscard]] Expected expected_of(const Operation& operation, const Scope& scope, const std::vector<float>& p) {
  Expected row;
  row.state = p;
  for (const Segment& segment : scope.segments) {
    const std::vector<std::uint32_t> kept = operation.kept(std::span(p).subspan(segment.begin, segment.size()));
    row.counts.push_back(static_cast<std::uint32_t>(kept.size()));
    for (const std::uint32_t i : kept) {
      const std::size_t j = segment.begin + i;
      row.index.push_back(static_cast<std::uint32_t>(j));
      row.value.push_back(p[j]);
      row.state[j] = p[j] - p[j];
    }
  }
  return row;
}

// Compares rows with the reference, evenly spread from the first row to the last. Returns whether they are the same.
template <class Operation>
[[nodiscard]] bool is_as_expected(const Operation& operation, Input input, const Options& options, const Scope& scope, Cohort& cohort) {
  const std::uint32_t rows = std::min(options.checked, options.rows);
  Comparison comparison(std::string(Operation::kName) + ", input " + to_string(input));
  for (std::uint32_t n = 0; n < rows; ++n) {
    const auto k = rows == 1 ? 0 : static_cast<std::uint32_t>(std::uint64_t{n} * (options.rows - 1) / (rows - 1));
    const Expected expected = expected_of(operation, scope, cohort.input_row(k));
    Payload<float> message;
    cohort.fetch_message(k, message);
    const auto sent = [&message](const auto& buffer) { return buffer.span().first(std::min(message.num_sent, buffer.size())); };
    comparison.compare<std::uint32_t>(k, "counts of segments", expected.counts, message.counts.span());
    comparison.compare<std::uint32_t>(k, "indices", expected.index, sent(message.index));
    comparison.compare<float>(k, "values", expected.value, sent(message.value));
    comparison.compare<float>(k, "state", expected.state, cohort.state_row(k));
  }
  comparison.print_omitted();
  return comparison.is_same();
}

// ---- times ----

// Runs the operation again and again on the same input, and prints the median time beside that of a copy on the GPU. The copy is the one
// that restores e before each run.
template <class Operation>
void time_runs(Operation& operation, int repeats, Cohort& cohort) {
  cuda::StreamTimer timer;
  std::vector<double> run_s, copy_s;
  for (int i = 0; i < repeats; ++i) {
    timer.start(cohort.exec());
    cohort.restore();
    copy_s.push_back(timer.stop(cohort.exec()));
    timer.start(cohort.exec());
    cohort.run(operation);
    run_s.push_back(timer.stop(cohort.exec()));
  }
  std::ranges::sort(run_s);
  std::ranges::sort(copy_s);
  const double seconds = run_s[run_s.size() / 2], sent_bytes = 8 * cohort.num_sent();
  const double bytes = 3 * cohort.row_bytes() + sent_bytes;  // e and g are read, e and the message are written
  const double speed = bytes / seconds, copy_speed = 2 * cohort.row_bytes() / copy_s[copy_s.size() / 2];
  std::printf("  %10.4f ms (%.4f to %.4f), at least %.4f GB, %.1f GB/s: %.3f of the copy's %.1f GB/s\n", 1e3 * seconds, 1e3 * run_s.front(),
              1e3 * run_s.back(), 1e-9 * bytes, 1e-9 * speed, speed / copy_speed, 1e-9 * copy_speed);
}

// ---- program ----

// Compares, times and compares again: a race may show in the last of many runs only. Returns whether all is the same.
template <class Operation>
[[nodiscard]] bool try_input(Operation& operation, Input input, const Options& options, const Scope& scope, Cohort& cohort) {
  cohort.draw_inputs(input);
  cohort.restore();
  operation.look_at(cohort.input_row(0));
  cohort.run(operation);
  bool is_same = is_as_expected(operation, input, options, scope, cohort);
  std::printf("%-8s %s, %u of %u rows compared\n", to_string(input), is_same ? "same" : "DIFFERS", std::min(options.checked, options.rows),
              options.rows);
  if (options.repeats > 0) {
    time_runs(operation, options.repeats, cohort);
    if (is_same && !is_as_expected(operation, input, options, scope, cohort)) {
      is_same = false;
      std::printf("%-8s DIFFERS after the timed runs\n", to_string(input));
    }
  }
  std::fflush(stdout);
  return is_same;
}

// Exit codes: 0 same, 1 different or an error of the GPU, 2 wrong command line, 3 no GPU.
template <class Operation>
int run_program(int argc, char** argv) {
  Options options;
  if (const std::string fault = parse({argv + 1, argv + argc}, options); !fault.empty()) {
    std::fprintf(stderr,
                 "%s: %s\nusage: %s [--rows 1000] [--length 1000000] [--segment 0] [--kept 0.01] [--checked 8] [--repeats 20]\n"
                 "       [--input all | normal | ties | zeros]\n",
                 Operation::kName, fault.c_str(), Operation::kName);
    return 2;
  }
  if (const std::string why = cuda::why_no_device(); !why.empty()) {
    std::printf("%s: no GPU: %s\n", Operation::kName, why.c_str());
    return 3;
  }
  try {
    const Scope scope = scope_of(options);
    std::printf("%s on %s: %u rows of %zu float32 numbers, %zu segments, share %g\n", Operation::kName, cuda::device_name().c_str(),
                options.rows, options.length, scope.segments.size(), options.kept);
    Operation operation(options, scope);
    Cohort cohort(options, scope);
    bool is_same = true;
    for (const Input input : kInputs)
      if (options.input == "all" || options.input == to_string(input))
        is_same = try_input(operation, input, options, scope, cohort) && is_same;
    return is_same ? 0 : 1;
  } catch (const std::exception& error) {
    std::printf("%s: %s\n", Operation::kName, error.what());
    return 1;
  }
}

}  // namespace fl::workbench
