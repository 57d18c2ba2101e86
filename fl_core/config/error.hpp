// Errors of fedbits, by who can act on them.
//
//   ConfigError   a scenario, an option or a command line is wrong: found before anything runs, exit code 2
//   DataError     a data file cannot be read as what it claims to be; the text names file, line and column
//   StoreError    results cannot be written or read
//   DeviceError   an accelerator refused a call; the text carries the expression and the place
//   Result<T>     bytes from a peer: never trusted, never an exception
// Numeric divergence is none of these: it is a recorded status of a run.
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

// One thing that is wrong in a configuration. `where` is "file:line:column", "--set" or an option path; it may be empty.
struct Problem {
  std::string where;
  std::string message;
};

// All problems of one configuration at once.
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

// Why bytes could not be decoded, and at which bit.
struct DecodeError {
  std::string reason;
  std::size_t bit = 0;
};

// A value, or the reason why there is none.
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

// The candidate nearest to `name` in edit distance, or "" when none is near enough to be a slip of the fingers.
[[nodiscard]] FL_API std::string nearest_name(const std::string& name, const std::vector<std::string>& candidates);

}  // namespace fl
