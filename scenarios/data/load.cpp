#include "scenarios/data/load.hpp"

#include "fl_core/error.hpp"
#include "scenarios/data/cifar.hpp"
#include "scenarios/data/find_file.hpp"
#include "scenarios/data/image_sets.hpp"
#include "scenarios/data/normalise.hpp"

namespace fl {
namespace {

std::optional<DataLocation> locate_test(const FileDataOptions& options, const DataCatalog& catalog, const DataLocation& train) {
  if (options.test == "none") return std::nullopt;
  if (options.test == "auto") return catalog.find_test(train);
  return catalog.find(options.test);
}

template <class T>
LoadedData<T> load_libsvm(const FileDataOptions& options, const DataCatalog& catalog, const DataLocation& train) {
  const auto test = locate_test(options, catalog, train);
  LibsvmFormat format;
  format.storage = options.storage;
  format.labels = options.labels;
  format.num_rows = static_cast<std::size_t>(options.rows);
  format.num_features = static_cast<std::size_t>(options.features);
  LoadedData<T> loaded;
  loaded.train = read_data<T>(train, format);
  loaded.train_where = train.where();
  if (test) {
    loaded.test = read_data<T>(*test, format_like(loaded.train));
    loaded.test_where = test->where();
  }
  return loaded;
}

// Sets that come with their own test set have no place for another.
void require_own_test(const FileDataOptions& options, DataFormat format) {
  if (options.test != "auto" && options.test != "none")
    throw ConfigError("data.test: a data set in the format " + std::string(to_string(format)) +
                      " has a test set of its own; use \"auto\" or \"none\"");
}

DataFormat format_at(const FileDataOptions& options, const DataLocation& train) {
  if (options.formats.format != DataFormat::automatic) return options.formats.format;
  if (train.file.empty()) return DataFormat::libsvm;
  return is_folder(train.file) ? format_of_folder(train.file).value() : format_of_file(train.file);
}

template <class T>
LoadedData<T> load_as(DataFormat format, const FileDataOptions& options, const DataCatalog& catalog, const DataLocation& train) {
  switch (format) {
    case DataFormat::idx: require_own_test(options, format); return load_image_set<T>(train.file, options);
    case DataFormat::cifar: require_own_test(options, format); return load_cifar<T>(train.file, options);
    default: return load_libsvm<T>(options, catalog, train);
  }
}

}  // namespace

template <class T>
LoadedData<T> load_data(const FileDataOptions& options, const DataCatalog& catalog) {
  const DataLocation train = catalog.find(options.name);
  LoadedData<T> data = load_as<T>(format_at(options, train), options, catalog, train);
  apply(options.formats.images, data);
  return data;
}

template LoadedData<float> load_data<float>(const FileDataOptions&, const DataCatalog&);
template LoadedData<double> load_data<double>(const FileDataOptions&, const DataCatalog&);

}  // namespace fl
