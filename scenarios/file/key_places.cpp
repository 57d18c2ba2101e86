#include "scenarios/file/key_places.hpp"

#include "scenarios/file/sweep_reader.hpp"

namespace fl {
namespace {

// Follows `path` as far as it is written.
SourceLocation place_in(const Node& root, const std::string& path) {
  const Node* node = &root;
  for (const std::string& key : split_path(path)) {
    if (node->kind != Node::Kind::table) break;
    const auto member = node->members.find(key);
    if (member == node->members.end()) break;
    node = &member->second;
  }
  return node->place;
}

}  // namespace

SourceLocation KeyPlaces::find(const std::string& path) const {
  for (auto later = later_.rbegin(); later != later_.rend(); ++later)
    if (holds(later->first, path)) return later->second;
  for (auto axis = axes_.rbegin(); axis != axes_.rend(); ++axis)
    if (holds(axis->key, path)) return place_in(*axis->node, path == axis->key ? "" : path.substr(axis->key.size() + 1));
  return place_in(*root_, path);
}

std::shared_ptr<const KeyPlaces> KeyPlaces::with(const std::string& key, const SourceLocation& place) const {
  auto changed = std::make_shared<KeyPlaces>(*this);
  changed->later_.emplace_back(key, place);
  return changed;
}

ConfigError with_places(const ConfigError& error, const Cell& cell) {
  if (cell.places == nullptr) return error;
  ProblemList problems;
  for (const Problem& problem : error.problems()) {
    if (!problem.where.empty() && !is_scenario_key(problem.where)) {
      problems.add(SourceLocation{problem.where}, problem.message);
      continue;
    }
    const std::string before = problem.where.empty() ? "" : problem.where + ": ";
    problems.add(cell.places->find(problem.where), before + problem.message);
  }
  return problems.error();
}

}  // namespace fl
