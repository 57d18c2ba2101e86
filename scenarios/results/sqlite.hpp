// The part of SQLite that the run store needs, as owning types. Every failure throws a StoreError that names the file, the attempted
// operation, SQLite's reason and the way out.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "fl_core/config/error.hpp"

struct sqlite3;
struct sqlite3_stmt;

namespace fl::sqlite {

enum class OpenMode { existing, create };

// Reports that the requested data cannot be read because the file is damaged, or was made to look like a store.
class FL_API DamagedError : public StoreError {
 public:
  using StoreError::StoreError;
};

// A prepared statement; parameters and columns count from 0.
class Statement {
 public:
  void bind(int index, std::uint64_t value);
  void bind(int index, double value);  // NaN becomes NULL
  void bind(int index, std::string_view text);
  void bind_empty(int index);  // binds a blob without bytes

  // Runs to the next row. Returns false if no row is left.
  [[nodiscard]] bool step();
  // Runs a statement that returns no rows, and resets it for new parameters.
  void run();
  // Resets a query for new parameters.
  void reset();

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

// An open database file, whose contents are not trusted: the only functions that its schema can run are SQLite's own, and a query that
// takes more steps than a file of its size needs ends with DamagedError.
class Database {
 public:
  Database(const std::filesystem::path& file, OpenMode mode);

  void execute(const std::string& sql);
  [[nodiscard]] Statement prepare(std::string_view sql);
  [[nodiscard]] std::uint64_t integer(std::string_view sql);  // returns the first cell of a query
  [[nodiscard]] std::uint64_t last_row_id() const;
  [[nodiscard]] bool in_transaction() const;
  [[nodiscard]] std::uint64_t text_bytes() const { return text_bytes_; }  // total of all texts that were read
  [[nodiscard]] std::uint64_t file_bytes() const;
  // Returns false if the path no longer names this file.
  [[nodiscard]] bool is_in_place() const;
  [[noreturn]] void fail(int code) const;

 private:
  friend class Statement;
  struct Close {
    void operator()(sqlite3* connection) const;
  };
  struct Steps {
    std::uint64_t taken = 0, most = 0;  // in units of kStepsPerCall
  };
  static int count_steps(void* steps);
  void allow_steps();

  std::filesystem::path file_;
  std::uint64_t device_ = 0, inode_ = 0, text_bytes_ = 0;
  std::unique_ptr<Steps> steps_ = std::make_unique<Steps>();  // SQLite keeps its address
  std::unique_ptr<sqlite3, Close> connection_;
};

// A transaction that is rolled back unless commit() is reached.
class Transaction {
 public:
  enum class Kind { read, write, exclusive };  // read: the data do not change during the transaction
  explicit Transaction(Database& database, Kind kind = Kind::write);
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  ~Transaction();
  void commit();

 private:
  Database& database_;
};

}  // namespace fl::sqlite
