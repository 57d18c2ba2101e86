// Worked examples of papers, as quadratics: small enough to follow by hand, with iterates known in closed form.
//
//   beznosikov     three clients in three dimensions, f_i = <v_i, x>^2 + |x|^2 / 4, v = (-3,2,2), (2,-3,2), (2,2,-3). Gradient descent with
//                  Top-1 and no feedback diverges from (1,1,1): x_k = (1 + 11 eta / 6)^k (1,1,1).
//                  Beznosikov, Horvath, Richtarik, Safaryan, "On Biased Compression for Distributed Learning", 2020.
//   ef21_example   two clients in two dimensions, f_i = |x - a_i|^2 / 2, a = (4,0), (0,3); the optimum is (2, 1.5).
#include <utility>

#include "fl_core/config/registry.hpp"
#include "fl_core/data/data_generator.hpp"
#include "scenarios/data/quadratic_rows.hpp"

namespace fl {
namespace {

template <class T>
Dataset<T> one_row_per_client(const char* name, const std::vector<Quadratic>& functions) {
  Dataset<T> data = allocate_quadratics<T>(name, functions.size(), 1, functions[0].b.size());
  for (std::size_t i = 0; i < functions.size(); ++i) store_quadratic(functions[i], i, data);
  return data;
}

template <class T>
class Beznosikov final : public DataGenerator<T> {
 public:
  explicit Beznosikov(const NoOptions&) {}
  Dataset<T> generate(std::uint64_t) const override {
    const std::vector<std::vector<double>> v = {{-3, 2, 2}, {2, -3, 2}, {2, 2, -3}};
    std::vector<Quadratic> functions;
    for (const auto& v_i : v) {
      Quadratic f{std::vector<double>(9), std::vector<double>(3, 0.0), 0};
      for (std::size_t j = 0; j < 3; ++j)
        for (std::size_t k = 0; k < 3; ++k) f.A[3 * j + k] = 2 * v_i[j] * v_i[k] + (j == k ? 0.5 : 0.0);
      functions.push_back(std::move(f));
    }
    return one_row_per_client<T>("beznosikov", functions);
  }
};

template <class T>
class Ef21Example final : public DataGenerator<T> {
 public:
  explicit Ef21Example(const NoOptions&) {}
  Dataset<T> generate(std::uint64_t) const override {
    return one_row_per_client<T>("ef21_example", {{{1, 0, 0, 1}, {4, 0}, 8}, {{1, 0, 0, 1}, {0, 3}, 4.5}});
  }
};

FL_REGISTER_PART(DataGenerator, Beznosikov, NoOptions,
                 (PartInfo{"data", "beznosikov", "three quadratics on which Top-1 without feedback diverges",
                           "Beznosikov, Horvath, Richtarik, Safaryan, On Biased Compression for Distributed Learning, 2020"}));
FL_REGISTER_PART(
    DataGenerator, Ef21Example, NoOptions,
    (PartInfo{"data", "ef21_example", "two clients |x - a_i|^2 / 2 in the plane, whose EF21 iterates are known",
              "Richtarik, Sokolov, Fatkhullin, EF21: A New, Simpler, Theoretically Better, and Practically Faster Error Feedback, 2021"}));

}  // namespace
}  // namespace fl
