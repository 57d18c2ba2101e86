#include "scenarios/data/ratings.hpp"

#include <algorithm>
#include <cctype>

#include "fl_core/config/error.hpp"
#include "fl_core/config/stopping.hpp"
#include "scenarios/data/bytes.hpp"
#include "scenarios/data/cells.hpp"
#include "scenarios/data/sequences.hpp"
#include "scenarios/data/whole_number.hpp"

namespace fl {
namespace {

namespace fs = std::filesystem;

struct Rating {
  std::int64_t user = 0, item = 0;
  double rating = 0;
  std::int64_t time = 0;  // s
};

std::int64_t whole_number(const CellReader& reader, const TextCell& cell, const char* what) {
  const auto number = whole_number_in(cell.text);
  if (!number || *number < 0)
    reader.fail(cell, std::string("the ") + what + " \"" + std::string(cell.text) + "\" is no whole number from 0");
  return *number;
}

// The first line of ratings.csv says what the columns are; in another order they would be read as what they are not.
void require_header(const CellReader& reader, const std::vector<TextCell>& cells) {
  static const std::vector<std::vector<std::string>> kWords = {{"user"}, {"movie", "item"}, {"rating"}, {"time"}};
  for (std::size_t c = 0; c < cells.size() && c < kWords.size(); ++c) {
    std::string name(cells[c].text);
    std::transform(name.begin(), name.end(), name.begin(), [](unsigned char letter) { return static_cast<char>(std::tolower(letter)); });
    const bool fits =
        std::any_of(kWords[c].begin(), kWords[c].end(), [&](const std::string& word) { return name.find(word) != name.npos; });
    if (!fits)
      reader.fail(cells[c], "the header is userId,movieId,rating,timestamp, and the column \"" + std::string(cells[c].text) +
                                "\" stands where that of the " + kWords[c].front() + " belongs");
  }
}

// In the order of the file.
std::vector<Rating> parse_ratings(std::string_view text, const fs::path& file) {
  const std::string name = file.filename().string();
  const bool has_header = name.starts_with("ratings.csv");
  CellReader reader(text, file, has_header ? "," : name.starts_with("ratings.dat") ? "::" : "\t");
  std::vector<TextCell> cells;
  if (has_header && reader.next(cells)) require_header(reader, cells);
  std::vector<Rating> ratings;
  while (reader.next(cells)) {
    check_for_stop();
    if (cells.size() != 4)
      reader.fail(cells.back(), "the line has " + std::to_string(cells.size()) + " cells; user, item, rating and time are four");
    const auto rating = number_in(cells[2].text);
    if (!rating) reader.fail(cells[2], "the rating \"" + std::string(cells[2].text) + "\" is not a number");
    ratings.push_back(
        {whole_number(reader, cells[0], "user"), whole_number(reader, cells[1], "item"), *rating, whole_number(reader, cells[3], "time")});
  }
  if (ratings.empty()) throw DataError(file.string() + ": has no ratings");
  return ratings;
}

template <class Get>
auto distinct(const std::vector<Rating>& ratings, const Get& get) {
  std::vector<decltype(get(ratings[0]))> values;
  for (const Rating& r : ratings) values.push_back(get(r));
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

template <class V>
std::int32_t number_of(const std::vector<V>& values, V value) {
  return static_cast<std::int32_t>(std::lower_bound(values.begin(), values.end(), value) - values.begin());
}

// The users, items and values of a file, in the order of their tokens and classes.
struct Meaning {
  explicit Meaning(const std::vector<Rating>& ratings)
      : users(distinct(ratings, [](const Rating& r) { return r.user; })),
        items(distinct(ratings, [](const Rating& r) { return r.item; })),
        values(distinct(ratings, [](const Rating& r) { return r.rating; })) {}
  std::vector<std::int64_t> users, items;
  std::vector<double> values;
};

template <class T>
void append(const Rating& r, const Meaning& meaning, LabelKind kind, Dataset<T>& data) {
  data.tokens[2 * data.num_rows] = number_of(meaning.users, r.user);
  data.tokens[2 * data.num_rows + 1] = static_cast<std::int32_t>(meaning.users.size()) + number_of(meaning.items, r.item);
  if (kind == LabelKind::classes)
    data.label.push_back(number_of(meaning.values, r.rating));
  else
    data.target.push_back(r.rating);
  ++data.num_rows;
}

template <class T>
Dataset<T> empty_rows(const Meaning& meaning, std::size_t most_rows, const std::string& name, LabelKind kind) {
  Dataset<T> data;
  data.name = name;
  data.num_features = 2;
  data.vocabulary.num_users = meaning.users.size();
  data.vocabulary.size = meaning.users.size() + meaning.items.size();
  data.tokens.resize_discard(2 * most_rows);
  data.client_begin = {0};
  if (kind == LabelKind::target) return data;
  data.num_classes = meaning.values.size();
  for (const double value : meaning.values) data.class_names.push_back(to_string(Value{value}));
  return data;
}

}  // namespace

// A user's ratings in the order of time: what is trained on, and what is held out.
static TimeSplit split_user(const Stretch& ratings, const FileDataOptions& options) {
  if (!options.formats.ratings.leave_one_out) return split_in_time(ratings, options.test_fraction);
  const std::size_t last = ratings.size() > 1 ? ratings.last - 1 : ratings.last;
  return {{ratings.first, last}, {last, ratings.last}};
}

template <class T>
LoadedData<T> load_ratings(const fs::path& file, const FileDataOptions& options) {
  return read_ratings<T>(read_text_file(file, options.memory), file, options);
}

template <class T>
LoadedData<T> read_ratings(std::string_view text, const fs::path& file, const FileDataOptions& options) {
  std::vector<Rating> ratings = parse_ratings(text, file);
  const Meaning meaning(ratings);
  std::stable_sort(ratings.begin(), ratings.end(),
                   [](const Rating& a, const Rating& b) { return a.user != b.user ? a.user < b.user : a.time < b.time; });
  Dataset<T> train = empty_rows<T>(meaning, ratings.size(), options.name, options.labels);
  Dataset<T> test = empty_rows<T>(meaning, ratings.size(), options.name + ".t", options.labels);
  for (std::size_t first = 0; first < ratings.size();) {
    std::size_t last = first;
    while (last < ratings.size() && ratings[last].user == ratings[first].user) ++last;
    const TimeSplit parts = split_user({first, last}, options);
    for (std::size_t i = parts.train.first; i < parts.train.last; ++i) append(ratings[i], meaning, options.labels, train);
    for (std::size_t i = parts.test.first; i < parts.test.last; ++i) append(ratings[i], meaning, options.labels, test);
    train.client_begin.push_back(train.num_rows);
    test.client_begin.push_back(test.num_rows);
    first = last;
  }
  LoadedData<T> data;
  keep_first_rows(train, static_cast<std::size_t>(options.rows), file);
  data.train = std::move(train);
  data.train_where = file.string();
  data.is_held_out = options.test_fraction > 0 || options.formats.ratings.leave_one_out;
  if (!data.is_held_out) return data;
  if (test.num_rows == 0 && options.formats.ratings.leave_one_out)
    throw DataError(file.string() + ": leave_one_out: no user has two ratings");
  if (test.num_rows == 0)
    throw DataError(file.string() + ": test_fraction = " + to_string(Value{options.test_fraction}) + " of no user is a whole rating");
  data.test = std::move(test);
  data.test_where = file.string();
  return data;
}

template LoadedData<float> read_ratings<float>(std::string_view, const fs::path&, const FileDataOptions&);
template LoadedData<double> read_ratings<double>(std::string_view, const fs::path&, const FileDataOptions&);
template LoadedData<float> load_ratings<float>(const fs::path&, const FileDataOptions&);
template LoadedData<double> load_ratings<double>(const fs::path&, const FileDataOptions&);

}  // namespace fl
