// Error types of fedbits, by who can correct the error.
//
//   ConfigError   a scenario, an option or a command line is wrong; it is found before anything runs; exit code 2
//   DataError     a data file does not have the format that it claims; the text names file, line and column
//   StoreError    results cannot be written or read
//   DeviceError   an accelerator rejected a call; the text contains the expression and its location
//   Result<T>     holds bytes from a peer that may be invalid; decoding them never throws
// Numeric divergence is not an error: it is a recorded status of a run.
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "fl_core/config/device.hpp"

namespace fl {

class FL_API Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// One fault of a configuration. `where` is "file:line:column", "--set" or an option path; it may be empty.
struct Problem {
  std::string where;
  std::string message;
};

// Reports all problems of one configuration at once.
class FL_API ConfigError : public Error {
 public:
  explicit ConfigError(std::vector<Problem> problems);
  explicit ConfigError(const std::string& message);
  [[nodiscard]] const std::vector<Problem>& problems() const { return problems_; }

 private:
  std::vector<Problem> problems_;
};

class FL_API DataError : public Error {
 public:
  using Error::Error;
};

class FL_API StoreError : public Error {
 public:
  using Error::Error;
};

class FL_API DeviceError : public Error {
 public:
  using Error::Error;
};

// The reason why bytes could not be decoded, and the position in bits.
struct DecodeError {
  std::string reason;
  std::size_t bit = 0;
};

// A value, or the reason why decoding failed.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}            // NOLINT(google-explicit-constructor)
  Result(DecodeError error) : state_(std::move(error)) {}  // NOLINT(google-explicit-constructor)
  [[nodiscard]] bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }
  [[nodiscard]] T& value() { return std::get<0>(state_); }
  [[nodiscard]] const T& value() const { return std::get<0>(state_); }
  [[nodiscard]] const DecodeError& error() const { return std::get<1>(state_); }

 private:
  std::variant<T, DecodeError> state_;
};

// Returns the candidate nearest to `name` in edit distance, or "" if none is near enough to be a typing error.
[[nodiscard]] FL_API std::string nearest_name(const std::string& name, const std::vector<std::string>& candidates);

}  // namespace fl
