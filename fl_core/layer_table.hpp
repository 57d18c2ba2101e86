// The layers of a model inside its flat parameter vector [P], and the segments in which a compressor sees it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "fl_core/device.hpp"

namespace fl {

// One tensor: parameters begin .. begin+rows*cols-1, row-major. A vector has cols = 1.
struct Layer {
  std::string name;
  std::size_t begin = 0;
  std::size_t rows = 0, cols = 1;
  // Above 0, these are statistics and no weights (of batch normalisation): a local step moves them by this part of their "gradient"
  // whatever the step size, and neither momentum nor penalties touch them.
  double statistic_rate = 0;
  [[nodiscard]] std::size_t size() const { return rows * cols; }
};

struct LayerTable {
  std::vector<Layer> layers;  // in order, without gaps
  [[nodiscard]] std::size_t size() const { return layers.empty() ? 0 : layers.back().begin + layers.back().size(); }
};

// A run of parameters that an operator treats as one vector (or one matrix).
struct Segment {
  std::size_t begin = 0, end = 0;
  std::size_t rows = 0, cols = 1;  // its matrix shape where it is a whole tensor; otherwise size x 1
  [[nodiscard]] FL_HD std::size_t size() const { return end - begin; }
};

enum class ScopeKind { model, tensor, bucket };

// How an operator is applied to the parameter vector: to all of it, to each tensor, or to buckets of fixed size; tensors that are
// excluded travel uncompressed beside the message. `segments` and `excluded` together cover 0 .. P-1, each ascending.
struct Scope {
  ScopeKind kind = ScopeKind::model;
  std::vector<Segment> segments;
  std::vector<Segment> excluded;
  std::size_t P = 0;
};

// Builds the scope of a model. `bucket` is used for ScopeKind::bucket (elements, > 0; buckets do not cross excluded tensors);
// `exclude` names layers. Throws ConfigError for an unknown layer (nearest name) or when nothing is left to compress.
[[nodiscard]] FL_API Scope make_scope(const LayerTable& table, ScopeKind kind, std::size_t bucket, const std::vector<std::string>& exclude);

}  // namespace fl
