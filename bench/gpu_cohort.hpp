// The operators and message sums that gpu_bench times and gpu_traffic counts, and their inputs.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bench/gpu_numbers.hpp"
#include "compressors/conversation.hpp"
#include "fl_core/config/registry.hpp"
#include "fl_core/memory/buffer.hpp"

namespace fl::bench {

struct Operator {
  std::string label, kind;
  std::vector<std::pair<std::string, Value>> settings{};
  std::size_t bucket = 0;  // 0: whole vectors
  double bytes = 12;       // minimum bytes read and written per parameter, without the message
  double goal = 0;         // target share of the peak
  double sampled = 0;      // fraction of the inputs read at random places before they are read in order
};

// p = e + gamma g is compressed and the residual overwrites e: both are read and one is written, 12 bytes. These take more:
//   ef_sign, three_lc   both are read twice, because the scale of all of p comes first: 20
//   drive               rotates and rotates back, two Walsh-Hadamard transforms each, of N numbers, the largest power of two that is no
//   more
//                       than n = P. A block holds a part of them, so each transform takes two passes. With f = N / n:
//                         to z:       both read 8, all written 4, then three passes that read and write 24 f
//                         its levels: z is read once more, for the scale comes from all of it 4, and they are written 1
//                         back:       levels read 1; first transform 12 f; where the two overlap 8 f - 4; second one 4 f + 4 f;
//                                     what lies behind it 4 - 4 f
//                         the rest:   both are read again for the residual, which is written 12
//                       30 + 48 f in all, f = 0.524288
// dgc_sampled's threshold comes from a sample of single numbers; one that is corrected takes more.
[[nodiscard]] inline std::vector<Operator> compressed_rows() {
  return {
      {"hard_threshold, about 1%", "hard_threshold", {{"threshold", Value{1.6}}}, 0, 12, 0.8},
      {"random_k 0.1%", "random_k", {{"ratio", Value{0.001}}}, 0, 12, 0.8},
      {"qsgd 127, buckets of 512", "qsgd", {}, 512, 12, 0.8},
      {"top_k 1%, segments of 100,000", "top_k", {{"ratio", Value{0.01}}}, 100000, 12, 0.7},
      {"top_k 1%, whole vectors", "top_k", {{"ratio", Value{0.01}}}, 0, 12, 0.5},
      {"ef_sign, whole vectors", "ef_sign", {}, 0, 20, 0.7},
      {"natural, stochastic", "natural", {}, 0, 12, 0},
      {"stc 1%", "stc", {{"ratio", Value{0.01}}}, 0, 12, 0},
      {"three_lc", "three_lc", {}, 0, 20, 0},
      {"drive", "drive", {}, 0, 55.2, 0},
      {"dgc_sampled 1%", "dgc_sampled", {{"ratio", Value{0.01}}, {"sample", Value{0.01}}}, 0, 12, 0, 0.01},
  };
}

// Messages to be summed; their content is read.
[[nodiscard]] inline std::vector<Operator> summed_rows() {
  return {
      {"all values", "identity", {}, 0, 4, 0.8},
      {"random_k 1%", "random_k", {{"ratio", Value{0.01}}}, 0, 0.08, 0},
      {"top_k 1%, segments of 100,000", "top_k", {{"ratio", Value{0.01}}}, 100000, 0.08, 0},
      {"qsgd 127, buckets of 512", "qsgd", {}, 512, 1, 0},
  };
}

// K clients with vectors of P numbers and their messages, all in the GPU's own memory.
class Cohort {
 public:
  Cohort(std::uint32_t clients, std::size_t parameters)
      : K(clients),
        P(parameters),
        workspace_(Device::cuda),
        stream_(Device::cuda),
        error_(K * P, Device::cuda),
        gradient_(K * P, Device::cuda),
        messages_(K) {
    exec_.device = Device::cuda;
    exec_.stream = stream_.get();
    exec_.workspace = &workspace_;
    draw_operands(exec_, gradient_.data(), K, P);
    for (std::uint32_t k = 0; k < K; ++k) {
      ids_.push_back(k);
      rows_.push_back(&messages_[k]);
      messages_[k].place_on(Device::cuda);
    }
  }
  void restore() { copy_bytes(error_.data(), Device::cuda, gradient_.data(), Device::cuda, K * P * sizeof(float), stream_.get()); }
  void compress(Compressor<float>& op, const Scope& scope) {
    const BatchView<float> e = rows_view(error_.data(), K, P), g = rows_view(gradient_.data(), K, P);
    Senders<float> senders{.clients = ids_, .state = {StateRule::residual, e}};
    senders.input.add(1.0f, e).add(0.1f, g);
    Conversation<float> conversation(op, scope, 42);
    conversation.open(++round_);
    conversation.send(exec_, senders, rows_);
  }
  [[nodiscard]] double entries() const { return static_cast<double>(K) * static_cast<double>(P); }
  [[nodiscard]] std::string text() const { return std::to_string(K) + " clients x " + std::to_string(P) + " float32 parameters"; }
  [[nodiscard]] std::vector<const Payload<float>*> messages() const { return {rows_.begin(), rows_.end()}; }
  const std::uint32_t K;
  const std::size_t P;

 private:
  Workspace workspace_;
  DeviceStream stream_;
  Exec exec_;
  Buffer<float> error_, gradient_;
  std::vector<Payload<float>> messages_;
  std::vector<Payload<float>*> rows_;
  std::vector<std::uint32_t> ids_;
  std::uint32_t round_ = 0;
};

inline std::unique_ptr<Compressor<float>> make(const Operator& one) {
  Options options = Registry::instance().default_options("compressor", one.kind);
  Schema schema = options.schema();
  for (const auto& [key, value] : one.settings)
    if (Field* field = schema.find(key)) (void)field->assign(value);
  return make_part<Compressor<float>>("compressor", one.kind, options, Device::cuda, Precision::float32);
}

inline Scope scope_of(const Compressor<float>& op, const Operator& one, std::size_t P) {
  LayerTable table;
  table.layers.push_back({"all", 0, P, 1});
  const auto bucket = static_cast<std::int64_t>(std::min(one.bucket, P));
  return op.adapt(make_scope(table, one.bucket == 0 ? ScopeKind::model : ScopeKind::bucket, bucket, {}));
}

}  // namespace fl::bench
