#include "scenarios/data/format_options.hpp"

#include <algorithm>
#include <array>

#include "scenarios/data/find_file.hpp"

namespace fl {
namespace {

namespace fs = std::filesystem;

const std::vector<std::pair<DataFormat, std::string>>& format_names() {
  static const std::vector<std::pair<DataFormat, std::string>> names = {
      {DataFormat::automatic, "auto"}, {DataFormat::libsvm, "libsvm"},  {DataFormat::idx, "idx"},       {DataFormat::cifar, "cifar"},
      {DataFormat::roles, "roles"},    {DataFormat::text, "text"},      {DataFormat::tokens, "tokens"}, {DataFormat::csv, "csv"},
      {DataFormat::npy, "npy"},        {DataFormat::ratings, "ratings"}};
  return names;
}

// Written into a resolved scenario only where it is set, so that scenarios without it keep their text.
void describe_missing(Schema& s, MissingValues& missing) {
  Schema one;
  Field plain =
      one.choice("missing", missing, {{MissingValues::error, "error"}, {MissingValues::mean, "mean"}, {MissingValues::drop, "drop"}}, "");
  Field& field = s.add(Field(
      "missing", "choice",
      "CSV: a missing value (blank, NA, N/A, NaN, null, ?) is an error (the default), or becomes the mean of the column's values in the "
      "training rows, or its row is left out",
      [plain](const Value& value) mutable { return plain.assign(value); },
      [plain, &missing] { return missing == MissingValues::error ? Value{} : plain.value(); }));
  field.choices = plain.choices;
}

}  // namespace

const char* to_string(DataFormat format) { return format_names()[static_cast<std::size_t>(format)].second.c_str(); }

void describe(Schema& s, FormatOptions& o) {
  using Normalise = ImageOptions::Normalise;
  s.choice("format", o.format, format_names(), "format of the files; auto recognises it by their names");
  s.choice("normalise", o.images.normalise, {{Normalise::none, "none"}, {Normalise::unit, "unit"}, {Normalise::standard, "standard"}},
           "images: features are bytes 0 .. 255, byte/255, or (byte/255 - mean) / deviation of their channel");
  s.field("mean", o.images.mean, "images, normalise = \"standard\": of byte/255, by channel; empty = that of the training set");
  s.field("deviation", o.images.deviation, "images, normalise = \"standard\": of byte/255, by channel; empty = that of the training set");
  s.field("sequence", o.text.sequence, "text: number of characters, or words, in a row; its label is the next one")
      .at_least(1)
      .at_most(65536);
  s.field("stride", o.text.stride, "text: distance between the beginnings of rows; 0 = sequence, so that rows do not overlap")
      .at_least(0)
      .at_most(4294967295.0);
  s.field("min_text", o.text.min_text, "text by role: roles with less text are left out")
      .at_least(0)
      .at_most(4294967295.0)
      .unit("characters");
  s.choice("label_positions", o.text.labels, {{NextToken::after_last, "last"}, {NextToken::after_each, "every"}},
           "text: labels of a row: the token after its last position, or the token after each of its positions");
  s.field("leave_one_out", o.ratings.leave_one_out,
          "ratings: the latest rating of each user is the test set; users with one rating have none in it");
  s.field("label_column", o.table.label, "CSV: column of the label, by name or number from 1; \"\" = the last. CIFAR-100: fine or coarse");
  s.field("categories", o.table.categories,
          "CSV: columns whose cells are all names, even if they look like numbers; each name becomes a feature");
  describe_missing(s, o.table.missing);
}

void describe(Schema& s, Augmentation& o) {
  s.field("crop", o.crop, "zeros around an image, from which a piece of the image's size is cut at random; 0 = none")
      .at_least(0)
      .at_most(1024)
      .unit("pixels");
  s.field("flip", o.flip, "half of the images are mirrored, left and right exchanged");
}

void validate(const FormatOptions& o, Problems& problems) {
  const bool is_standard = o.images.normalise == ImageOptions::Normalise::standard;
  const auto require = [&problems](bool holds, const char* key, const char* message) {
    if (!holds) problems.push_back({key, message});
  };
  require(is_standard || o.images.mean.empty(), "mean", "has no effect unless normalise = \"standard\"");
  require(is_standard || o.images.deviation.empty(), "deviation", "has no effect unless normalise = \"standard\"");
  require(!is_standard || o.images.mean.size() == o.images.deviation.size(), "deviation", "must have as many numbers as mean");
  require(std::all_of(o.images.deviation.begin(), o.images.deviation.end(), [](double x) { return x > 0; }), "deviation",
          "must be numbers above 0");
}

std::optional<DataFormat> format_of_folder(const fs::path& folder) {
  const auto holds = [&folder](const char* name) { return find_plain_or_packed(folder / name).has_value(); };
  if (find_ending(folder, "train-images-idx3-ubyte")) return DataFormat::idx;
  if (holds("data_batch_1.bin") || (holds("train.bin") && holds("test.bin"))) return DataFormat::cifar;
  if (find_ending(folder, "_roles.tsv")) return DataFormat::roles;
  if (find_ending(folder, "train.tokens")) return DataFormat::tokens;
  if (holds("u.data") || holds("ratings.csv") || holds("ratings.dat")) return DataFormat::ratings;
  if (holds("features.npy")) return DataFormat::npy;
  if (holds("train.csv")) return DataFormat::csv;
  if (holds("input.txt")) return DataFormat::text;
  return std::nullopt;
}

DataFormat format_of_file(const fs::path& file) {
  const std::string name = (file.extension() == ".gz" ? file.stem() : file.filename()).string();
  if (name == "u.data" || name == "ratings.csv" || name == "ratings.dat") return DataFormat::ratings;
  if (name == "input.txt") return DataFormat::text;  // other .txt files have always been rows of numbers
  static constexpr std::array<std::pair<const char*, DataFormat>, 4> kEndings = {
      {{"_roles.tsv", DataFormat::roles}, {".tokens", DataFormat::tokens}, {".csv", DataFormat::csv}, {".npy", DataFormat::npy}}};
  for (const auto& [ending, format] : kEndings)
    if (name.ends_with(ending)) return format;
  return DataFormat::libsvm;
}

}  // namespace fl
