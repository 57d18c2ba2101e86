// The error of a model that cannot compute, with the client and the round in which it happened.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "fl_core/config/error.hpp"

namespace fl {

// Reports that a model could not compute the gradient of the client at a position of its block. GradientOracle knows which client that is.
class FL_API GradientFailure : public Error {
 public:
  GradientFailure(const std::string& what, std::size_t position) : Error(what), text_(what), position_(position) {}
  [[nodiscard]] std::size_t position() const { return position_; }
  [[nodiscard]] const char* what() const noexcept override { return text_.c_str(); }
  // Adds to the text whose gradient it was, and when: "round 3".
  virtual void name(std::uint32_t client, const std::string& when) {
    text_ = "client " + std::to_string(client) + ", " + when + ": " + text_;
  }

 protected:
  void set_text(std::string text) { text_ = std::move(text); }

 private:
  std::string text_;
  std::size_t position_;
};

// Calls compute(), in which a model computes the gradients of these clients. A failure of the model gets the number of its client.
template <class Compute>
void naming_failures(std::span<const std::uint32_t> clients, const std::string& when, const Compute& compute) {
  try {
    compute();
  } catch (GradientFailure& failure) {
    failure.name(clients[failure.position()], when);
    throw;
  }
}

}  // namespace fl
