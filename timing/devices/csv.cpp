// Devices from a file: CSV with a first line "client,flops,bandwidth[,memory]" and a line for each client; client "*" is all others.
#include <cmath>
#include <utility>

#include "timing/devices.hpp"
#include "timing/number_table.hpp"

namespace fl {
namespace {

struct CsvDevicesOptions {
  std::string path;
};
void describe(Schema& schema, CsvDevicesOptions& options) {
  schema
      .field("path", options.path,
             "CSV with the columns client, flops [1/s], bandwidth [byte/s] and, if known, memory [byte]; looked for like data.path")
      .required();
}

class CsvDevices final : public Devices {
 public:
  explicit CsvDevices(CsvDevicesOptions options) : options_(std::move(options)) {}

  void open(const ClientFacts& clients) override {
    const NumberTable table(options_.path, {{"flops"}, {"bandwidth"}, {"memory", false}}, clients, false);
    rates_.clear();
    for (const NumberTable::Row& row : table.rows())
      for (std::size_t column = 0; column < row.cells.size(); ++column) table.require_positive(row, column);
    for (const auto& rows : table.rows_by_client()) {
      if (rows.size() > 1) table.refuse(rows[1]->line, "the client has a line already: line " + std::to_string(rows[0]->line));
      const std::vector<double>& cells = rows[0]->cells;
      rates_.push_back({cells[0], cells[1], std::isnan(cells[2]) ? DeviceRates{}.memory_bytes : cells[2]});
    }
  }
  [[nodiscard]] DeviceRates rates(std::uint32_t client) const override { return rates_[client]; }

 private:
  CsvDevicesOptions options_;
  std::vector<DeviceRates> rates_;  // [N]
};

FL_REGISTER_DEVICES(CsvDevices, CsvDevicesOptions, "csv", "each client's device from a file", "");

}  // namespace
}  // namespace fl
