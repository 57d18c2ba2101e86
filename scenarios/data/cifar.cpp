#include "scenarios/data/cifar.hpp"

#include <algorithm>
#include <cstring>
#include <sstream>

#include "fl_core/config/key_error.hpp"
#include "fl_core/config/stopping.hpp"
#include "scenarios/data/bytes.hpp"
#include "scenarios/data/find_file.hpp"

namespace fl {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kChannels = 3, kSide = 32, kPixels = kChannels * kSide * kSide;

CifarRecords records_of(const fs::path& folder, const std::string& label) {
  if (find_plain_or_packed(folder / "data_batch_1.bin")) {
    if (!label.empty()) throw key_error("data.label_column", "CIFAR-10 has one label, is \"" + label + "\"");
    return {};
  }
  if (label.empty() || label == "fine") return {2, 1, 100, "fine_label_names.txt"};
  if (label == "coarse") return {2, 0, 20, "coarse_label_names.txt"};
  throw key_error("data.label_column", "must be \"fine\" or \"coarse\" for CIFAR-100, is \"" + label + "\"");
}

std::vector<fs::path> training_files(const fs::path& folder) {
  if (!find_plain_or_packed(folder / "data_batch_1.bin")) return {need_plain_or_packed(folder / "train.bin")};
  constexpr int kBatches = 5;
  const auto batch = [&folder](int i) { return folder / ("data_batch_" + std::to_string(i) + ".bin"); };
  int last = kBatches;
  while (!find_plain_or_packed(batch(last))) --last;
  std::vector<fs::path> files;
  for (int i = 1; i <= last; ++i) files.push_back(need_plain_or_packed(batch(i)));
  return files;
}

// A packed file holds no more records than the largest published one, train.bin of CIFAR-100.
std::size_t count_records(DataReader& reader, const CifarRecords& records) {
  constexpr std::size_t kMostPacked = 50000;
  const std::size_t size = reader.size_up_to(kMostPacked * records.bytes() + 1);
  if (reader.is_packed() && size > kMostPacked * records.bytes())
    throw DataError(reader.name().string() + ": unpacks to more than " + std::to_string(kMostPacked) + " records of " +
                    std::to_string(records.bytes()) + " bytes, the most for a packed file (" + reader.memory().text() +
                    "); give the file unpacked");
  if (size == 0 || size % records.bytes() != 0)
    throw DataError(reader.name().string() + ": has " + std::to_string(size) + " bytes, which is no whole number of records of " +
                    std::to_string(records.bytes()) + " bytes (a truncated download?)");
  return size / records.bytes();
}

// All labels of a record, those that are not meant included: a byte out of its place shows in any of them.
void require_labels(const DataReader& reader, const CifarRecords& records, const std::byte* record, std::size_t number) {
  constexpr std::size_t kCoarse = 20, kFine = 100;
  for (std::size_t i = 0; i < records.num_labels; ++i) {
    const auto label = std::to_integer<std::size_t>(record[i]);
    const std::size_t classes = records.num_labels == 1 ? records.num_classes : i == 0 ? kCoarse : kFine;
    if (label >= classes)
      throw DataError(reader.name().string() + ": record " + std::to_string(number) + " has the label " + std::to_string(label) +
                      (records.num_labels == 1 ? ""
                       : i == 0                ? " of a group"
                                               : " of a class") +
                      "; labels are 0 to " + std::to_string(classes - 1));
  }
}

// Appends `count` records of a file: a block at a time, so that labels are taken out while it is in cache.
template <class T>
void append(const DataReader& reader, const CifarRecords& records, std::size_t count, Dataset<T>& data) {
  constexpr std::size_t kBlock = 64;  // records
  std::vector<std::byte> block(kBlock * records.bytes());
  for (std::size_t first = 0; first < count; first += kBlock) {
    check_for_stop();
    const std::size_t rows = std::min(kBlock, count - first);
    reader.read(first * records.bytes(), std::span(block).first(rows * records.bytes()));
    for (std::size_t r = 0; r < rows; ++r) {
      const std::byte* record = block.data() + r * records.bytes();
      const auto label = std::to_integer<std::size_t>(record[records.which]);
      require_labels(reader, records, record, first + r + 1);
      std::memcpy(data.images.pixels.data() + data.label.size() * kPixels, record + records.num_labels, kPixels);
      data.label.push_back(static_cast<std::int32_t>(label));
    }
  }
}

std::vector<std::string> class_names(const fs::path& folder, const CifarRecords& records, const MemoryLimit& memory) {
  std::vector<std::string> names;
  if (const auto file = find_plain_or_packed(folder / records.names_file)) {
    std::istringstream lines(read_text_file(*file, memory));
    for (std::string line; std::getline(lines, line);) {
      while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
      if (!line.empty()) names.push_back(line);
    }
    if (names.size() != records.num_classes)
      throw DataError(file->string() + ": names " + std::to_string(names.size()) + " classes, there are " +
                      std::to_string(records.num_classes));
    return names;
  }
  for (std::size_t c = 0; c < records.num_classes; ++c) names.push_back(std::to_string(c));
  return names;
}

std::vector<DataReader> open_all(const std::vector<fs::path>& files, const MemoryLimit& memory) {
  std::vector<DataReader> readers;
  for (const fs::path& file : files) readers.emplace_back(file, memory);
  return readers;
}

}  // namespace

template <class T>
Dataset<T> read_cifar(std::vector<DataReader> files, const CifarRecords& records, std::size_t rows, const std::string& name) {
  std::vector<std::size_t> counts;
  std::size_t total = 0;
  for (DataReader& file : files) {
    counts.push_back(count_records(file, records));
    total += counts.back();
  }
  Dataset<T> data;
  data.name = name;
  data.num_rows = rows_kept(rows, total, files.back().name());
  data.num_features = kPixels;
  data.num_classes = records.num_classes;
  data.shape = {kChannels, kSide, kSide};
  data.images.pixels.resize_discard(data.num_rows * kPixels);
  data.label.reserve(data.num_rows);
  for (std::size_t i = 0; i < files.size(); ++i) append(files[i], records, std::min(counts[i], data.num_rows - data.label.size()), data);
  return data;
}

template <class T>
LoadedData<T> load_cifar(const fs::path& folder, const FileDataOptions& options) {
  const CifarRecords records = records_of(folder, options.formats.table.label);
  LoadedData<T> data;
  data.train =
      read_cifar<T>(open_all(training_files(folder), options.memory), records, static_cast<std::size_t>(options.rows), options.name);
  data.train.class_names = class_names(folder, records, options.memory);
  data.train_where = folder.string();
  if (options.test == "none") return data;
  const fs::path test = folder / (records.num_labels == 1 ? "test_batch.bin" : "test.bin");
  data.test = read_cifar<T>(open_all({need_plain_or_packed(test)}, options.memory), records, 0, options.name + ".t");
  data.test->class_names = data.train.class_names;
  data.test_where = folder.string();
  return data;
}

template Dataset<float> read_cifar<float>(std::vector<DataReader>, const CifarRecords&, std::size_t, const std::string&);
template Dataset<double> read_cifar<double>(std::vector<DataReader>, const CifarRecords&, std::size_t, const std::string&);
template LoadedData<float> load_cifar<float>(const fs::path&, const FileDataOptions&);
template LoadedData<double> load_cifar<double>(const fs::path&, const FileDataOptions&);

}  // namespace fl
