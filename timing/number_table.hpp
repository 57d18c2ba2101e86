// Tables of numbers from CSV files that a scenario names: speeds of devices, rates over time, times of availability.
//
// The first line names the columns, in any order. All other cells are finite numbers; `client` is a whole number, or "*" for all clients
// that have no lines of their own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "fl_core/config/device.hpp"
#include "timing/client_facts.hpp"

namespace fl {

struct TableColumn {
  std::string name;
  bool is_required = true;
};

class FL_API NumberTable {
 public:
  static constexpr std::uint32_t kAllClients = std::numeric_limits<std::uint32_t>::max();

  struct Row {
    std::size_t line = 0;         // of the file, from 1
    std::uint32_t client = 0;     // or kAllClients
    std::vector<double> cells{};  // [columns]; NaN: the file does not have the column
  };

  // Reads the file that the key `path` names. `columns` are those besides `client`, which is optional if `client_is_optional`; without it
  // all lines are for all clients. Throws ConfigError (key `path`) with the file and the line.
  NumberTable(const std::string& path, std::vector<TableColumn> columns, const ClientFacts& clients, bool client_is_optional);

  [[nodiscard]] const std::vector<Row>& rows() const { return rows_; }
  // Returns the rows of each client in the order of the file: its own, or those for all clients. Throws ConfigError if a client has none.
  [[nodiscard]] std::vector<std::vector<const Row*>> rows_by_client() const;
  // Throws ConfigError: "FILE:LINE: message".
  [[noreturn]] void refuse(std::size_t line, const std::string& message) const;
  // Throws ConfigError unless the cell is above 0. A missing cell is accepted.
  void require_positive(const Row& row, std::size_t column) const;

 private:
  void read_header(std::string_view line, bool client_is_optional);
  void read_row(std::string_view line, std::size_t number);
  [[nodiscard]] std::uint32_t read_client(std::string_view cell, std::size_t number) const;

  std::string file_;
  std::vector<TableColumn> columns_;
  std::size_t num_clients_ = 0;
  std::vector<std::size_t> places_;  // of each cell of a line: its column; columns_.size(): the client
  std::vector<Row> rows_;
};

}  // namespace fl
