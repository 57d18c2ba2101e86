// The items that each user has rated, for ratings with tokens {user, num_users + item}, and random draws from the other items.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "fl_core/data/dataset.hpp"
#include "fl_core/random/random.hpp"

namespace fl {

// Returns the random stream for the negatives of a minibatch. It uses a layer number that no network has. With c negatives per row, row r
// uses the numbers from r * c on.
[[nodiscard]] FL_HD inline RandomStream numbers_of_negatives(RandomStream minibatch) {
  minibatch.step_layer |= 0xFFFE;
  return minibatch;
}
// Returns the random stream for the fixed negatives of one row of the data.
[[nodiscard]] FL_HD inline RandomStream fixed_numbers_of_negatives(std::uint32_t row) {
  return {hash64(0, static_cast<std::uint64_t>(Purpose::negatives)), row, 0};
}

// The items that a user has rated, ascending, out of num_items.
struct MetItems {
  const std::int32_t* met = nullptr;
  std::size_t count = 0, num_items = 0;

  [[nodiscard]] FL_HD std::size_t num_unmet() const { return num_items - count; }
  // Returns the k-th (from 0) item that the user has not rated, ascending; k < num_unmet().
  [[nodiscard]] FL_HD std::int32_t unmet(std::size_t k) const {
    // met[j] - j items below met[j] are not rated.
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
  // Returns an item, selected by a random word, that the user has not rated and that is not `own`. (The item of a test row is not among
  // the rated ones.)
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
  // Returns the k-th (from 0) item that the user has not rated, ascending; k < num_unmet(user).
  [[nodiscard]] std::int32_t unmet(std::size_t user, std::size_t k) const { return of(user).unmet(k); }

 private:
  std::vector<std::vector<std::int32_t>> met_;  // [users] ascending
  std::size_t num_items_ = 0;
};

}  // namespace fl
