#include "scenarios/results/run_record.hpp"

#include <algorithm>
#include <bit>
#include <type_traits>

namespace fl {

namespace {

void persist_value(Archive& archive, std::string& text) { archive.text(text); }
template <class Number>
void persist_value(Archive& archive, Number& number) {
  archive.value(number);
}
template <class Columns>
void persist_columns(Archive& archive, const Columns& columns, RunRecord& record) {
  for (const auto& column : columns) std::visit([&](auto member) { persist_value(archive, record.*member); }, column.member);
}

template <class Enum>
void persist_choice(Archive& archive, Enum& choice, Enum last) {
  auto number = static_cast<std::uint8_t>(choice);
  archive.value(number);
  if (number > static_cast<std::uint8_t>(last)) throw ArchiveError("in 'run': a column has an unknown kind");
  choice = static_cast<Enum>(number);
}

void persist_column(Archive& archive, MeasureColumn& column) {
  for (std::string* text : {&column.name, &column.unit, &column.definition, &column.empty, &column.title}) archive.text(*text);
  persist_choice(archive, column.type, MeasureColumn::Type::count);
  persist_choice(archive, column.better, MeasureColumn::Better::higher);
  persist_choice(archive, column.shown, MeasureColumn::Shown::gap);
  archive.value(column.is_compared);
}

}  // namespace

RoundBitsOfColumns bits_of_columns(const RoundRow& row) {
  RoundBitsOfColumns bits{};
  for (std::size_t c = 0; c < bits.size(); ++c)
    bits[c] = std::visit([&row](auto member) { return std::bit_cast<std::uint64_t>(row.*member); }, kRoundColumns[c].member);
  return bits;
}

void set_columns(RoundRow& row, const RoundBitsOfColumns& bits) {
  for (std::size_t c = 0; c < bits.size(); ++c)
    std::visit([&](auto member) { row.*member = std::bit_cast<std::remove_cvref_t<decltype(row.*member)>>(bits[c]); },
               kRoundColumns[c].member);
}

bool same_bits(const RoundRow& a, const RoundRow& b) {
  const auto is_same = [](double x, double y) { return std::bit_cast<std::uint64_t>(x) == std::bit_cast<std::uint64_t>(y); };
  return bits_of_columns(a) == bits_of_columns(b) && std::ranges::equal(a.more, b.more, is_same);
}

// Writes a row as the sequence of its columns that every run has. The values of measures follow after all rows.
void persist(Archive& archive, std::vector<RoundRow>& rows, std::size_t num_more) {
  std::vector<RoundBitsOfColumns> all;
  if (!archive.is_reading())
    for (const RoundRow& row : rows) all.push_back(bits_of_columns(row));
  archive.list(all);
  if (archive.is_reading()) {
    rows.assign(all.size(), {});
    for (std::size_t r = 0; r < rows.size(); ++r) set_columns(rows[r], all[r]);
  }
  if (num_more == 0) return;
  std::vector<double> more;
  for (const RoundRow& row : rows) more.insert(more.end(), row.more.begin(), row.more.end());
  archive.list(more);
  if (more.size() != rows.size() * num_more) throw ArchiveError("it has other measures than the run");
  for (std::size_t r = 0; r < rows.size(); ++r)
    rows[r].more.assign(more.begin() + static_cast<std::ptrdiff_t>(r * num_more),
                        more.begin() + static_cast<std::ptrdiff_t>((r + 1) * num_more));
}

void persist(Archive& archive, RunRecord& record, std::vector<RoundRow>& rows) {
  archive.section("run");
  persist_columns(archive, kRunColumns, record);
  persist_columns(archive, kRunDetailColumns, record);
  archive.list_of(record.axes, [&](AxisLabel& axis) {
    archive.text(axis.key);
    archive.text(axis.label);
  });
  archive.list_of(record.constants, [&](ResolvedConstant& constant) {
    archive.text(constant.name);
    archive.value(constant.value);
  });
  archive.list_of(record.columns, [&](MeasureColumn& column) { persist_column(archive, column); });
  persist(archive, rows, record.columns.size());
}

}  // namespace fl
