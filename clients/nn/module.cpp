#include "clients/nn/module.hpp"

#include <algorithm>
#include <cmath>

namespace fl::nn {

std::string Shape::text() const {
  std::string text;
  for (const std::size_t d : dims) text += (text.empty() ? "" : "x") + std::to_string(d);
  return text;
}

std::vector<std::pair<Initial, std::string>> initial_names() {
  return {{Initial::pytorch, "pytorch"},
          {Initial::kaiming_normal, "kaiming_normal"},
          {Initial::xavier_uniform, "xavier_uniform"},
          {Initial::zero, "zero"}};
}

template <class T>
void draw_initial(Initial how, RandomSequence& random, std::size_t fan_in, std::size_t fan_out, bool is_bias, T* w, std::size_t size) {
  const auto uniform = [&](double bound) {
    for (std::size_t j = 0; j < size; ++j) w[j] = static_cast<T>(bound * (2 * random.uniform() - 1));
  };
  const auto in = static_cast<double>(fan_in), out = static_cast<double>(fan_out);
  if (how == Initial::zero || (is_bias && how != Initial::pytorch)) {
    std::fill_n(w, size, T(0));
  } else if (how == Initial::pytorch) {
    uniform(1 / std::sqrt(in));
  } else if (how == Initial::xavier_uniform) {
    uniform(std::sqrt(6 / (in + out)));
  } else {
    for (std::size_t j = 0; j < size; ++j) w[j] = static_cast<T>(std::sqrt(2 / in) * random.normal());
  }
}
template void draw_initial(Initial, RandomSequence&, std::size_t, std::size_t, bool, float*, std::size_t);
template void draw_initial(Initial, RandomSequence&, std::size_t, std::size_t, bool, double*, std::size_t);

}  // namespace fl::nn
