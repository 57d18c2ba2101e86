#include "scenarios/data/load.hpp"

#include "fl_core/config/key_error.hpp"
#include "scenarios/data/cifar.hpp"
#include "scenarios/data/csv.hpp"
#include "scenarios/data/find_file.hpp"
#include "scenarios/data/image_sets.hpp"
#include "scenarios/data/normalise.hpp"
#include "scenarios/data/npy.hpp"
#include "scenarios/data/ratings.hpp"
#include "scenarios/data/text.hpp"

namespace fl {
namespace {

// The test set that the scenario names.
DataLocation find_test_set(const FileDataOptions& options, const DataCatalog& catalog) {
  return about_key("data.test", [&] { return catalog.find_path(options.test, options.folder); });
}

std::optional<DataLocation> locate_test(const FileDataOptions& options, const DataCatalog& catalog, const DataLocation& train) {
  if (options.test == "none") return std::nullopt;
  if (options.test == "auto") return catalog.find_test(train);
  return find_test_set(options, catalog);
}

template <class T>
LoadedData<T> load_libsvm(const FileDataOptions& options, const DataCatalog& catalog, const DataLocation& train) {
  const auto test = locate_test(options, catalog, train);
  LibsvmFormat format;
  format.storage = options.storage;
  format.labels = options.labels;
  format.num_rows = static_cast<std::size_t>(options.rows);
  format.num_features = static_cast<std::size_t>(options.features);
  format.memory = options.memory;
  LoadedData<T> loaded;
  loaded.train = read_data<T>(train, format);
  loaded.train_where = train.where();
  if (test) {
    LibsvmFormat like = format_like(loaded.train);
    like.memory = options.memory;
    loaded.test = read_data<T>(*test, like);
    loaded.test_where = test->where();
  }
  return loaded;
}

// Sets that come with their own test set have no place for another.
void require_own_test(const FileDataOptions& options, DataFormat format) {
  if (options.test != "auto" && options.test != "none")
    throw key_error("data.test",
                    "a data set in the format " + std::string(to_string(format)) + " has a test set of its own; use \"auto\" or \"none\"");
}

// The test file that the scenario names.
std::optional<std::filesystem::path> other_file(const FileDataOptions& options, const DataCatalog& catalog) {
  if (options.test == "none" || options.test == "auto") return std::nullopt;
  return find_test_set(options, catalog).file;
}

std::optional<std::filesystem::path> test_tokens(const FileDataOptions& options, const DataCatalog& catalog,
                                                 const std::filesystem::path& at) {
  if (options.test != "auto" || !is_folder(at)) return other_file(options, catalog);
  return find_ending(at, "test.tokens") ? std::optional<std::filesystem::path>(need_ending(at, "test.tokens")) : std::nullopt;
}

// train.csv in a folder has test.csv beside it, where there is one.
std::optional<std::filesystem::path> test_csv(const FileDataOptions& options, const DataCatalog& catalog, const std::filesystem::path& at) {
  if (options.test != "auto" || !is_folder(at)) return other_file(options, catalog);
  return find_plain_or_packed(at / "test.csv");
}

std::filesystem::path ratings_in(const std::filesystem::path& folder) {
  for (const char* name : {"u.data", "ratings.csv", "ratings.dat"})
    if (const auto file = find_plain_or_packed(folder / name)) return *file;
  throw DataError(folder.string() + ": holds none of u.data, ratings.csv and ratings.dat");
}

// Keys of [data] that the format has no use for are errors, all at once.
void require_useful(const FileDataOptions& options, DataFormat format) {
  const FormatOptions defaults;
  const TextOptions& text = options.formats.text;
  const bool is_table =
      format == DataFormat::libsvm || format == DataFormat::csv || format == DataFormat::npy || format == DataFormat::ratings;
  const bool is_text = format == DataFormat::roles || format == DataFormat::text || format == DataFormat::tokens;
  Problems problems;
  const auto require = [&](bool holds, const char* key) {
    if (!holds)
      problems.push_back({std::string("data.") + key, std::string("has no effect on a data set in the format ") + to_string(format)});
  };
  require(format == DataFormat::libsvm || options.features == 0, "features");
  require(format == DataFormat::libsvm || options.storage == Storage::automatic, "storage");
  require(is_table || options.labels == LabelKind::classes, "labels");
  require(is_text || (text.sequence == defaults.text.sequence), "sequence");
  require(is_text || text.stride == 0, "stride");
  require(is_text || text.labels == defaults.text.labels, "label_positions");
  require(format == DataFormat::roles || text.min_text == 0, "min_text");
  require(format == DataFormat::ratings || !options.formats.ratings.leave_one_out, "leave_one_out");
  require(format == DataFormat::csv || format == DataFormat::cifar || options.formats.table.label.empty(), "label_column");
  require(format == DataFormat::csv || options.formats.table.categories.empty(), "categories");
  require(format == DataFormat::csv || options.formats.table.missing == MissingValues::error, "missing");
  if (!problems.empty()) throw ConfigError(std::move(problems));
}

DataFormat format_at(const FileDataOptions& options, const DataLocation& train) {
  if (options.formats.format != DataFormat::automatic) return options.formats.format;
  if (train.file.empty()) return DataFormat::libsvm;
  return is_folder(train.file) ? format_of_folder(train.file).value() : format_of_file(train.file);
}

template <class T>
LoadedData<T> load_as(DataFormat format, const FileDataOptions& options, const DataCatalog& catalog, const DataLocation& train) {
  const std::filesystem::path& at = train.file;
  switch (format) {
    case DataFormat::idx: require_own_test(options, format); return load_image_set<T>(train.file, options);
    case DataFormat::cifar: require_own_test(options, format); return load_cifar<T>(train.file, options);
    case DataFormat::roles:
      require_own_test(options, format);
      return load_roles<T>(is_folder(at) ? need_ending(at, "_roles.tsv") : at, options);
    case DataFormat::text: return load_text<T>(is_folder(at) ? need_ending(at, "input.txt") : at, other_file(options, catalog), options);
    case DataFormat::tokens:
      return load_tokens<T>(is_folder(at) ? need_ending(at, "train.tokens") : at, test_tokens(options, catalog, at), options);
    case DataFormat::csv: return load_csv<T>(is_folder(at) ? need_ending(at, "train.csv") : at, test_csv(options, catalog, at), options);
    case DataFormat::npy: require_own_test(options, format); return load_npy<T>(is_folder(at) ? at : at.parent_path(), options);
    case DataFormat::ratings: require_own_test(options, format); return load_ratings<T>(is_folder(at) ? ratings_in(at) : at, options);
    default: return load_libsvm<T>(options, catalog, train);
  }
}

}  // namespace

template <class T>
LoadedData<T> load_data(const FileDataOptions& asked, const DataCatalog& catalog) {
  FileDataOptions options = asked;
  options.memory = catalog.memory();
  const DataLocation train = options.is_path ? catalog.find_path(options.name, options.folder) : catalog.find(options.name);
  const DataFormat format = format_at(options, train);
  if (is_folder(train.file)) catalog.require_links_inside(train.file);
  if (format == DataFormat::npy && is_file(train.file)) catalog.require_links_inside(train.file.parent_path());
  require_useful(options, format);
  LoadedData<T> data = load_as<T>(format, options, catalog, train);
  apply(options.formats.images, data);
  return data;
}

template LoadedData<float> load_data<float>(const FileDataOptions&, const DataCatalog&);
template LoadedData<double> load_data<double>(const FileDataOptions&, const DataCatalog&);

}  // namespace fl
