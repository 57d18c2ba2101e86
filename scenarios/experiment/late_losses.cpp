#include "scenarios/experiment/late_losses.hpp"

#include <algorithm>
#include <cmath>

#include "scenarios/results/end_point.hpp"

namespace fl {
namespace {

constexpr std::size_t kMostBytes = std::size_t{16} << 20;  // of the models that a run keeps

}  // namespace

template <class T>
void LateLosses<T>::keep(std::vector<RoundRow>& rows, const RunPlace& place, std::span<const T> model) {
  kept_.push_back({rows.size() - 1, place, {model.begin(), model.end()}});
  drop_before_the_window(place);
  if (kept_.size() * model.size_bytes() > kMostBytes) measure(rows);
}

// A run may end here, or anywhere later but at its limit of bits. The window of an end begins at 0.8 of it or later, with the value that
// was measured last at or before that place.
template <class T>
void LateLosses<T>::drop_before_the_window(const RunPlace& now) {
  const auto start = [](double end) { return (1 - kWindow) * end; };
  const double rounds = start(now.rounds), bits_up = start(std::min(now.bits_up, stop_.bits_up.value_or(INFINITY))),
               bits = start(std::min(now.bits, stop_.bits.value_or(INFINITY)));
  const auto is_at_or_before = [&](const Kept& kept) {
    return kept.place.rounds <= rounds && kept.place.bits_up <= bits_up && kept.place.bits <= bits;
  };
  std::size_t num_before = 0;
  while (num_before < kept_.size() && is_at_or_before(kept_[num_before])) ++num_before;
  if (num_before > 1) kept_.erase(kept_.begin(), kept_.begin() + static_cast<std::ptrdiff_t>(num_before - 1));
}

template <class T>
void LateLosses<T>::measure(std::vector<RoundRow>& rows) {
  for (const Kept& kept : kept_) {
    RoundRow& row = rows[kept.row];
    row.train_loss = loss_(kept.model);
    row.f_gap = row.train_loss - f_star_;
    if (not_finite_ == 0 && !std::isfinite(row.train_loss)) not_finite_ = row.round;
  }
  kept_.clear();
}

template <class T>
std::string LateLosses<T>::measure_all(std::vector<RoundRow>& rows) {
  measure(rows);
  return not_finite_ == 0 ? "" : "train_loss is not finite in round " + std::to_string(not_finite_);
}

template class LateLosses<float>;
template class LateLosses<double>;

}  // namespace fl
