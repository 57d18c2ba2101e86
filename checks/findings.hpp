// Findings of a check: the faults and the places where they occurred.
#pragma once

#include <cstddef>
#include <exception>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace fl::checks {

// A fault of a part after which further checks make no sense. Its text is the finding.
class Broken : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Counts all findings and keeps the texts of the first few: a part that is wrong once is usually wrong everywhere.
class Findings {
 public:
  static constexpr std::size_t kKept = 4;

  void add(std::string text) {
    if (count_++ < kKept) texts_.push_back(std::move(text));
  }
  [[nodiscard]] bool empty() const { return count_ == 0; }
  [[nodiscard]] std::size_t count() const { return count_; }
  [[nodiscard]] const std::vector<std::string>& texts() const { return texts_; }

 private:
  std::size_t count_ = 0;
  std::vector<std::string> texts_;
};

// Adds findings with a common start such as "top_k ratio=0.25, float32, scope tensor".
class FindingPlace {
 public:
  FindingPlace(Findings& findings, std::string where) : findings_(findings), where_(std::move(where)) {}
  [[nodiscard]] FindingPlace inside(const std::string& more) const { return {findings_, where_ + ", " + more}; }

  void fail(const std::string& what) { findings_.add(where_ + ": " + what); }
  // Adds a finding unless the condition holds. Returns the condition, so that the caller can skip dependent checks.
  bool expect(bool holds, const char* what) {
    if (!holds) fail(what);
    return holds;
  }
  // Adds a finding unless x <= bound, also for NaN. Returns whether it holds.
  bool at_most(double x, double bound, const std::string& what) {
    const bool holds = x <= bound;
    if (!holds) fail(what + " is " + std::to_string(x) + ", should be at most " + std::to_string(bound));
    return holds;
  }
  // Runs `work` and turns an exception into a finding.
  template <class Work>
  void guard(const Work& work) {
    try {
      work();
    } catch (const Broken& broken) {
      fail(broken.what());
    } catch (const std::exception& error) {
      fail(std::string("threw: ") + error.what());
    } catch (...) {
      fail("threw something that is no exception");
    }
  }

 private:
  Findings& findings_;
  std::string where_;
};

}  // namespace fl::checks
