#include "scenarios/data/csv.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "fl_core/config/error.hpp"
#include "scenarios/data/bytes.hpp"
#include "scenarios/data/hold_out.hpp"
#include "scenarios/data/memory_limit.hpp"
#include "scenarios/data/table.hpp"
#include "scenarios/data/whole_number.hpp"

namespace fl {
namespace {

namespace fs = std::filesystem;

struct Name {
  std::size_t number = 0;
  std::size_t line = 0, column = 0;  // of the first cell with it
};
using Names = std::map<std::string, Name, std::less<>>;  // by the alphabet

// One column of the training file: where its features begin, and its names when it holds such.
struct Column {
  std::string name;
  std::size_t at = 0, begin = 0;
  bool is_number = true;
  Names names = {};
  double mean = 0;  // of the training rows, for missing values
  [[nodiscard]] std::size_t num_features() const { return is_number ? 1 : names.size(); }
};

void add_name(const TextCell& cell, Names& names) {
  if (names.find(cell.text) == names.end()) names.emplace(cell.text, Name{0, cell.line, cell.column});
}

// Returns whether a text is a number with separators of thousands, as 12,345 or 1,234.5.
bool has_separated_thousands(std::string_view text) {
  if (text.find(',') == std::string_view::npos) return false;
  std::string digits;
  std::size_t since = 0;
  bool is_first = true, is_over = false;
  for (const char c : text) {
    if (c == '.') is_over = true;
    if (c == ',') {
      if (is_over || since == 0 || (!is_first && since != 3) || since > 3) return false;
      is_first = false;
      since = 0;
      continue;
    }
    if (!is_over && c != '-' && c != '+') ++since;
    digits += c;
  }
  return number_in(digits).has_value();
}

// Below this many rows a table may well have a name or a label of its own for most of them.
constexpr std::size_t kFewRows = 20;

void number_by_alphabet(Names& names) {
  std::size_t next = 0;
  for (auto& [_, name] : names) name.number = next++;
}

// Which features a training file gives.
struct Layout {
  Layout(TextTable& table, const FileDataOptions& options) {
    const TableOptions& of_table = options.formats.table;
    label = of_table.label.empty() ? table.names().size() - 1 : table.need("label_column", of_table.label);
    for (const std::string& name : of_table.categories) table.declare_names(table.need("categories", name));
    label_name = table.names()[label];
    label_is_declared = table.is_declared(label);
    has_classes = options.labels == LabelKind::classes;
    for (std::size_t c = 0; c < table.names().size(); ++c) used.push_back(c);
    const std::vector<bool> holds_numbers = numbers_in(table);
    for (std::size_t c = 0; c < table.names().size(); ++c)
      if (c != label) columns.push_back({.name = table.names()[c], .at = c, .is_number = holds_numbers[c]});
    collect_names(table);
    refuse_unfit(table);
    for (Column& column : columns) {
      column.begin = num_features;
      num_features += column.num_features();
    }
    if (num_features == 0) throw DataError(table.file().string() + ": has no column besides the label");
    if (has_classes) number_classes(table);
  }
  // The label's kind is asked for by its key and not found out.
  [[nodiscard]] std::vector<bool> numbers_in(TextTable& table) const {
    table.declare_names(label);
    std::vector<bool> numbers = table.columns_of_numbers();
    if (!label_is_declared) table.undeclare(label);
    return numbers;
  }
  // The names of rows that are left out are no features.
  void collect_names(const TextTable& table) {
    counts_rows = table.names().front().empty() || table.names().front().starts_with("Unnamed:");
    table.for_each_row([&](const TextTable::Row& row) {
      counts_rows = counts_rows && whole_number_in(row.cells.front().text) == static_cast<std::int64_t>(num_lines);
      ++num_lines;
      if (table.is_dropped(row, used)) return;
      for (Column& column : columns)
        if (!column.is_number && !table.is_missing(row, column.at)) add_name(row.cells[column.at], column.names);
      if (has_classes && !table.is_missing(row, label)) add_name(row.cells[label], classes);
    });
    for (Column& column : columns) number_by_alphabet(column.names);
    number_by_alphabet(classes);
  }
  // Refuses columns that are no features, and labels that are no classes. data.categories says that a column holds names all the same.
  void refuse_unfit(const TextTable& table) const {
    const auto fail = [&](std::size_t line, std::size_t column, const std::string& why) {
      throw DataError(table.file().string() + ":" + std::to_string(line) + ":" + std::to_string(column) + ": " + why);
    };
    if (counts_rows)
      fail(1, 1,
           "the first column has no name and counts the rows, as the index of pandas does; write the file with index=False, or give "
           "the column a name");
    for (const Column& column : columns) {
      if (column.is_number || table.is_declared(column.at)) continue;
      std::size_t separated = 0;
      for (const auto& [text, name] : column.names) separated += has_separated_thousands(text) ? 1 : 0;
      const auto& [text, first] = *std::min_element(column.names.begin(), column.names.end(), [](const auto& a, const auto& b) {
        return std::pair(a.second.line, a.second.column) < std::pair(b.second.line, b.second.column);
      });
      if (2 * separated > column.names.size())
        fail(first.line, first.column, "\"" + text + "\" has separators of thousands, and a number has none here; write 12345");
      if (num_lines >= kFewRows && 2 * column.names.size() > num_lines)
        fail(first.line, first.column,
             "column \"" + column.name + "\" has " + std::to_string(column.names.size()) + " names in " + std::to_string(num_lines) +
                 " rows, as ids and dates have, and each would be a feature; leave the "
                 "column out of the file, or list it in data.categories");
    }
    if (has_classes && !label_is_declared && num_lines >= kFewRows && 2 * classes.size() > num_lines)
      fail(1, 1,
           "the label's column \"" + label_name + "\" has " + std::to_string(classes.size()) + " values in " + std::to_string(num_lines) +
               " rows, which are too many to be classes; data.labels = \"target\" reads numbers, and data.label_column names another "
               "column");
  }
  // By ascending number where all labels are numbers, else by the alphabet. Two texts of one number would be two classes.
  void number_classes(const TextTable& table) {
    std::size_t numbers = 0;
    std::vector<std::pair<std::int64_t, std::string>> whole;
    const std::pair<const std::string, Name>* fraction = nullptr;
    for (const auto& one : classes) {
      numbers += number_in(one.first) ? 1 : 0;
      if (const auto number = whole_number_in(one.first))
        whole.emplace_back(*number, one.first);
      else if (fraction == nullptr ||
               std::pair(one.second.line, one.second.column) < std::pair(fraction->second.line, fraction->second.column))
        fraction = &one;
    }
    if (whole.size() == classes.size()) {
      number_by(whole, table);
    } else if (numbers == classes.size() && !label_is_declared) {
      throw DataError(table.file().string() + ":" + std::to_string(fraction->second.line) + ":" + std::to_string(fraction->second.column) +
                      ": the label \"" + fraction->first +
                      "\" is no whole number of 64 bits, and the labels are numbers; data.labels = \"target\" reads targets, and "
                      "data.categories with this column reads names");
    }
    class_names.resize(classes.size());
    for (const auto& [text, name] : classes) class_names[name.number] = text;
  }
  void number_by(std::vector<std::pair<std::int64_t, std::string>>& numbers, const TextTable& table) {
    std::sort(numbers.begin(), numbers.end());
    for (std::size_t c = 0; c < numbers.size(); ++c) {
      classes[numbers[c].second].number = c;
      if (c == 0 || numbers[c].first != numbers[c - 1].first) continue;
      const Name &one = classes[numbers[c - 1].second], &other = classes[numbers[c].second];
      const bool is_later = std::pair(one.line, one.column) > std::pair(other.line, other.column);
      const Name &first = is_later ? other : one, &second = is_later ? one : other;
      throw DataError(table.file().string() + ":" + std::to_string(second.line) + ":" + std::to_string(second.column) + ": the label \"" +
                      numbers[is_later ? c - 1 : c].second + "\" is the same number as \"" + numbers[is_later ? c : c - 1].second +
                      "\" at " + std::to_string(first.line) + ":" + std::to_string(first.column) + "; write it in one way");
    }
  }

  std::vector<Column> columns;    // but for the label
  std::vector<std::size_t> used;  // all columns of the training file
  std::size_t num_features = 0, label = 0, num_lines = 0;
  std::string label_name;
  bool label_is_declared = false, has_classes = true, counts_rows = false;
  Names classes;  // none with labels = "target"
  std::vector<std::string> class_names;
};

void add_label(const TextTable& table, const TextTable::Row& row, std::size_t column, const Layout& layout, auto& data) {
  const TextCell& cell = row.cells[column];
  if (table.is_missing(row, column)) table.refuse_missing(row, column, "a label has no mean; data.missing = \"drop\" leaves the row out");
  if (!layout.has_classes) {
    const auto number = number_in(cell.text);
    if (!number) row.reader.fail(cell, "the target \"" + std::string(cell.text) + "\" is not a finite number");
    data.target.push_back(*number);
    return;
  }
  const auto found = layout.classes.find(cell.text);
  if (found == layout.classes.end())
    row.reader.fail(cell, "the label \"" + std::string(cell.text) + "\" does not occur in the training file");
  data.label.push_back(static_cast<std::int32_t>(found->second.number));
}

// A missing value: a row of the data set and a column of the layout.
struct MissingCell {
  std::size_t row, column;
};

// The features of the rows of one file, in the layout of the training file.
template <class T>
class Rows {
 public:
  Rows(TextTable& table, const Layout& layout, const std::string& name, const MemoryLimit& memory)
      : table_(table), layout_(layout), memory_(memory) {
    data_.name = name;
    data_.num_features = layout.num_features;
    for (const Column& column : layout.columns) at_.push_back(place(column.name));
    label_ = place(layout.label_name);
    used_ = at_;
    used_.push_back(label_);
    std::sort(used_.begin(), used_.end());
  }

  // Reads the first `limit` lines. `missing` = the values that a mean stands for, in the order of the rows.
  Dataset<T> read(std::size_t limit, std::vector<MissingCell>& missing, std::size_t& dropped) {
    dropped = 0;
    table_.for_each_row([&](const TextTable::Row& row) {
      if (row.number < limit) (table_.is_dropped(row, used_) ? dropped : data_.num_rows) += 1;
    });
    if (data_.num_rows == 0) throw DataError(table_.file().string() + ": every row has a missing value");
    require_memory(static_cast<double>(data_.num_rows) * static_cast<double>(data_.dense_stride()) * sizeof(T), data_.name,
                   "leave out columns of many names", memory_);
    data_.allocate_dense();
    data_.num_classes = layout_.class_names.size();
    data_.class_names = layout_.class_names;
    std::size_t next = 0;
    table_.for_each_row([&](const TextTable::Row& row) {
      if (row.number < limit && !table_.is_dropped(row, used_)) fill(row, next++, missing);
    });
    return std::move(data_);
  }

 private:
  std::size_t place(const std::string& column) const {
    const std::size_t at = table_.find_name(column);
    if (at == table_.names().size())
      throw DataError(table_.file().string() + ": has no column \"" + column + "\", which the training file has");
    return at;
  }
  void fill(const TextTable::Row& row, std::size_t number, std::vector<MissingCell>& missing) {
    T* to = data_.dense_row(number);
    for (std::size_t c = 0; c < at_.size(); ++c) {
      const Column& column = layout_.columns[c];
      const TextCell& cell = row.cells[at_[c]];
      if (table_.is_missing(row, at_[c])) {
        if (!column.is_number)
          table_.refuse_missing(row, at_[c], "a column of names has no mean; data.missing = \"drop\" leaves the row out");
        missing.push_back({number, c});
      } else if (column.is_number) {
        to[column.begin] = static_cast<T>(table_.number(row, at_[c]));
        if (!std::isfinite(to[column.begin]))
          row.reader.fail(cell, "\"" + std::string(cell.text) + "\" does not fit into float32; use precision = \"float64\"");
      } else if (const auto found = column.names.find(cell.text); found != column.names.end()) {
        to[column.begin + found->second.number] = T(1);
      }
    }
    add_label(table_, row, label_, layout_, data_);
  }

  TextTable& table_;
  const Layout& layout_;
  MemoryLimit memory_;
  std::vector<std::size_t> at_, used_;  // places of the training file's columns in this one
  std::size_t label_ = 0;
  Dataset<T> data_;
};

template <class T>
void fill_means(const std::vector<MissingCell>& missing, const Layout& layout, Dataset<T>& data) {
  for (const auto& [row, column] : missing) data.dense_row(row)[layout.columns[column].begin] = static_cast<T>(layout.columns[column].mean);
}

// Columns of names by data.categories are those of the training file.
void declare_as_in(const TextTable& table, const Layout& layout, TextTable& other) {
  const auto declare = [&other](const std::string& name) {
    if (const std::size_t at = other.find_name(name); at < other.names().size()) other.declare_names(at);
  };
  for (const Column& column : layout.columns)
    if (table.is_declared(column.at)) declare(column.name);
  if (layout.label_is_declared) declare(layout.label_name);
}

// The means of the present values of the training rows, for columns that miss some.
template <class T>
void find_means(const std::vector<MissingCell>& missing, const FileDataOptions& options, const fs::path& file, const Dataset<T>& data,
                std::vector<Column>& columns) {
  std::vector<bool> is_test(data.num_rows);
  for (const std::uint32_t row : held_out_rows(data.num_rows, options.test_fraction, options.test_seed)) is_test[row] = true;
  std::vector<std::vector<std::size_t>> rows_without(columns.size());
  for (const auto& [row, column] : missing) rows_without[column].push_back(row);
  for (std::size_t c = 0; c < columns.size(); ++c) {
    if (!columns[c].is_number) continue;
    double sum = 0;
    std::size_t count = 0;
    auto skip = rows_without[c].begin();
    for (std::size_t row = 0; row < data.num_rows; ++row) {
      if (skip != rows_without[c].end() && *skip == row) {
        ++skip;
      } else if (!is_test[row]) {
        sum += static_cast<double>(data.dense_row(row)[columns[c].begin]);
        ++count;
      }
    }
    if (count == 0)
      throw DataError(file.string() + ": column \"" + columns[c].name + "\" has no value in the training rows, and so no mean");
    columns[c].mean = sum / static_cast<double>(count);
  }
}

}  // namespace

template <class T>
LoadedData<T> read_csv(const CsvText& train, const std::optional<CsvText>& test, const FileDataOptions& options) {
  const MissingValues rule = options.formats.table.missing;
  TextTable table(train.text, train.file, rule);
  Layout layout(table, options);
  std::vector<MissingCell> missing;
  LoadedData<T> data;
  const std::size_t limit = rows_kept(static_cast<std::size_t>(options.rows), layout.num_lines, train.file);
  data.train = Rows<T>(table, layout, options.name, options.memory).read(limit, missing, data.num_dropped_rows);
  if (rule == MissingValues::mean) find_means(missing, options, train.file, data.train, layout.columns);
  fill_means(missing, layout, data.train);
  data.train_where = train.file.string();
  if (!test) return data;
  TextTable other(test->text, test->file, rule);
  declare_as_in(table, layout, other);
  missing.clear();
  data.test = Rows<T>(other, layout, options.name + ".t", options.memory).read(~std::size_t{0}, missing, data.num_dropped_test_rows);
  fill_means(missing, layout, *data.test);
  data.test_where = test->file.string();
  return data;
}

template <class T>
LoadedData<T> load_csv(const fs::path& file, const std::optional<fs::path>& test, const FileDataOptions& options) {
  const std::string text = read_text_file(file, options.memory);
  const std::string test_text = test ? read_text_file(*test, options.memory) : "";
  return read_csv<T>({text, file}, test ? std::optional<CsvText>({test_text, *test}) : std::nullopt, options);
}

template LoadedData<float> read_csv<float>(const CsvText&, const std::optional<CsvText>&, const FileDataOptions&);
template LoadedData<double> read_csv<double>(const CsvText&, const std::optional<CsvText>&, const FileDataOptions&);
template LoadedData<float> load_csv<float>(const fs::path&, const std::optional<fs::path>&, const FileDataOptions&);
template LoadedData<double> load_csv<double>(const fs::path&, const std::optional<fs::path>&, const FileDataOptions&);

}  // namespace fl
