// Any bytes are read as a data set of each format, plain or packed, or rejected with DataError or ConfigError. Nothing else happens, and
// memory stays below the limit. The first byte of a seed chooses options if a format has any.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "fl_core/config/error.hpp"
#include "scenarios/data/bytes.hpp"
#include "scenarios/data/cifar.hpp"
#include "scenarios/data/csv.hpp"
#include "scenarios/data/idx.hpp"
#include "scenarios/data/npy.hpp"
#include "scenarios/data/ratings.hpp"
#include "scenarios/data/text.hpp"
#include "tests/fuzz/target.hpp"

namespace {

using fl::fuzz::require;
using Bytes = std::span<const std::byte>;

constexpr fl::MemoryLimit kMemory{std::uint64_t{16} << 20};

// Half of the bytes is one file, the rest another: the first byte says where the first one ends, in 255ths.
struct TwoFiles {
  Bytes first, second;
};
TwoFiles split(Bytes bytes) {
  if (bytes.empty()) return {};
  const std::size_t length = bytes.size() - 1, at = length * std::to_integer<std::size_t>(bytes[0]) / 255;
  return {bytes.subspan(1, at), bytes.subspan(1 + at)};
}

template <class T>
void check(const fl::Dataset<T>& data) {
  const auto holds = [](bool condition) { require(condition, "the data contradict themselves"); };
  holds(data.num_rows > 0 && data.num_features > 0);
  holds(data.label.empty() ? data.target.size() == data.num_rows : data.label.size() == data.num_rows);
  holds(data.class_names.empty() || data.class_names.size() == data.num_classes);
  for (const std::int32_t label : data.label) holds(label >= 0 && static_cast<std::size_t>(label) < data.num_classes);
  for (const double target : data.target) holds(std::isfinite(target));
  if (data.has_pixels()) holds(data.images.pixels.size() == data.num_rows * data.num_features);
  if (data.vocabulary.size > 0) {
    holds(data.tokens.size() >= data.num_rows * data.num_features);
    for (std::size_t i = 0; i < data.num_rows * data.num_features; ++i)
      holds(data.tokens[i] >= 0 && static_cast<std::size_t>(data.tokens[i]) < data.vocabulary.size);
  }
  if (data.dense.empty()) return;
  for (std::size_t row = 0; row < data.num_rows; ++row)
    for (std::size_t j = 0; j < data.num_features; ++j) holds(std::isfinite(data.dense_row(row)[j]));
}

// Catches the errors with which a reader rejects its input; all other exceptions reach the fuzzer.
template <class Read>
void try_to(const Read& read) {
  try {
    read();
  } catch (const fl::DataError& error) {
    require(*error.what() != '\0', "refused without a reason");
  } catch (const fl::ConfigError&) {
  }
}

template <class T>
void check(const fl::LoadedData<T>& data) {
  check(data.train);
  if (data.test && data.test->num_rows > 0) check(*data.test);
}

fl::DataReader reader(Bytes bytes, const char* name) { return fl::DataReader(bytes, name, kMemory); }

void gzip(Bytes bytes) {
  try_to([&] {
    fl::DataReader whole = reader(bytes, "fuzz");
    const std::size_t size = whole.size_up_to(kMemory.bytes());
    require(whole.unpacked_bytes() <= kMemory.bytes(), "unpacked beyond the limit");
    // Pieces give the same as the whole.
    fl::DataReader pieces = reader(bytes, "fuzz");
    for (std::size_t enough = 1; enough < size; enough += 1 + enough / 2)
      require(pieces.size_up_to(enough) >= enough, "a piece is missing");
    require(pieces.size_up_to(kMemory.bytes()) == size, "pieces are not the whole");
    require(std::move(whole).take() == std::move(pieces).take(), "pieces differ from the whole");
  });
}

void idx(Bytes bytes) {
  const TwoFiles files = split(bytes);
  try_to([&] { check(fl::read_idx<float>(reader(files.first, "images"), reader(files.second, "labels"), "fuzz")); });
}

void cifar(Bytes bytes) {
  for (const fl::CifarRecords& records : {fl::CifarRecords{}, fl::CifarRecords{2, 1, 100, ""}}) {
    try_to([&] {
      std::vector<fl::DataReader> files;
      files.push_back(reader(bytes, "fuzz"));
      check(fl::read_cifar<float>(std::move(files), records, 0, "fuzz"));
    });
  }
}

void npy(Bytes bytes) {
  const TwoFiles files = split(bytes);
  try_to([&] { static_cast<void>(fl::npy_numbers(reader(bytes, "fuzz"))); });
  for (const fl::LabelKind kind : {fl::LabelKind::classes, fl::LabelKind::target}) {
    try_to([&] {
      std::vector<std::int64_t> classes;
      check(fl::read_npy_pair<float>(reader(files.first, "features"), reader(files.second, "labels"), 0, "fuzz", kind, classes));
    });
  }
}

void csv(Bytes bytes) {
  const TwoFiles files = split(bytes);
  try_to([&] {
    const std::string train = fl::unpack_text(files.first, "train", kMemory), test = fl::unpack_text(files.second, "test", kMemory);
    if (train.size() + test.size() > std::size_t{1} << 20) return;  // a packed bomb costs time and finds nothing
    for (const auto missing : {fl::MissingValues::error, fl::MissingValues::mean, fl::MissingValues::drop})
      for (const fl::LabelKind kind : {fl::LabelKind::classes, fl::LabelKind::target}) {
        fl::FileDataOptions options{.name = "fuzz", .labels = kind, .memory = kMemory};
        options.formats.table.missing = missing;
        options.test_fraction = kind == fl::LabelKind::classes ? 0.25 : 0;
        try_to([&] { check(fl::read_csv<float>({train, "train"}, std::nullopt, options)); });
        try_to([&] { check(fl::read_csv<double>({train, "train"}, fl::CsvText{test, "test"}, options)); });
      }
  });
}

void ratings(Bytes bytes) {
  try_to([&] {
    const std::string text = fl::unpack_text(bytes, "fuzz", kMemory);
    if (text.size() > std::size_t{1} << 20) return;
    for (const char* name : {"u.data", "ratings.dat", "ratings.csv"})
      for (const bool leave_one_out : {false, true}) {
        fl::FileDataOptions options{.name = "fuzz", .labels = leave_one_out ? fl::LabelKind::target : fl::LabelKind::classes};
        options.formats.ratings.leave_one_out = leave_one_out;
        options.memory = kMemory;
        try_to([&] { check(fl::read_ratings<float>(text, name, options)); });
      }
  });
}

fl::FileDataOptions text_options(double test_fraction) {
  fl::FileDataOptions options{.name = "fuzz", .test_fraction = test_fraction, .memory = kMemory};
  options.formats.text.sequence = 4;
  options.formats.text.stride = 1;
  return options;
}

void text(Bytes bytes) {
  const TwoFiles files = split(bytes);
  try_to([&] {
    const std::string train = fl::unpack_text(files.first, "train", kMemory), test = fl::unpack_text(files.second, "test", kMemory);
    if (train.size() + test.size() > std::size_t{1} << 20) return;
    try_to([&] { check(fl::read_text<float>({train, "train"}, fl::NamedText{test, "test"}, text_options(0))); });
    try_to([&] { check(fl::read_text<float>({train, "train"}, std::nullopt, text_options(0.5))); });
    try_to([&] { check(fl::read_roles<float>({train, "train"}, text_options(0.5))); });
  });
}

void tokens(Bytes bytes) {
  const TwoFiles files = split(bytes);
  try_to([&] {
    const std::string train = fl::unpack_text(files.first, "train", kMemory), test = fl::unpack_text(files.second, "test", kMemory);
    if (train.size() + test.size() > std::size_t{1} << 20) return;
    try_to([&] { check(fl::read_tokens<float>({train, "train"}, fl::NamedText{test, "test"}, text_options(0))); });
    try_to([&] { check(fl::read_tokens<float>({train, "train"}, std::nullopt, text_options(0.5))); });
  });
}

const fl::fuzz::Register kGzip("gzip", gzip), kIdx("idx", idx), kCifar("cifar", cifar), kNpy("npy", npy), kCsv("csv", csv),
    kRatings("ratings", ratings), kText("text", text), kTokens("tokens", tokens);

}  // namespace
