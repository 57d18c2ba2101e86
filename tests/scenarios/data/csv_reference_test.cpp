// Compares CSV tables in every allowed notation with the numbers from which they were written.
#include <gmock/gmock.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <random>
#include <set>

#include "scenarios/data/csv.hpp"

namespace fl {
namespace {

// A table as it was meant: numbers or names per column, nothing for a missing value.
struct MeantTable {
  std::vector<bool> holds_numbers;
  std::vector<std::vector<std::optional<double>>> numbers;  // [rows][columns]
  std::vector<std::vector<std::string>> names;              // [rows][columns]; "" = missing
  std::vector<int> labels;
  std::string text;
};

// Writes tables and remembers what they mean.
class CsvWriter {
 public:
  CsvWriter(unsigned seed, double p_missing) : random_(seed), p_missing_(p_missing) {}

  MeantTable table(std::size_t rows, std::size_t columns) {
    MeantTable table;
    if (pick(2) == 0) table.text = "\xEF\xBB\xBF";
    for (std::size_t c = 0; c < columns; ++c) {
      table.holds_numbers.push_back(c == 0 || pick(4) > 0);
      table.text += "column " + std::to_string(c) + ",";
    }
    table.text += "label" + line_end();
    for (std::size_t r = 0; r < rows; ++r) add_row(table);
    return table;
  }

 private:
  void add_row(MeantTable& table) {
    auto& numbers = table.numbers.emplace_back();
    auto& names = table.names.emplace_back();
    for (const bool is_number : table.holds_numbers) {
      const bool is_missing = std::uniform_real_distribution<double>(0, 1)(random_) < p_missing_;
      numbers.emplace_back();
      names.emplace_back();
      if (is_missing) {
        table.text += blanks() + one_of({"", "NA", "n/a", "NaN", "null", "?", "\"\"", "nAn"}) + blanks();
      } else if (is_number) {
        const std::string text = number();
        numbers.back() = std::strtod(text.c_str(), nullptr);
        table.text += in_form(text);
      } else {
        names.back() = one_of({"low", "high", "very, high", "a \"quoted\" one", "nah", "name"});
        table.text += quoted(names.back());
      }
      table.text += ",";
    }
    table.labels.push_back(static_cast<int>(pick(3)));
    table.text += in_form(std::to_string(table.labels.back())) + line_end();
    if (pick(9) == 0) table.text += line_end();
  }
  std::size_t pick(std::size_t count) { return random_() % count; }
  std::string one_of(const std::vector<std::string>& texts) { return texts[pick(texts.size())]; }
  std::string blanks() { return std::string(pick(3) == 0 ? 1 + pick(2) : 0, ' '); }
  std::string line_end() { return one_of({"\n", "\r\n"}); }
  std::string number() {
    const double value = std::normal_distribution<double>(0, 1)(random_) * std::pow(10.0, static_cast<double>(pick(40)) - 20);
    char text[64];
    std::snprintf(text, sizeof text, one_of({"%.17g", "%.6f", "%.3e", "%.0f"}).c_str(), value);
    return text;
  }
  // Quotes are for any cell, and blanks around an unquoted cell are no part of it.
  std::string in_form(const std::string& text) { return blanks() + (pick(8) == 0 ? "\"" + text + "\"" : text) + blanks(); }
  static std::string quoted(const std::string& text) {
    std::string cell = "\"";
    for (const char c : text) cell += c == '"' ? std::string("\"\"") : std::string(1, c);
    return cell + "\"";
  }

  std::mt19937 random_;
  double p_missing_;
};

// The data that the reader must return for a table: rows with a missing value are left out, names become features in alphabetical order.
struct MeantData {
  std::vector<std::vector<double>> rows;
  std::vector<std::int32_t> labels;
};

MeantData meaning_of(const MeantTable& table) {
  const auto is_whole = [&](std::size_t r) {
    for (std::size_t c = 0; c < table.holds_numbers.size(); ++c)
      if (table.holds_numbers[c] ? !table.numbers[r][c] : table.names[r][c].empty()) return false;
    return true;
  };
  std::vector<std::set<std::string>> names(table.holds_numbers.size());
  std::set<int> classes;
  for (std::size_t r = 0; r < table.labels.size(); ++r) {
    if (!is_whole(r)) continue;
    for (std::size_t c = 0; c < names.size(); ++c) names[c].insert(table.names[r][c]);
    classes.insert(table.labels[r]);
  }
  MeantData data;
  for (std::size_t r = 0; r < table.labels.size(); ++r) {
    if (!is_whole(r)) continue;
    std::vector<double>& row = data.rows.emplace_back();
    for (std::size_t c = 0; c < names.size(); ++c) {
      if (table.holds_numbers[c]) {
        row.push_back(*table.numbers[r][c]);
        continue;
      }
      for (const std::string& name : names[c]) row.push_back(name == table.names[r][c] ? 1 : 0);
    }
    data.labels.push_back(static_cast<std::int32_t>(std::distance(classes.begin(), classes.find(table.labels[r]))));
  }
  return data;
}

TEST(CsvReference, EveryWayOfWritingIsReadAsItIsMeant) {
  for (unsigned seed = 1; seed <= 60; ++seed) {
    const MeantTable table = CsvWriter(seed, seed % 3 == 0 ? 0.0 : 0.02).table(80, 1 + seed % 7);
    const MeantData meant = meaning_of(table);
    FileDataOptions options{.name = "t.csv"};
    options.formats.table.missing = MissingValues::drop;
    const LoadedData<double> data = read_csv<double>({table.text, "t.csv"}, std::nullopt, options);
    ASSERT_EQ(data.train.num_rows, meant.rows.size()) << seed;
    EXPECT_EQ(data.num_dropped_rows, table.labels.size() - meant.rows.size());
    EXPECT_EQ(data.train.label, meant.labels);
    for (std::uint32_t r = 0; r < meant.rows.size(); ++r) {
      std::vector<double> features(data.train.num_features);
      data.train.gather({&r, 1}, features.data());
      ASSERT_EQ(features, meant.rows[r]) << "seed " << seed << ", row " << r;
    }
  }
}

}  // namespace
}  // namespace fl
