// What a check found wrong, and where it looked.
#pragma once

#include <cstddef>
#include <exception>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace fl::checks {

// What a part did so wrong that looking further makes no sense; the text is the finding.
class Broken : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Counts everything that is wrong and keeps the first few texts: a part that is wrong once is usually wrong everywhere.
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

// "top_k ratio=0.25, float32, scope tensor": the start of every finding made there.
class FindingPlace {
 public:
  FindingPlace(Findings& findings, std::string where) : findings_(findings), where_(std::move(where)) {}
  [[nodiscard]] FindingPlace inside(const std::string& more) const { return {findings_, where_ + ", " + more}; }

  void fail(const std::string& what) { findings_.add(where_ + ": " + what); }
  // Returns the condition, so that what depends on it can be left out.
  bool expect(bool holds, const char* what) {
    if (!holds) fail(what);
    return holds;
  }
  // x <= bound; NaN is not.
  bool at_most(double x, double bound, const std::string& what) {
    const bool holds = x <= bound;
    if (!holds) fail(what + " is " + std::to_string(x) + ", should be at most " + std::to_string(bound));
    return holds;
  }
  // Whatever `work` throws is a finding.
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
