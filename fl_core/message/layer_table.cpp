#include "fl_core/message/layer_table.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "fl_core/config/key_error.hpp"

namespace fl {
namespace {

// Which layers are excluded, by position in the table.
std::vector<bool> find_excluded(const LayerTable& table, const std::vector<std::string>& exclude) {
  std::vector<std::string> names;
  for (const Layer& layer : table.layers) names.push_back(layer.name);
  std::vector<bool> excluded(names.size(), false);
  std::vector<Problem> problems;
  for (const std::string& name : exclude) {
    const auto at = std::find(names.begin(), names.end(), name);
    if (at != names.end()) {
      excluded[static_cast<std::size_t>(at - names.begin())] = true;
      continue;
    }
    std::string known;
    for (const std::string& n : names) known += (known.empty() ? "" : ", ") + n;
    const std::string near = nearest_name(name, names);
    const std::string hint = near.empty() ? "" : "; did you mean \"" + near + "\"?";
    problems.push_back({"exclude", "the model has no layer \"" + name + "\"" + hint + " (its layers: " + known + ")"});
  }
  if (!problems.empty()) throw ConfigError(std::move(problems));
  return excluded;
}

Segment segment_of(const Layer& layer) { return {layer.begin, layer.begin + layer.size(), layer.rows, layer.cols}; }

Segment vector_segment(std::size_t begin, std::size_t end) { return {begin, end, end - begin, 1}; }

// Runs of neighbouring tensors become one vector; a tensor alone in its run keeps its matrix shape.
std::vector<Segment> merge_neighbours(const std::vector<Segment>& tensors) {
  std::vector<Segment> runs;
  for (const Segment& tensor : tensors) {
    if (!runs.empty() && runs.back().end == tensor.begin)
      runs.back() = vector_segment(runs.back().begin, tensor.end);
    else
      runs.push_back(tensor);
  }
  return runs;
}

std::vector<Segment> cut_into_buckets(const std::vector<Segment>& runs, std::size_t bucket) {
  std::vector<Segment> buckets;
  for (const Segment& run : runs)
    for (std::size_t begin = run.begin; begin < run.end;) {
      const std::size_t end = run.end - begin > bucket ? begin + bucket : run.end;
      buckets.push_back(vector_segment(begin, end));
      begin = end;
    }
  return buckets;
}

// Returns whether a name matches a pattern of characters, * and ?.
bool matches(std::string_view pattern, std::string_view name) {
  if (pattern.empty()) return name.empty();
  if (pattern.front() == '*') return matches(pattern.substr(1), name) || (!name.empty() && matches(pattern, name.substr(1)));
  return !name.empty() && (pattern.front() == '?' || pattern.front() == name.front()) && matches(pattern.substr(1), name.substr(1));
}

}  // namespace

void keep_tensors(LayerTable& table, const std::vector<std::string>& patterns) {
  std::string names;
  std::vector<std::string> known;  // names, and patterns of all tensors of a layer
  for (const Layer& layer : table.layers) {
    names += (names.empty() ? "" : ", ") + layer.name;
    known.push_back(layer.name);
    known.push_back(layer.name.substr(0, layer.name.rfind('.')) + ".*");
  }
  std::vector<Problem> problems;
  for (const std::string& pattern : patterns) {
    bool any = false;
    for (Layer& layer : table.layers) {
      if (!matches(pattern, layer.name)) continue;
      layer.kind = ParameterKind::kept;
      any = true;
    }
    if (any) continue;
    const std::string near = nearest_name(pattern, known);
    const std::string hint = near.empty() ? "" : "; did you mean \"" + near + "\"?";
    problems.push_back({"keep", "no tensor's name matches \"" + pattern + "\"" + hint + " (the model's tensors: " + names + ")"});
  }
  if (!problems.empty()) throw ConfigError(std::move(problems));
}

ParameterKinds kinds_of(const LayerTable& table) {
  ParameterKinds kinds;
  for (const Layer& layer : table.layers) {
    if (layer.size() == 0 || kind_of(layer) == ParameterKind::shared) continue;
    const ParameterRange range{layer.begin, layer.begin + layer.size(), layer.running_rate};
    (kind_of(layer) == ParameterKind::averaged ? kinds.averaged : kinds.kept).push_back(range);
    kinds.unshared.push_back(range);
  }
  return kinds;
}

std::vector<ParameterRange> running_averages_of(const LayerTable& table) {
  std::vector<ParameterRange> ranges;
  for (const Layer& layer : table.layers)
    if (layer.running_rate > 0 && layer.size() > 0) ranges.push_back({layer.begin, layer.begin + layer.size(), layer.running_rate});
  return ranges;
}

Scope make_scope(const LayerTable& table, ScopeKind kind, std::size_t bucket, const std::vector<std::string>& exclude) {
  if (kind == ScopeKind::bucket && bucket == 0)
    throw key_error("bucket", "must be > 0, is 0: scope = \"bucket\" needs a number of elements");
  const std::vector<bool> excluded = find_excluded(table, exclude);
  Scope scope;
  scope.kind = kind;
  scope.P = table.size();
  std::vector<Segment> tensors;
  for (std::size_t l = 0; l < table.layers.size(); ++l) {
    if (table.layers[l].size() == 0) continue;
    if (kind_of(table.layers[l]) != ParameterKind::shared) {
      scope.unshared.push_back(segment_of(table.layers[l]));
      continue;
    }
    (excluded[l] ? scope.excluded : tensors).push_back(segment_of(table.layers[l]));
  }
  if (tensors.empty())
    throw key_error("exclude", "nothing is left to compress: every layer is excluded; use the identity compressor instead");
  switch (kind) {
    case ScopeKind::tensor: scope.segments = std::move(tensors); break;
    case ScopeKind::model: scope.segments = merge_neighbours(tensors); break;
    case ScopeKind::bucket: scope.segments = cut_into_buckets(merge_neighbours(tensors), bucket); break;
  }
  return scope;
}

}  // namespace fl
