#include "study/machine/machine_rates.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <vector>

#include "clients/nn/gemm.hpp"
#include "fl_core/config/stopping.hpp"

namespace fl {

namespace {

constexpr std::size_t kSide = 256, kNumbers = std::size_t{16} << 20;

// Returns amount / median seconds of f(), which is repeated for about `seconds` and at least five times, after one time that does not
// count.
template <class F>
double rate(double amount, double seconds, const F& f) {
  using Clock = std::chrono::steady_clock;
  f();
  std::vector<double> times;
  const auto begin = Clock::now();
  while (times.size() < 5 || std::chrono::duration<double>(Clock::now() - begin).count() < seconds) {
    check_for_stop();
    const auto start = Clock::now();
    f();
    times.push_back(std::chrono::duration<double>(Clock::now() - start).count());
  }
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return amount / std::max(*middle, 1e-12);
}

}  // namespace

MachineRates measure_rates(double seconds) {
  MachineRates rates;
  std::vector<float> A(kSide * kSide, 0.5F), B(kSide * kSide, 0.25F), C(kSide * kSide);
  const double operations = 2.0 * static_cast<double>(kSide * kSide * kSide);
  rates.flops = rate(operations, seconds / 2, [&] {
    nn::gemm(nn::Op::plain, nn::Op::plain, kSide, kSide, kSide, A.data(), kSide, B.data(), kSide, false, C.data(), kSide);
  });
  std::vector<float> x(kNumbers, 1.0F), y(kNumbers, 1e-6F);
  const double bytes = 3.0 * sizeof(float) * static_cast<double>(kNumbers);
  rates.bandwidth = rate(bytes, seconds / 2, [&] { std::transform(x.begin(), x.end(), y.begin(), x.begin(), std::plus<>{}); });
  return rates;
}

}  // namespace fl
