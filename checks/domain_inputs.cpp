#include "checks/domain_inputs.hpp"

namespace fl::checks {
namespace {

constexpr double kInside = 1e-5;  // relative distance to a bound, larger than a rounding in float32

// The largest magnitude and the norm of a segment. Norms are computed from scaled entries, so that no square overflows or vanishes.
struct Size {
  double largest = 0, norm = 0;
};
Size size_of(const Segment& segment, const std::vector<double>& p) {
  Size size;
  for (std::size_t j = segment.begin; j < segment.end; ++j) size.largest = std::max(size.largest, std::fabs(p[j]));
  if (size.largest == 0) return size;
  double sum = 0;
  for (std::size_t j = segment.begin; j < segment.end; ++j) sum += std::pow(p[j] / size.largest, 2);
  size.norm = size.largest * std::sqrt(sum);
  return size;
}

// Returns the largest of both over all segments.
Size largest_size(const Scope& scope, const std::vector<double>& p) {
  Size all;
  for (const Segment& segment : scope.segments) {
    const Size size = size_of(segment, p);
    all = {std::max(all.largest, size.largest), std::max(all.norm, size.norm)};
  }
  return all;
}

double most_factor(const Domain& domain, const Size& size) {
  const double entry = std::min({domain.entries.most, domain.sent.most, domain.largest.most});
  return std::min(entry / size.largest, domain.norm.most / size.norm);
}
double least_factor(const Domain& domain, const Size& size) {
  const double entry = std::max({domain.entries.least, domain.sent.least, domain.largest.least});
  return std::max(entry / size.largest, domain.norm.least / size.norm);
}

}  // namespace

Domain of_inputs(const Domain& domain) {
  constexpr double kMillion = 1e6;
  Domain all = domain;
  all.remainder.clear();
  for (const Domain& rest : domain.remainder) {
    Domain larger = of_inputs(rest);
    for (MagnitudeRange* range : {&larger.entries, &larger.sent, &larger.largest, &larger.norm}) range->least *= kMillion;
    all = in_both(all, larger);
  }
  return all;
}

std::string fault_of(const Domain& domain) {
  for (const MagnitudeRange& range : {domain.entries, domain.sent, domain.largest, domain.norm})
    if (!(range.least >= 0) || !(range.most > 0) || !(range.least < range.most))
      return "the contract's domain has a range from " + std::to_string(range.least) + " to " + std::to_string(range.most);
  for (const Domain& rest : domain.remainder)
    if (const std::string fault = fault_of(rest); !fault.empty()) return fault;
  return "";
}

bool has_bound(const Domain& limits, Reach reach) {
  const Domain domain = of_inputs(limits);
  const auto any = [&domain](auto is) { return is(domain.entries) || is(domain.sent) || is(domain.largest) || is(domain.norm); };
  if (reach == Reach::most) return any([](const MagnitudeRange& range) { return range.is_bounded(); });
  return reach == Reach::drawn || any([](const MagnitudeRange& range) { return range.least > 0; });
}

// Scales p divided by a power of two near its largest entry, because a factor for denormal numbers may be infinite.
std::vector<double> multiple_in(const Domain& domain, const Scope& scope, std::vector<double> p, Reach reach) {
  const Size size = largest_size(scope, p);
  if (size.largest == 0) return p;
  const int exponent = std::ilogb(size.largest);
  const double itself = std::ldexp(1.0, exponent);
  const Size unit{std::ldexp(size.largest, -exponent), std::ldexp(size.norm, -exponent)};
  const double most = most_factor(domain, unit) * (1 - kInside), least = least_factor(domain, unit) * (1 + kInside);
  double factor = itself;
  if (reach == Reach::most || most < itself)
    factor = most;
  else if (reach == Reach::least || least > itself)
    factor = std::min(least, most);
  if (factor == itself) return p;
  for (const Segment& segment : scope.segments)
    for (std::size_t j = segment.begin; j < segment.end; ++j) p[j] = std::ldexp(p[j], -exponent) * factor;
  return p;
}

void clear_outside(const Domain& domain, const Scope& scope, std::vector<double>& p) {
  for (const Segment& segment : scope.segments) {
    for (std::size_t j = segment.begin; j < segment.end; ++j)
      if (!domain.entries.holds(std::fabs(p[j])) || !domain.sent.holds(std::fabs(p[j]))) p[j] = 0;
    const Size size = size_of(segment, p);
    if (!domain.largest.holds(size.largest) || !domain.norm.holds(size.norm))
      std::fill(p.begin() + static_cast<std::ptrdiff_t>(segment.begin), p.begin() + static_cast<std::ptrdiff_t>(segment.end), 0.0);
  }
}

}  // namespace fl::checks
