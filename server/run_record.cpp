#include "server/run_record.hpp"

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

}  // namespace

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
  archive.list(rows);
}

}  // namespace fl
