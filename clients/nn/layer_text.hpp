// Layers as scenario files write them:   "conv2d(32, 5, padding=2)"   "relu"   "dense(classes)"   "residual([conv2d(64, 3), relu])"
//
// A call names a layer and gives its options, by name or in the order of `fedbits list layers`. A value is a number, true or false, a word
// (one of a choice, or a name such as `classes` that stands for a number of the data), or a list of layers in brackets.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "clients/nn/module.hpp"

namespace fl::nn {

// Numbers of the data that a layer may name: classes, features, vocabulary, users, items.
using DataNames = std::map<std::string, std::int64_t>;

// Makes the layer, not yet bound. Throws ConfigError, quoting `text` and the position, for wrong syntax, an unknown layer or option, or a
// value out of bounds.
template <class T>
[[nodiscard]] FL_API std::unique_ptr<Module<T>> make_layer(const std::string& text, const DataNames& names);

// Adds the problems of a list of layers that are visible before any data is known.
FL_API void check_layers(const std::string& key, const std::vector<std::string>& layers, Problems& problems);

// Adds a problem unless `layer` is one of `known`, the layer names that an option of a model allows.
FL_API void check_choice_of_layer(const std::string& key, const std::string& layer, const std::vector<std::string>& known,
                                  Problems& problems);

// Returns the text of a layer for messages; a long text is cut to its beginning.
[[nodiscard]] FL_API std::string shown_layer(const std::string& text);

}  // namespace fl::nn
