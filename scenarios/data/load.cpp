#include "scenarios/data/load.hpp"

#include "scenarios/data/image_sets.hpp"

namespace fl {
namespace {

std::optional<DataLocation> locate_test(const FileDataOptions& options, const DataCatalog& catalog, const DataLocation& train) {
  if (options.test == "none") return std::nullopt;
  if (options.test == "auto") return catalog.find_test(train);
  return catalog.find(options.test);
}

}  // namespace

void describe(Schema& schema, FileDataOptions& options) {
  constexpr double kMaxRows = 4294967295.0, kMaxFeatures = 2147483648.0;
  schema.field("name", options.name, "data set: a name that `fedbits data` shows, a file below a data folder, or a path").required();
  schema.field("test", options.test, "test set: a name like the above, \"auto\" for <name>.t where there is one, \"none\"");
  schema.field("rows", options.rows, "rows kept from the front of the training file; 0 = all").at_least(0).at_most(kMaxRows);
  schema.field("features", options.features, "number of features; 0 = the largest index in the training file")
      .at_least(0)
      .at_most(kMaxFeatures);
  schema.choice("storage", options.storage, {{Storage::automatic, "auto"}, {Storage::dense, "dense"}, {Storage::sparse, "sparse"}},
                "how rows are kept; \"auto\" is dense above a quarter of entries not zero");
  schema.choice("labels", options.labels, {{LabelKind::classes, "classes"}, {LabelKind::target, "target"}},
                "what a line's first number is: a class, or a regression target");
}

template <class T>
LoadedData<T> load_data(const FileDataOptions& options, const DataCatalog& catalog) {
  if (const auto images = catalog.find_image_set(options.name))
    return load_image_set<T>(*images, options.name, static_cast<std::size_t>(options.rows), options.test != "none");
  const DataLocation train = catalog.find(options.name);
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

template LoadedData<float> load_data<float>(const FileDataOptions&, const DataCatalog&);
template LoadedData<double> load_data<double>(const FileDataOptions&, const DataCatalog&);

}  // namespace fl
