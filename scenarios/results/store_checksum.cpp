#include "scenarios/results/store_checksum.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "fl_core/state/checksum.hpp"

namespace fl {
namespace {

std::uint64_t bits_of(std::uint64_t value) { return value; }
std::uint64_t bits_of(double value) {
  if (std::isnan(value)) return std::bit_cast<std::uint64_t>(std::numeric_limits<double>::quiet_NaN());
  return std::bit_cast<std::uint64_t>(value == 0 ? 0.0 : value);
}

void add(Hash64& hash, const std::string& text) { hash.add_text(text); }
void add(Hash64& hash, RunStatus status) { hash.add_text(to_string(status)); }
template <class Number>
void add(Hash64& hash, Number number) {
  hash.add_value(bits_of(number));
}

void add(Hash64& hash, const MeasureColumn& column) {
  for (const std::string* text : {&column.name, &column.unit, &column.definition, &column.empty, &column.title}) hash.add_text(*text);
  hash.add_text(to_string(column.type)).add_text(to_string(column.better)).add_text(to_string(column.shown));
  hash.add_value(std::uint64_t{column.is_compared});
}

template <class Columns>
void add_columns(Hash64& hash, const Columns& columns, const RunRecord& record) {
  for (const auto& column : columns) std::visit([&](auto member) { add(hash, record.*member); }, column.member);
}

}  // namespace

std::uint64_t checksum_of(const RunRecord& record) {
  Hash64 hash;
  add_columns(hash, kRunColumns, record);
  add_columns(hash, kRunDetailColumns, record);
  hash.add_value(record.axes.size());
  for (const AxisLabel& axis : record.axes) hash.add_text(axis.key).add_text(axis.label);
  hash.add_value(record.constants.size());
  for (const ResolvedConstant& constant : record.constants) hash.add_text(constant.name).add_value(bits_of(constant.value));
  hash.add_value(record.plugins.size());
  for (const PluginUse& plugin : record.plugins) hash.add_text(plugin.name).add_text(plugin.sha256);
  // Runs without such columns add nothing, so that the checksums of earlier runs stay valid.
  for (const MeasureColumn& column : record.columns) add(hash, column);
  return hash.value();
}

std::uint64_t checksum_of(std::span<const RoundRow> rows) {
  Hash64 hash;
  hash.add_value(rows.size());
  std::array<std::uint64_t, kRoundColumns.size()> values{};
  for (const RoundRow& row : rows) {
    for (std::size_t c = 0; c < values.size(); ++c)
      values[c] = std::visit([&row](auto member) { return bits_of(row.*member); }, kRoundColumns[c].member);
    hash.add_values(std::span<const std::uint64_t>(values));
    for (const double value : row.more) hash.add_value(bits_of(value));
  }
  return hash.value();
}

}  // namespace fl
