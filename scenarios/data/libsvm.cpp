#include "scenarios/data/libsvm.hpp"

#include <algorithm>

#include "fl_core/config/error.hpp"
#include "scenarios/data/bytes.hpp"
#include "scenarios/data/libsvm_parser.hpp"
#include "scenarios/data/memory_limit.hpp"
#include "scenarios/data/whole_number.hpp"

namespace fl {
namespace {

constexpr double kDenseFraction = 0.25;  // of entries that are not zero, above which rows are kept dense

template <class T>
void keep_rows(LibsvmRows<T>& rows, std::size_t num_rows, const std::string& file_name) {
  if (num_rows == 0) return;
  const std::size_t there = rows.row_begin.size() - 1;
  if (num_rows > there)
    throw DataError(file_name + ": rows = " + std::to_string(num_rows) + " were asked for, the file has " + std::to_string(there));
  rows.row_begin.resize(num_rows + 1);
}

bool choose_sparse(Storage storage, std::size_t num_stored, std::size_t num_rows, std::size_t num_features) {
  if (storage != Storage::automatic) return storage == Storage::sparse;
  return static_cast<double>(num_stored) <= kDenseFraction * static_cast<double>(num_rows) * static_cast<double>(num_features);
}

template <class U>
void copy_into(Buffer<U>& buffer, const std::vector<U>& values) {
  buffer.resize_discard(values.size());
  std::copy(values.begin(), values.end(), buffer.begin());
}

template <class T>
void store_sparse(const LibsvmRows<T>& rows, Dataset<T>& data) {
  copy_into(data.sparse.row_begin, rows.row_begin);
  copy_into(data.sparse.column, rows.column);
  copy_into(data.sparse.value, rows.value);
}

template <class T>
void store_dense(const LibsvmRows<T>& rows, const MemoryLimit& limit, Dataset<T>& data) {
  const double bytes = static_cast<double>(data.num_rows) * static_cast<double>(data.dense_stride()) * sizeof(T);
  require_memory(bytes, data.name + " kept dense", "use storage = \"sparse\"", limit);
  data.allocate_dense();
  for (std::size_t row = 0; row < data.num_rows; ++row) {
    T* to = data.dense_row(row);
    for (std::uint64_t i = rows.row_begin[row]; i < rows.row_begin[row + 1]; ++i)
      to[rows.column[i]] = rows.value.empty() ? T{1} : rows.value[i];
  }
}

// Class numbers by ascending label of the whole file, or by the training set's order when its names are given.
template <class T>
void number_classes(const std::vector<std::int64_t>& labels, const std::vector<std::string>& known, Dataset<T>& data) {
  std::vector<std::int64_t> classes;
  for (const std::string& name : known) classes.push_back(whole_number_in(name).value());
  if (known.empty()) {
    classes = labels;
    std::sort(classes.begin(), classes.end());
    classes.erase(std::unique(classes.begin(), classes.end()), classes.end());
  }
  data.num_classes = classes.size();
  for (const std::int64_t label : classes) data.class_names.push_back(std::to_string(label));
  data.label.reserve(data.num_rows);
  std::size_t last = 0;  // neighbours often share a class
  for (std::size_t row = 0; row < data.num_rows; ++row) {
    const std::int64_t label = labels[row];
    if (classes[last] != label) last = static_cast<std::size_t>(std::lower_bound(classes.begin(), classes.end(), label) - classes.begin());
    data.label.push_back(static_cast<std::int32_t>(last));
  }
}

template <class T>
Dataset<T> build(LibsvmRows<T> rows, const std::string& name, const std::string& file_name, const LibsvmFormat& format) {
  keep_rows(rows, format.num_rows, file_name);
  Dataset<T> data;
  data.name = name;
  data.num_rows = rows.row_begin.size() - 1;
  data.num_features = std::max(rows.num_features, format.num_features);
  if (data.num_features == 0) throw DataError(file_name + ": no row has a feature");
  data.is_sparse = choose_sparse(format.storage, rows.column.size(), data.num_rows, data.num_features);
  if (data.is_sparse)
    store_sparse(rows, data);
  else
    store_dense(rows, format.memory, data);
  if (format.labels == LabelKind::target)
    data.target.assign(rows.target.begin(), rows.target.begin() + static_cast<std::ptrdiff_t>(data.num_rows));
  else
    number_classes(rows.label, format.class_names, data);
  return data;
}

}  // namespace

template <class T>
Dataset<T> parse_libsvm(std::string_view text, const std::string& file_name, const LibsvmFormat& format) {
  return build(LibsvmParser<T>(text, file_name, format).parse(), file_name, file_name, format);
}

template <class T>
Dataset<T> read_libsvm(const std::filesystem::path& file, const std::string& name, const LibsvmFormat& format) {
  const std::string text = read_text_file(file, format.memory);
  Dataset<T> data = parse_libsvm<T>(text, file.string(), format);
  data.name = name;
  return data;
}

template <class T>
LibsvmFormat format_like(const Dataset<T>& train) {
  LibsvmFormat format;
  format.storage = train.is_sparse ? Storage::sparse : Storage::dense;
  format.labels = train.target.empty() ? LabelKind::classes : LabelKind::target;
  format.num_features = train.num_features;
  format.class_names = train.class_names;
  return format;
}

template <class T>
void validate_for_classification(const Dataset<T>& data) {
  if (data.num_classes == 0 || data.label.empty()) throw DataError(data.name + ": has no classes; a classifier needs labels");
  const std::int32_t first = data.label[0];
  if (std::any_of(data.label.begin(), data.label.end(), [&](std::int32_t label) { return label != first; })) return;
  throw DataError(data.name + ": all " + std::to_string(data.num_rows) + " rows have the label " +
                  data.class_names[static_cast<std::size_t>(first)] + "; classification needs two classes");
}

template Dataset<float> parse_libsvm<float>(std::string_view, const std::string&, const LibsvmFormat&);
template Dataset<double> parse_libsvm<double>(std::string_view, const std::string&, const LibsvmFormat&);
template Dataset<float> read_libsvm<float>(const std::filesystem::path&, const std::string&, const LibsvmFormat&);
template Dataset<double> read_libsvm<double>(const std::filesystem::path&, const std::string&, const LibsvmFormat&);
template LibsvmFormat format_like<float>(const Dataset<float>&);
template LibsvmFormat format_like<double>(const Dataset<double>&);
template void validate_for_classification<float>(const Dataset<float>&);
template void validate_for_classification<double>(const Dataset<double>&);

}  // namespace fl
