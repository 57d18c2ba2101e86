// Where the keys of a cell were written: in the file, on an axis of its sweep, with --set, or among the values of its tuning.
//
// Problems that are found after the file was read (data against options, parts against each other) name the key alone. with_places() puts
// the key's place before them.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fl_core/config/key_error.hpp"
#include "scenarios/file/config_tree.hpp"
#include "scenarios/file/sweep.hpp"

namespace fl {

// The value that one axis gives to its key.
struct AxisSource {
  std::string key;
  std::shared_ptr<const Node> node;
};

class FL_API KeyPlaces {
 public:
  // `axes` in their order: later ones replace what earlier ones set.
  KeyPlaces(std::shared_ptr<const Node> root, std::vector<AxisSource> axes) : root_(std::move(root)), axes_(std::move(axes)) {}

  // Returns the place of a key's value, or of the innermost table around it where the key is not written.
  [[nodiscard]] SourceLocation find(const std::string& path) const;
  // Returns the same places with another one for a key, which was set later.
  [[nodiscard]] std::shared_ptr<const KeyPlaces> with(const std::string& key, const SourceLocation& place) const;

 private:
  std::shared_ptr<const Node> root_;
  std::vector<AxisSource> axes_;
  std::vector<std::pair<std::string, SourceLocation>> later_;
};

// Returns the error with the places of the keys that its problems name: "file:line:column" and "key: message". Problems that have a place
// keep it; problems without a key get that of the model's or the scenario's table.
[[nodiscard]] FL_API ConfigError with_places(const ConfigError& error, const Cell& cell);

// Returns what f returns. ConfigErrors that f throws get the places of the cell's keys; a DataError becomes one of them, about the key of
// [data] that names the data.
template <class F>
decltype(auto) placing_errors(const Cell& cell, const F& f) {
  try {
    return f();
  } catch (const ConfigError& error) {
    throw with_places(error, cell);
  } catch (const DataError& error) {
    throw with_places(key_error(key_of_data(cell.scenario.data), error.what()), cell);
  }
}

}  // namespace fl
