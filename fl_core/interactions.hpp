// Which items each user met, in ratings of tokens {user, num_users + item}; and items that it did not meet, to be drawn from.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "fl_core/dataset.hpp"

namespace fl {

class Interactions {
 public:
  Interactions() = default;
  Interactions(std::size_t num_users, std::size_t num_items) : met_(num_users), num_items_(num_items) {}

  // Adds the rows of a data set with the same users and items.
  template <class T>
  void add(const Dataset<T>& ratings) {
    for (std::size_t row = 0; row < ratings.num_rows; ++row)
      met_[static_cast<std::size_t>(ratings.tokens[2 * row])].push_back(ratings.tokens[2 * row + 1] -
                                                                        static_cast<std::int32_t>(met_.size()));
    for (std::vector<std::int32_t>& items : met_) {
      std::sort(items.begin(), items.end());
      items.erase(std::unique(items.begin(), items.end()), items.end());
    }
  }

  [[nodiscard]] std::size_t num_users() const { return met_.size(); }
  [[nodiscard]] bool has_met(std::size_t user, std::int32_t item) const {
    return std::binary_search(met_[user].begin(), met_[user].end(), item);
  }
  [[nodiscard]] std::size_t num_unmet(std::size_t user) const { return num_items_ - met_[user].size(); }
  // The k-th (from 0) of the items that the user did not meet, ascending; k < num_unmet(user).
  [[nodiscard]] std::int32_t unmet(std::size_t user, std::size_t k) const {
    const std::vector<std::int32_t>& met = met_[user];
    // met[j] - j items below met[j] were not met.
    std::size_t low = 0, high = met.size();
    while (low < high) {
      const std::size_t middle = (low + high) / 2;
      if (static_cast<std::size_t>(met[middle]) - middle > k)
        high = middle;
      else
        low = middle + 1;
    }
    return static_cast<std::int32_t>(k + low);
  }

 private:
  std::vector<std::vector<std::int32_t>> met_;  // [users] ascending
  std::size_t num_items_ = 0;
};

}  // namespace fl
