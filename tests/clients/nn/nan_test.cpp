// Tests that NaN stays NaN through every layer and loss, forward and backward, at every place of a vector, so that a diverging run is
// noticed.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "clients/nn/elementwise.hpp"
#include "clients/nn/losses.hpp"
#include "clients/nn/network.hpp"

namespace fl::nn {
namespace {

const DataNames kNames{{"classes", 4}, {"features", 6}, {"vocabulary", 9}, {"users", 5}, {"items", 7}};

template <class T>
class NanTest : public ::testing::Test {};
using Numbers = ::testing::Types<float, double>;
TYPED_TEST_SUITE(NanTest, Numbers);

template <class T>
constexpr T kNan = std::numeric_limits<T>::quiet_NaN();

template <class T>
std::vector<T> drawn(std::size_t count, std::uint64_t seed) {
  RandomSequence random(seed, Purpose::start);
  std::vector<T> numbers(count);
  for (T& x : numbers) x = static_cast<T>(random.normal());
  return numbers;
}
template <class T>
std::size_t count_nan(const std::vector<T>& numbers) {
  return static_cast<std::size_t>(std::count_if(numbers.begin(), numbers.end(), [](T x) { return std::isnan(x); }));
}

TYPED_TEST(NanTest, FunctionsKeepItWhereItIs) {
  using T = TypeParam;
  for (const char* name : {"relu", "tanh", "gelu"}) {
    const auto layer = make_layer<T>(name, kNames);
    for (const std::size_t n : {1u, 7u, 16u, 33u}) {
      layer->bind({{n}});
      const Exec exec;
      const Pass pass{.exec = exec, .B = 1};
      for (std::size_t place = 0; place < n; ++place) {
        std::vector<T> in = drawn<T>(n, 3), out(n), d_in(n);
        in[place] = kNan<T>;
        layer->forward(pass, nullptr, in.data(), out.data(), nullptr);
        EXPECT_TRUE(std::isnan(out[place]) && count_nan(out) == 1) << name << ' ' << place << " of " << n;
        std::vector<T> d_out = drawn<T>(n, 4);
        d_out[place] = kNan<T>;
        layer->backward(pass, nullptr, in.data(), out.data(), nullptr, d_out.data(), d_in.data(), nullptr);
        EXPECT_TRUE(std::isnan(d_in[place]) && count_nan(d_in) == 1) << name << " backward, " << place << " of " << n;
      }
    }
  }
}

TYPED_TEST(NanTest, VectorFunctionsKeepIt) {
  using T = TypeParam;
  for (std::size_t place = 0; place < 19; ++place) {
    std::vector<T> from = drawn<T>(19, 5), to(19);
    from[place] = kNan<T>;
    for (const auto function : {exp_of<T>, tanh_of<T>, logistic_of<T>}) {
      function(from.size(), from.data(), to.data());
      EXPECT_TRUE(std::isnan(to[place]) && count_nan(to) == 1) << place;
    }
  }
}

// Windows of 2x2 go through vectors, others do not: both against the definition, with NaN alone and twice in a window.
TYPED_TEST(NanTest, TheLargestOfAWindowWithNanIsNan) {
  using T = TypeParam;
  for (const std::size_t width : {2u, 5u, 6u, 16u, 34u, 37u})
    for (const std::size_t every : {3u, 7u, 50u}) {
      const std::size_t height = 4, plane = height * width, out_w = width / 2, out_plane = 2 * out_w, C = 3, B = 2;
      const auto layer = make_layer<T>("max_pool(2)", kNames);
      layer->bind({{C, height, width}});
      std::vector<T> in = drawn<T>(B * C * plane, width), out(B * C * out_plane, T(1)), d_in(in.size(), T(1));
      for (std::size_t j = every; j < in.size(); j += every) in[j] = kNan<T>;
      const std::vector<T> d_out = drawn<T>(out.size(), 9);
      std::vector<T> expected(in.size(), T(0));
      const Exec exec;
      const Pass pass{.exec = exec, .B = B};
      layer->forward(pass, nullptr, in.data(), out.data(), nullptr);
      layer->backward(pass, nullptr, in.data(), out.data(), nullptr, d_out.data(), d_in.data(), nullptr);
      for (std::size_t o = 0; o < out.size(); ++o) {
        const std::size_t p = o / out_plane, y = o % out_plane / out_w, x = o % out_w, first = p * plane + 2 * y * width + 2 * x;
        std::size_t best = first;
        for (const std::size_t at : {first + 1, first + width, first + width + 1})
          if (in[at] > in[best] || std::isnan(in[at])) best = at;
        expected[best] = d_out[o];
        EXPECT_TRUE(out[o] == in[best] || (std::isnan(out[o]) && std::isnan(in[best]))) << width << ' ' << o;
      }
      EXPECT_EQ(d_in, expected) << width << " every " << every;
    }
}

TYPED_TEST(NanTest, PoolingBeforeReluKeepsIt) {
  using T = TypeParam;
  const Network<T> network({"relu", "max_pool(2)"}, {{1, 2, 6}}, kNames);
  Workspace workspace;
  Exec exec;
  exec.workspace = &workspace;
  Workspace::Frame frame(workspace);
  const Tape<T> tape = network.open(frame, 1);
  const std::vector<T> in{-1, -2, -1, 2, kNan<T>, 1, -3, -4, -5, 3, -1, -2};
  std::copy(in.begin(), in.end(), tape.activation[0]);
  const Pass pass{.exec = exec, .B = 1};
  const T* out = network.forward(pass, nullptr, tape);
  EXPECT_EQ(out[0], T(0));
  EXPECT_EQ(out[1], T(3));
  EXPECT_TRUE(std::isnan(out[2]));
  std::fill_n(network.slope_of_output(tape), 3, T(5));
  std::vector<T> d_in(12);
  network.backward(pass, nullptr, tape, d_in.data(), nullptr);
  EXPECT_EQ(d_in, (std::vector<T>{0, 0, 0, 0, 5, 0, 0, 0, 0, 5, 0, 0}));
}

// Dropped entries are multiplied by zero.
TYPED_TEST(NanTest, DropoutDropsNoNan) {
  using T = TypeParam;
  const auto layer = make_layer<T>("dropout(0.5)", kNames);
  layer->bind({{64}});
  const Exec exec;
  std::vector<T> in(64, kNan<T>), out(64), d_in(64);
  const Pass pass{.exec = exec, .B = 1, .training = true, .accumulate = false, .drops = true, .random = RandomStream(9, 1, 1)};
  layer->forward(pass, nullptr, in.data(), out.data(), nullptr);
  EXPECT_EQ(count_nan(out), 64u);
  layer->backward(pass, nullptr, in.data(), out.data(), nullptr, in.data(), d_in.data(), nullptr);
  EXPECT_EQ(count_nan(d_in), 64u);
  std::fill(in.begin(), in.end(), T(-1));
  layer->forward(pass, nullptr, in.data(), out.data(), nullptr);
  for (const T x : out) EXPECT_FALSE(std::signbit(x) && x == 0) << "a dropped entry is 0, not -0";
}

// Through layers whose outputs depend on many entries, some NaN remains; also with the weights NaN.
TYPED_TEST(NanTest, OtherLayersPassItOn) {
  using T = TypeParam;
  for (const char* text : {"dense(3)", "conv2d(3, 3, padding=1)", "conv2d(20, 3)", "group_norm", "batch_norm", "mean_pool(2)",
                           "residual([relu])", "residual([conv2d(2, 3, padding=1), batch_norm, relu])"}) {
    const auto layer = make_layer<T>(text, kNames);
    const Shape input{{2, 4, 8}};
    const std::size_t B = 3, n_out = layer->bind(input).size();
    Workspace workspace;
    Exec exec;
    exec.workspace = &workspace;
    const Pass pass{.exec = exec, .B = B};
    std::vector<T> w(num_parameters(*layer)), out(B * n_out), saved(layer->saved_size(B)), d_w(w.size());
    RandomSequence random(1, Purpose::initial_model);
    layer->initial(random, w.data());
    for (const std::size_t place : {0u, 77u, 191u}) {
      std::vector<T> in = drawn<T>(B * input.size(), 6), d_in(in.size());
      in[place] = kNan<T>;
      layer->forward(pass, w.data(), in.data(), out.data(), saved.data());
      EXPECT_GT(count_nan(out), 0u) << text << ' ' << place;
      std::vector<T> d_out = drawn<T>(out.size(), 7);
      d_out[place % d_out.size()] = kNan<T>;
      layer->backward(pass, w.data(), in.data(), out.data(), saved.data(), d_out.data(), d_in.data(), d_w.data());
      EXPECT_GT(count_nan(d_in), 0u) << text << ' ' << place;
    }
  }
}

TYPED_TEST(NanTest, LossesAreNan) {
  using T = TypeParam;
  for (std::size_t place = 0; place < 5; ++place) {
    std::vector<T> z = drawn<T>(5, 8), d_z(5), room(5);
    z[place] = kNan<T>;
    const std::int32_t label[] = {2};
    EXPECT_TRUE(std::isnan(softmax_cross_entropy(1, 5, z.data(), label, 1.0, d_z.data(), room.data(), nullptr))) << place;
    EXPECT_EQ(count_nan(d_z), 5u) << place;
    const double target[] = {1, 0, 1, 0, 1};
    EXPECT_TRUE(std::isnan(logistic(5, z.data(), target, 1.0, d_z.data(), nullptr)));
    EXPECT_TRUE(std::isnan(d_z[place]));
    EXPECT_TRUE(std::isnan(squared_error(1, 5, z.data(), target, 1.0, d_z.data())));
    EXPECT_TRUE(std::isnan(d_z[place]));
  }
}

}  // namespace
}  // namespace fl::nn
