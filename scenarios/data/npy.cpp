#include "scenarios/data/npy.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>

#include "fl_core/config/error.hpp"
#include "fl_core/config/stopping.hpp"
#include "scenarios/data/bytes.hpp"
#include "scenarios/data/find_file.hpp"
#include "scenarios/data/memory_limit.hpp"

namespace fl {
namespace {

namespace fs = std::filesystem;

// An array behind its header.
struct Array {
  DataReader reader;
  std::string type;                     // "<f4"
  std::vector<std::size_t> shape;       // [m, ...]
  std::size_t begin = 0;                // of the entries, bytes
  std::vector<std::byte> in_c_order{};  // the entries of an array in Fortran order; empty for others

  [[nodiscard]] std::size_t row_size() const {  // entries
    std::size_t size = 1;
    for (std::size_t i = 1; i < shape.size(); ++i) size *= shape[i];
    return size;
  }
  [[nodiscard]] std::size_t entry_bytes() const { return static_cast<std::size_t>(type[2] - '0'); }
  // Reads entries in C order, the last index first.
  void read(std::size_t first, std::span<std::byte> to) const {
    if (in_c_order.empty()) return reader.read(begin + first * entry_bytes(), to);
    std::memcpy(to.data(), in_c_order.data() + first * entry_bytes(), to.size());
  }
  [[noreturn]] void fail(const std::string& why) const { throw DataError(reader.name().string() + ": " + why); }
};

// The text of a key of the header, a Python dictionary: what stands between "'key':" and the next comma outside of brackets.
std::string value_of(const std::string& header, const std::string& key, const Array& array) {
  const std::size_t at = header.find("'" + key + "':");
  if (at == std::string::npos) array.fail("its header has no '" + key + "'");
  std::size_t end = at + key.size() + 3;
  for (int depth = 0; end < header.size() && (depth > 0 || (header[end] != ',' && header[end] != '}')); ++end)
    depth += header[end] == '(' ? 1 : header[end] == ')' ? -1 : 0;
  std::string value = header.substr(at + key.size() + 3, end - at - key.size() - 3);
  std::erase(value, ' ');
  return value;
}

std::vector<std::size_t> shape_of(const std::string& text, const Array& array) {
  std::vector<std::size_t> shape;
  if (!text.starts_with('(') || !text.ends_with(')')) array.fail("its header has the shape " + text);
  const char *at = text.data() + 1, *end = text.data() + text.size();
  while (at < end && *at != ')') {
    std::size_t size = 0;
    const auto [next, error] = std::from_chars(at, end, size);
    if (error != std::errc{}) array.fail("its header has the shape " + text);
    shape.push_back(size);
    if (*next != ',' && *next != ')') array.fail("its header has the shape " + text);
    at = *next == ',' ? next + 1 : next;
  }
  std::size_t total = 1;
  for (const std::size_t size : shape) {
    if (size == 0 || total > (std::size_t{1} << 48) / size) array.fail("its header has the shape " + text);
    total *= size;
  }
  if (shape.empty()) array.fail("is a single number, not an array");
  return shape;
}

// Reads an array whose first index runs first, and puts its entries into C order.
void reorder(Array& array) {
  const std::size_t size = array.entry_bytes(), dimensions = array.shape.size();
  const std::size_t total = array.shape[0] * array.row_size();
  require_memory(2 * static_cast<double>(total * size), array.reader.name().string() + " in Fortran order",
                 "save numpy.ascontiguousarray(a)", array.reader.memory());
  std::vector<std::byte> as_stored(total * size), ordered(total * size);
  array.reader.read(array.begin, as_stored);
  std::vector<std::size_t> apart(dimensions, 1), index(dimensions, 0);
  for (std::size_t d = 1; d < dimensions; ++d) apart[d] = apart[d - 1] * array.shape[d - 1];
  std::size_t at = 0;
  for (std::size_t i = 0; i < total; ++i) {
    if (i % 4096 == 0) check_for_stop();
    std::memcpy(ordered.data() + i * size, as_stored.data() + at * size, size);
    for (std::size_t d = dimensions; d-- > 0;) {
      at += apart[d];
      if (++index[d] < array.shape[d]) break;
      at -= apart[d] * array.shape[d];
      index[d] = 0;
    }
  }
  array.in_c_order = std::move(ordered);
}

Array open_npy(DataReader reader) {
  constexpr std::size_t kMagic = 6, kVersion = 2, kMostHeader = 65536;
  constexpr const char* kTypes[] = {"<f4", "<f8", "|b1", "|u1", "|i1", "<u2", "<i2", "<u4", "<i4", "<i8"};
  Array array{std::move(reader), {}, {}, 0};
  std::array<unsigned char, 12> start{};
  if (array.reader.size_up_to(start.size()) < start.size()) array.fail("is too short for an array of NumPy");
  array.reader.read(0, std::as_writable_bytes(std::span(start)));
  if (std::memcmp(start.data(), "\x93NUMPY", kMagic) != 0) array.fail("does not begin as an array of NumPy does");
  const unsigned version = start[kMagic];
  if (version < 1 || version > 3) array.fail("is of version " + std::to_string(version) + " of the format; versions 1 to 3 can be read");
  std::size_t size = start[8] | start[9] << 8u;
  if (version > 1) size |= static_cast<std::size_t>(start[10]) << 16u | static_cast<std::size_t>(start[11]) << 24u;
  array.begin = kMagic + kVersion + (version == 1 ? 2 : 4);
  if (size > kMostHeader)
    array.fail("announces a header of " + std::to_string(size) + " bytes; at most " + std::to_string(kMostHeader) + " are read");
  if (array.reader.size_up_to(array.begin + size) < array.begin + size) array.fail("ends within its header");
  std::string header(size, ' ');
  array.reader.read(array.begin, std::as_writable_bytes(std::span(header)));
  array.begin += size;
  array.type = value_of(header, "descr", array);
  std::erase(array.type, '\'');
  if (std::find(std::begin(kTypes), std::end(kTypes), array.type) == std::end(kTypes))
    array.fail("holds the type " + array.type +
               "; float32, float64, bool, integers of 8, 16 and 32 bits and int64 can be read, little-endian");
  const bool is_in_fortran_order = value_of(header, "fortran_order", array) == "True";
  array.shape = shape_of(value_of(header, "shape", array), array);
  const std::size_t expected = array.shape[0] * array.row_size() * array.entry_bytes();
  const std::size_t there = array.reader.size_up_to(array.begin + expected + 1) - array.begin;
  if (there != expected)
    array.fail(std::string(there < expected ? "is truncated" : "is longer than its header says") + ": " + std::to_string(there) +
               " bytes after the header, which promises " + std::to_string(expected));
  if (is_in_fortran_order && array.shape.size() > 1) reorder(array);
  return array;
}

template <class Stored, class To>
void read_as(const Array& array, std::size_t first, std::size_t count, To* out) {
  if constexpr (std::is_same_v<Stored, To>) {
    array.read(first, std::as_writable_bytes(std::span(out, count)));
  } else {
    std::vector<Stored> entries(count);
    array.read(first, std::as_writable_bytes(std::span(entries)));
    std::transform(entries.begin(), entries.end(), out, [](Stored x) { return static_cast<To>(x); });
  }
}

template <class To>
void read_entries(const Array& array, std::size_t first, std::size_t count, To* out) {
  if (array.type == "<f4") read_as<float>(array, first, count, out);
  if (array.type == "<f8") read_as<double>(array, first, count, out);
  if (array.type == "|u1" || array.type == "|b1") read_as<std::uint8_t>(array, first, count, out);
  if (array.type == "|i1") read_as<std::int8_t>(array, first, count, out);
  if (array.type == "<u2") read_as<std::uint16_t>(array, first, count, out);
  if (array.type == "<i2") read_as<std::int16_t>(array, first, count, out);
  if (array.type == "<u4") read_as<std::uint32_t>(array, first, count, out);
  if (array.type == "<i4") read_as<std::int32_t>(array, first, count, out);
  if (array.type == "<i8") read_as<std::int64_t>(array, first, count, out);
}

bool may_be_channels(std::size_t size) { return size == 1 || size == 3 || size == 4; }

// Returns the shape of a row. Images of bytes [m,height,width] get a channel; other numbers stay as they are, such as sequences
// [m,steps,values]. Images whose channels come last are refused, since their first axis would be taken for the channels.
std::vector<std::size_t> row_shape(const Array& array) {
  const std::vector<std::size_t>& all = array.shape;
  if (all.size() == 3 && array.type == "|u1") return {1, all[1], all[2]};
  if (all.size() == 4 && may_be_channels(all[3]) && !may_be_channels(all[1]))
    array.fail("has rows of " + std::to_string(all[1]) + " x " + std::to_string(all[2]) + " x " + std::to_string(all[3]) +
               ", images whose channels come last; save them with the channels first: numpy.transpose(features, (0, 3, 1, 2))");
  if (all.size() < 3) return {};
  return {all.begin() + 1, all.end()};
}

// Rows before and including the shape of one; bytes where they are images of bytes.
template <class T>
void read_features(const Array& array, Dataset<T>& data) {
  data.num_features = array.row_size();
  data.shape = row_shape(array);
  if (array.type == "|u1" && data.shape.size() == 3) {
    data.images.pixels.resize_discard(data.num_rows * data.num_features);
    return read_entries(array, 0, data.images.pixels.size(), data.images.pixels.data());
  }
  require_memory(static_cast<double>(data.num_rows) * static_cast<double>(data.dense_stride()) * sizeof(T), data.name, "use fewer rows",
                 array.reader.memory());
  data.allocate_dense();
  for (std::size_t row = 0; row < data.num_rows; ++row) {
    check_for_stop();
    T* to = data.dense_row(row);
    read_entries(array, row * data.num_features, data.num_features, to);
    const T* bad = std::find_if(to, to + data.num_features, [](T x) { return !std::isfinite(x); });
    if (bad != to + data.num_features)
      array.fail("row " + std::to_string(row) + ", entry " + std::to_string(bad - to) + " (from 0) is not a finite number");
  }
}

// The labels of all rows: whole numbers for classes, numbers for targets.
struct Labels {
  std::vector<std::int64_t> whole;
  std::vector<double> number;
};

constexpr double kExact = 0x1p53;  // up to here float64 holds every whole number

std::string place_of(std::size_t row) { return "row " + std::to_string(row) + " (from 0)"; }

void read_whole(const Array& array, std::size_t rows, Labels& labels) {
  labels.whole.resize(rows);
  if (array.type == "<i8") return read_as<std::int64_t>(array, 0, rows, labels.whole.data());
  std::vector<double> numbers(rows);
  read_entries(array, 0, rows, numbers.data());
  for (std::size_t row = 0; row < rows; ++row) {
    const double label = numbers[row];
    if (!std::isfinite(label)) array.fail("the label of " + place_of(row) + " is not a finite number");
    if (label != std::round(label))
      array.fail("the label " + to_string(Value{label}) + " of " + place_of(row) +
                 " is no whole number; for regression set data.labels = \"target\"");
    if (std::abs(label) > kExact)
      array.fail("the label of " + place_of(row) + " is beyond 2^53, above which floating point does not hold every whole number; save " +
                 "labels as int64");
    labels.whole[row] = static_cast<std::int64_t>(label);
  }
}

void read_targets(const Array& array, std::size_t rows, Labels& labels) {
  labels.number.resize(rows);
  if (array.type != "<i8") {
    read_entries(array, 0, rows, labels.number.data());
  } else {
    std::vector<std::int64_t> whole(rows);
    read_as<std::int64_t>(array, 0, rows, whole.data());
    for (std::size_t row = 0; row < rows; ++row) {
      if (whole[row] > static_cast<std::int64_t>(kExact) || whole[row] < -static_cast<std::int64_t>(kExact))
        array.fail("the target " + std::to_string(whole[row]) + " of " + place_of(row) + " is beyond 2^53 and has no float64 of its own");
      labels.number[row] = static_cast<double>(whole[row]);
    }
  }
  for (std::size_t row = 0; row < rows; ++row)
    if (!std::isfinite(labels.number[row])) array.fail("the label of " + place_of(row) + " is not a finite number");
}

Labels read_labels(DataReader reader, const Array& features, LabelKind kind) {
  const Array array = open_npy(std::move(reader));
  if (array.row_size() != 1) array.fail("has " + std::to_string(array.row_size()) + " numbers per row; a label is one");
  if (array.shape[0] != features.shape[0])
    array.fail("holds " + std::to_string(array.shape[0]) + " labels, but " + features.reader.name().string() + " holds " +
               std::to_string(features.shape[0]) + " rows");
  Labels labels;
  if (kind == LabelKind::classes)
    read_whole(array, array.shape[0], labels);
  else
    read_targets(array, array.shape[0], labels);
  return labels;
}

// Class numbers by ascending label; those of a test set are the training set's.
template <class T>
void number_classes(const std::vector<std::int64_t>& labels, std::vector<std::int64_t>& classes, const fs::path& file, Dataset<T>& data) {
  if (classes.empty()) {
    classes = labels;
    std::sort(classes.begin(), classes.end());
    classes.erase(std::unique(classes.begin(), classes.end()), classes.end());
  }
  data.num_classes = classes.size();
  for (const std::int64_t label : classes) data.class_names.push_back(std::to_string(label));
  for (std::size_t row = 0; row < data.num_rows; ++row) {
    const auto found = std::lower_bound(classes.begin(), classes.end(), labels[row]);
    if (found == classes.end() || *found != labels[row])
      throw DataError(file.string() + ": " + place_of(row) + " has the label " + std::to_string(labels[row]) +
                      ", which the training set does not have");
    data.label.push_back(static_cast<std::int32_t>(found - classes.begin()));
  }
}

}  // namespace

template <class T>
Dataset<T> read_npy_pair(DataReader features_reader, DataReader labels_reader, std::size_t rows, const std::string& name, LabelKind kind,
                         std::vector<std::int64_t>& classes) {
  const fs::path labels_file = labels_reader.name();
  const Array features = open_npy(std::move(features_reader));
  Dataset<T> data;
  data.name = name;
  data.num_rows = rows_kept(rows, features.shape[0], features.reader.name());
  read_features(features, data);
  Labels labels = read_labels(std::move(labels_reader), features, kind);
  if (kind == LabelKind::classes) {
    number_classes(labels.whole, classes, labels_file, data);
  } else {
    labels.number.resize(data.num_rows);
    data.target = std::move(labels.number);
  }
  return data;
}

template <class T>
LoadedData<T> load_npy(const fs::path& folder, const FileDataOptions& options) {
  const auto open = [&](const char* file) { return DataReader(need_plain_or_packed(folder / file), options.memory); };
  std::vector<std::int64_t> classes;
  LoadedData<T> data;
  data.train = read_npy_pair<T>(open("features.npy"), open("labels.npy"), static_cast<std::size_t>(options.rows), options.name,
                                options.labels, classes);
  data.train_where = folder.string();
  if (options.test == "none" || !find_plain_or_packed(folder / "test_features.npy")) return data;
  const fs::path test = need_plain_or_packed(folder / "test_features.npy");
  data.test = read_npy_pair<T>(open("test_features.npy"), open("test_labels.npy"), 0, options.name + ".t", options.labels, classes);
  data.test_where = folder.string();
  if (data.test->num_features != data.train.num_features || data.test->shape != data.train.shape ||
      data.test->has_pixels() != data.train.has_pixels())
    throw DataError(test.string() + ": its rows have another shape or type than those of the training set");
  return data;
}

std::vector<double> read_npy_numbers(const fs::path& file) { return npy_numbers(DataReader(file)); }

std::vector<double> npy_numbers(DataReader reader) {
  const Array array = open_npy(std::move(reader));
  std::vector<double> numbers(array.shape[0] * array.row_size());
  read_entries(array, 0, numbers.size(), numbers.data());
  return numbers;
}

template Dataset<float> read_npy_pair<float>(DataReader, DataReader, std::size_t, const std::string&, LabelKind,
                                             std::vector<std::int64_t>&);
template Dataset<double> read_npy_pair<double>(DataReader, DataReader, std::size_t, const std::string&, LabelKind,
                                               std::vector<std::int64_t>&);
template LoadedData<float> load_npy<float>(const fs::path&, const FileDataOptions&);
template LoadedData<double> load_npy<double>(const fs::path&, const FileDataOptions&);

}  // namespace fl
