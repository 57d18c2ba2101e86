// The little of SQLite that the run store needs, as two owning types. Every failure is a StoreError that names the file, what was tried,
// SQLite's reason and the way out.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

struct sqlite3;
struct sqlite3_stmt;

namespace fl::sqlite {

enum class OpenMode { existing, create };

// A prepared statement; parameters and columns count from 0.
class Statement {
 public:
  void bind(int index, std::uint64_t value);
  void bind(int index, double value);  // NaN becomes NULL
  void bind(int index, std::string_view text);
  void bind_empty(int index);  // a blob without bytes

  // Runs to the next row; false when there is none left.
  [[nodiscard]] bool step();
  // Runs a statement that returns no rows, and makes it ready for new parameters.
  void run();

  [[nodiscard]] std::uint64_t integer(int column) const;
  [[nodiscard]] double real(int column) const;  // NULL becomes NaN
  [[nodiscard]] std::string text(int column) const;

 private:
  friend class Database;
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  Statement(class Database& database, std::string_view sql);
  void expect_ok(int code) const;

  class Database& database_;
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
};

// An open database file.
class Database {
 public:
  Database(const std::filesystem::path& file, OpenMode mode);

  void execute(const std::string& sql);
  [[nodiscard]] Statement prepare(std::string_view sql) { return {*this, sql}; }
  [[nodiscard]] std::uint64_t integer(std::string_view sql);  // the first cell of a query
  [[nodiscard]] std::uint64_t last_row_id() const;
  [[nodiscard]] bool in_transaction() const;
  [[noreturn]] void fail(int code) const;

 private:
  friend class Statement;
  struct Close {
    void operator()(sqlite3* connection) const;
  };
  std::filesystem::path file_;
  std::unique_ptr<sqlite3, Close> connection_;
};

// All or nothing: rolled back unless commit() was reached.
class Transaction {
 public:
  explicit Transaction(Database& database);
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  ~Transaction();
  void commit();

 private:
  Database& database_;
};

}  // namespace fl::sqlite
