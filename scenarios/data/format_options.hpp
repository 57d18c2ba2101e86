// Options for reading the files of a data set: their format, and the options of each format. All are keys of [data].
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "fl_core/config/options.hpp"
#include "fl_core/data/dataset.hpp"

namespace fl {

enum class DataFormat { automatic, libsvm, idx, cifar, roles, text, tokens, csv, npy, ratings };

// Images: feature = (byte/255 - mean) / deviation of its channel.
struct ImageOptions {
  enum class Normalise { none, unit, standard };
  Normalise normalise = Normalise::unit;  // none: the bytes 0 .. 255; unit: 0 .. 1; standard: by mean and deviation
  std::vector<double> mean = {};          // [channels], of byte/255; empty = of the training set
  std::vector<double> deviation = {};     // [channels]
  Augmentation augment = {};
};

// Text: a row is a sequence of characters or words, its label what comes next, or what comes after each of its positions.
struct TextOptions {
  std::int64_t sequence = 80;  // characters or words
  std::int64_t stride = 0;     // from the beginning of a row to that of the next; 0 = sequence, so that rows do not overlap
  std::int64_t min_text = 0;   // characters; roles with fewer are left out
  NextToken labels = NextToken::after_last;
};

// The treatment of a missing value: an error, the mean of the column's values in the training rows, or the row is left out.
enum class MissingValues { error, mean, drop };

// Tables: one row per line.
struct TableOptions {
  std::string label = {};                    // column that holds the label; "" = the last. Of CIFAR-100: "fine" or "coarse"
  std::vector<std::string> categories = {};  // columns whose numbers are names
  MissingValues missing = MissingValues::error;
};

struct RatingOptions {
  bool leave_one_out = false;  // the latest rating of each user is the test set
};

struct FormatOptions {
  DataFormat format = DataFormat::automatic;
  ImageOptions images = {};
  TextOptions text = {};
  TableOptions table = {};
  RatingOptions ratings = {};
};
FL_API void describe(Schema& schema, FormatOptions& options);            // but for `augment`
FL_API void describe(Schema& schema, Augmentation& augment);             // the table [data.augment]
FL_API void validate(const FormatOptions& options, Problems& problems);  // conditions between keys

[[nodiscard]] FL_API const char* to_string(DataFormat format);

// The format of a folder that holds a data set of several files; none when it holds no such.
[[nodiscard]] FL_API std::optional<DataFormat> format_of_folder(const std::filesystem::path& folder);
// The format of a file, told by its name; LIBSVM text unless the name says otherwise.
[[nodiscard]] FL_API DataFormat format_of_file(const std::filesystem::path& file);

}  // namespace fl
