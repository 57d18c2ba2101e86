// Which items each user met, in ratings of tokens {user, num_users + item}; and items that it did not meet, to be drawn from.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "fl_core/data/dataset.hpp"
#include "fl_core/random/random.hpp"

namespace fl {

// The numbers by which the negatives of a minibatch are drawn: those of a layer that no network has. Row r of it takes those from r times
// their count on.
[[nodiscard]] FL_HD inline RandomStream numbers_of_negatives(RandomStream minibatch) {
  minibatch.step_layer |= 0xFFFE;
  return minibatch;
}
// And of a row of the data itself.
[[nodiscard]] FL_HD inline RandomStream fixed_numbers_of_negatives(std::uint32_t row) {
  return {hash64(0, static_cast<std::uint64_t>(Purpose::negatives)), row, 0};
}

// The items that a user met, ascending, of num_items.
struct MetItems {
  const std::int32_t* met = nullptr;
  std::size_t count = 0, num_items = 0;

  [[nodiscard]] FL_HD std::size_t num_unmet() const { return num_items - count; }
  // The k-th (from 0) of the items that the user did not meet, ascending; k < num_unmet().
  [[nodiscard]] FL_HD std::int32_t unmet(std::size_t k) const {
    // met[j] - j items below met[j] were not met.
    std::size_t low = 0, high = count;
    while (low < high) {
      const std::size_t middle = (low + high) / 2;
      if (static_cast<std::size_t>(met[middle]) - middle > k)
        high = middle;
      else
        low = middle + 1;
    }
    return static_cast<std::int32_t>(k + low);
  }
  [[nodiscard]] FL_HD bool has(std::int32_t item) const {
    std::size_t low = 0, high = count;
    while (low < high) {
      const std::size_t middle = (low + high) / 2;
      if (met[middle] < item)
        low = middle + 1;
      else
        high = middle;
    }
    return low < count && met[low] == item;
  }
  // An item by a random word that the user has not met, nor is it `own` (which a test row's is not among the met ones).
  [[nodiscard]] FL_HD std::int32_t draw_unmet(std::int32_t own, std::uint32_t word) const {
    const bool skips = !has(own);
    const std::uint64_t others = num_unmet() - (skips ? 1 : 0);
    const auto k = static_cast<std::size_t>((word * others) >> 32);
    const std::int32_t item = unmet(k);
    return skips && item >= own ? unmet(k + 1) : item;
  }
};

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
  [[nodiscard]] std::size_t num_items() const { return num_items_; }
  [[nodiscard]] MetItems of(std::size_t user) const { return {met_[user].data(), met_[user].size(), num_items_}; }
  [[nodiscard]] bool has_met(std::size_t user, std::int32_t item) const { return of(user).has(item); }
  [[nodiscard]] std::size_t num_unmet(std::size_t user) const { return of(user).num_unmet(); }
  // The k-th (from 0) of the items that the user did not meet, ascending; k < num_unmet(user).
  [[nodiscard]] std::int32_t unmet(std::size_t user, std::size_t k) const { return of(user).unmet(k); }

 private:
  std::vector<std::vector<std::int32_t>> met_;  // [users] ascending
  std::size_t num_items_ = 0;
};

}  // namespace fl
