#include "python/src/python_data.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <string>

namespace fl::python {

std::vector<Shard> PythonPartitioner::split(const PartitionRequest& request) const {
  std::vector<Shard> shards = with_python([&] {
    const auto [labels, to] = new_array<std::int64_t>({request.label.size()});
    std::ranges::copy(request.label, to);
    const auto [groups, at] = new_array<std::int64_t>({request.group.size()});
    std::ranges::copy(request.group, at);
    nb::dict facts;
    facts["num_rows"] = request.num_rows;
    facts["num_clients"] = request.num_clients;
    facts["num_classes"] = request.num_classes;
    facts["seed"] = request.seed;
    facts["labels"] = request.label.empty() ? nb::none() : labels;
    facts["groups"] = request.group.empty() ? nb::none() : groups;
    std::vector<Shard> found;
    for (const nb::handle rows : object_.call("_split", facts)) {
      const auto array = nb::cast<nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>>(rows);
      const std::vector<std::int64_t> numbers(array.data(), array.data() + array.shape(0));  // checked as they are then used
      for (const std::int64_t row : numbers)
        if (row < 0 || static_cast<std::size_t>(row) >= request.num_rows)
          throw ConfigError(kind_ + " gives row " + std::to_string(row) + " to client " + std::to_string(found.size()) + "; there are " +
                            std::to_string(request.num_rows) + ", from 0");
      found.emplace_back(numbers.begin(), numbers.end());
    }
    return found;
  });
  for (Shard& shard : shards) std::ranges::sort(shard);
  check(shards, request);
  return shards;
}

void PythonPartitioner::check(const std::vector<Shard>& shards, const PartitionRequest& request) const {
  if (shards.size() != request.num_clients)
    throw ConfigError(kind_ + " makes " + std::to_string(shards.size()) + " clients, not " + std::to_string(request.num_clients));
  std::vector<bool> is_given(request.num_rows);
  for (std::size_t client = 0; client < shards.size(); ++client) {
    if (shards[client].empty()) throw ConfigError(kind_ + " gives client " + std::to_string(client) + " no row");
    for (const std::uint32_t row : shards[client]) {
      if (is_given[row]) throw ConfigError(kind_ + " gives row " + std::to_string(row) + " twice");
      is_given[row] = true;
    }
  }
  const auto left = std::ranges::find(is_given, false);
  if (left != is_given.end()) throw ConfigError(kind_ + " gives row " + std::to_string(left - is_given.begin()) + " to no client");
}

bool PythonPartitioner::draws() const {
  return with_python([&] { return nb::cast<bool>(object_.call("_draws")); });
}

// Copies arrays: features [m,D] of T, or bytes of images, and classes or targets.
template <class T>
Dataset<T> PythonData<T>::dataset_of(const nb::object& arrays) const {
  Dataset<T> data;
  data.name = kind_;
  data.shape = nb::cast<std::vector<std::size_t>>(arrays.attr("shape"));
  data.num_classes = nb::cast<std::size_t>(arrays.attr("num_classes"));
  data.class_names = nb::cast<std::vector<std::string>>(arrays.attr("class_names"));
  const auto copy_rows = [&data](const auto& features, auto* to, std::size_t stride) {
    for (std::size_t row = 0; row < data.num_rows; ++row)
      std::copy_n(features.data() + row * data.num_features, data.num_features, to + row * stride);
  };
  const auto set_size = [&data](const auto& features) {
    data.num_rows = features.shape(0);
    data.num_features = features.shape(1);
  };
  const nb::object features = arrays.attr("features");
  if (nb::cast<bool>(arrays.attr("has_bytes"))) {
    const auto bytes = nb::cast<nb::ndarray<const std::uint8_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>>(features);
    set_size(bytes);
    data.images.pixels = Buffer<std::uint8_t>(data.num_rows * data.num_features);
    copy_rows(bytes, data.images.pixels.data(), data.num_features);
  } else {
    const auto numbers = nb::cast<nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>>(features);
    set_size(numbers);
    data.allocate_dense();
    copy_rows(numbers, data.dense.data(), data.dense_stride());
  }
  if (data.shape.size() < 2) data.shape.clear();
  const nb::object labels = arrays.attr("labels");
  if (data.num_classes > 0) {
    const auto classes = nb::cast<nb::ndarray<const std::int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>>(labels);
    data.label.assign(classes.data(), classes.data() + classes.shape(0));
    for (const std::int32_t label : data.label)
      if (label < 0 || static_cast<std::size_t>(label) >= data.num_classes)
        throw ConfigError(kind_ + " has the class " + std::to_string(label) + " of " + std::to_string(data.num_classes) +
                          ", from 0; its arrays changed while they were read");
  } else {
    const auto targets = nb::cast<nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>>(labels);
    data.target.assign(targets.data(), targets.data() + targets.shape(0));
  }
  return data;
}

template <class T>
Dataset<T> PythonData<T>::generate(std::uint64_t) const {
  return with_python([&] { return dataset_of(object_.call("_arrays", "train", sizeof(T) == sizeof(float) ? "float32" : "float64")); });
}

template <class T>
std::optional<Dataset<T>> PythonData<T>::generate_test(std::uint64_t) const {
  return with_python([&]() -> std::optional<Dataset<T>> {
    const nb::object arrays = object_.call("_arrays", "test", sizeof(T) == sizeof(float) ? "float32" : "float64");
    if (arrays.is_none()) return std::nullopt;
    return dataset_of(arrays);
  });
}

template class PythonData<float>;
template class PythonData<double>;

}  // namespace fl::python
