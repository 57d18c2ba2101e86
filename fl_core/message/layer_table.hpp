// The layers of a model in its flat parameter vector [P], and the segments on which a compressor works.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fl_core/config/device.hpp"
#include "fl_core/message/parameter_kinds.hpp"

namespace fl {

// One tensor: parameters begin .. begin+rows*cols-1, row-major. A vector has cols = 1.
struct Layer {
  std::string name;
  std::size_t begin = 0;
  std::size_t rows = 0, cols = 1;
  // If positive, the parameters are running averages (the means and variances of batch normalisation) and not weights. A local step moves
  // them by this fraction of their "gradient", independent of the step size, without momentum or penalties.
  double running_rate = 0;
  // The kind that a run chooses. Running averages are never shared, so that `shared` stands for `averaged` there; see kind_of().
  ParameterKind kind = ParameterKind::shared;
  [[nodiscard]] std::size_t size() const { return rows * cols; }
};

struct LayerTable {
  std::vector<Layer> layers;  // in order, without gaps
  [[nodiscard]] std::size_t size() const { return layers.empty() ? 0 : layers.back().begin + layers.back().size(); }
};

// Returns the kind of a tensor in a run.
[[nodiscard]] inline ParameterKind kind_of(const Layer& layer) {
  return layer.running_rate > 0 && layer.kind == ParameterKind::shared ? ParameterKind::averaged : layer.kind;
}

// Makes the tensors whose names match one of the patterns parameters that clients keep. In a pattern * stands for any characters and ? for
// one. Throws ConfigError for a pattern that matches no tensor, with the tensors' names.
FL_API void keep_tensors(LayerTable& table, const std::vector<std::string>& patterns);

// A run of parameters that an operator treats as one vector (or one matrix).
struct Segment {
  std::size_t begin = 0, end = 0;
  std::size_t rows = 0, cols = 1;  // matrix shape if the segment is a whole tensor; otherwise size x 1
  [[nodiscard]] FL_HD std::size_t size() const { return end - begin; }
};

enum class ScopeKind { model, tensor, bucket };

// The scope of an operator: the whole parameter vector, each tensor, or buckets of fixed size. Excluded tensors travel uncompressed beside
// the message. Parameters that are not shared are not part of the message: no operator reads, counts or writes them. `segments`, `excluded`
// and `unshared` together cover 0 .. P-1, each ascending.
struct Scope {
  ScopeKind kind = ScopeKind::model;
  std::vector<Segment> segments;
  std::vector<Segment> excluded;
  std::size_t P = 0;
  std::vector<Segment> unshared{};
  std::size_t clients = 0;  // the clients of the run whose messages these are; 0 outside of a run
};

// Builds the scope of a model. `bucket` applies to ScopeKind::bucket (elements, > 0; buckets do not cross excluded tensors). `exclude`
// names layers. Neither segments nor excluded tensors contain parameters that are not shared. Throws ConfigError for an unknown layer (with
// the nearest name) or if nothing is left to compress.
[[nodiscard]] FL_API Scope make_scope(const LayerTable& table, ScopeKind kind, std::size_t bucket, const std::vector<std::string>& exclude);

}  // namespace fl
