// The requirements on every model: its gradient is the derivative of its loss, a block equals its clients one by one, float agrees with
// double, and its Hessian, if it has one, is the derivative of its gradient. What a call gives does not depend on the calls before it.
//
// A model with running averages, or one that needs several rows, computes gradients otherwise than losses: it is spared the checks that
// compare them.
#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "checks/check.hpp"
#include "checks/model_cases.hpp"
#include "clients/learning/loss_with_gradient.hpp"

namespace fl::checks {
namespace {

using Data = ModelCase::Data;

std::vector<ModelCase> built_in_cases(const std::string& name) {
  if (name == "quadratic") return {{name, name, {}, Data::quadratics}};
  std::vector<ModelCase> cases = {{name, name}, {name, name + " bias=false", {{"bias", Value{false}}}}};
  if (name == "logistic_regression") {
    cases.push_back({.model = name, .label = name + " on 5 classes", .num_classes = 5});
    cases.push_back({name, name + " multinomial=true bias=false", {{"multinomial", Value{true}}, {"bias", Value{false}}}});
    cases.push_back({.model = name, .label = name + " on images", .data = Data::images, .num_classes = 10});
  }
  return cases;
}

// Returns networks given by their layers, one for each loss.
std::vector<ModelCase> layered_cases() {
  const auto network = [](const std::string& label, const std::vector<std::string>& layers, const std::string& loss, Data data) {
    Value::List texts;
    for (const std::string& layer : layers) texts.push_back(Value{layer});
    return ModelCase{.model = "neural_network", .label = label, .options = {{"layers", Value{texts}}, {"loss", Value{loss}}}, .data = data};
  };
  return {network("tanh network", {"dense(7)", "tanh", "dense(classes)"}, "softmax_cross_entropy", Data::classes),
          network("regression", {"dense(5)", "gelu", "dense(1)"}, "squared_error", Data::targets),
          network("logistic network", {"dense(5)", "gelu", "dense(1)"}, "logistic", Data::targets),
          network("logistic network on two classes", {"dense(1)"}, "logistic", Data::classes),
          network("ratings", {"concat([embedding(vocabulary, 3), product], [embedding(vocabulary, 2), flatten, gelu])", "dense(1)"},
                  "squared_error", Data::ratings),
          network("small convolutions", {"conv2d(3, 5, stride=2)", "gelu", "mean_pool(3)", "dense(classes)"}, "softmax_cross_entropy",
                  Data::images)};
}

std::map<std::string, RowForm>& own_forms() {
  static std::map<std::string, RowForm> forms;
  return forms;
}

// Returns the cases of a plug-in model: rows of its own form, or all data that it accepts with its default options.
std::vector<ModelCase> accepted_cases(const std::string& name) {
  if (const auto own = own_forms().find(name); own != own_forms().end())
    return {
        {.model = name, .label = name + " on " + kOwnRows, .data = Data::own, .num_classes = own->second.num_classes, .form = own->second}};
  const std::vector<ModelCase> tried = {
      {.model = name, .label = name + " on 2 classes"},
      {.model = name, .label = name + " on 2 classes, sparse", .storage = RowStorage::sparse},
      {.model = name, .label = name + " on 5 classes", .num_classes = 5},
      {.model = name, .label = name + " on targets", .data = Data::targets},
      {.model = name, .label = name + " on quadratics", .data = Data::quadratics},
      {.model = name, .label = name + " on images", .data = Data::images, .num_classes = 10},
      {.model = name, .label = name + " on sequences", .data = Data::tokens, .num_classes = 5},
      {.model = name, .label = name + " on ratings", .data = Data::ratings},
  };
  if (name == "neural_network") return layered_cases();
  if (name == "char_lstm")
    return {{name, name, {{"units", Value{std::int64_t{12}}}}, Data::tokens},
            {name, name + " at every position", {{"units", Value{std::int64_t{12}}}}, Data::text}};
  if (name == "resnet18") return {{name, name, {{"width", Value{std::int64_t{4}}}}, Data::images}};
  std::vector<ModelCase> accepted;
  for (const ModelCase& c : tried) {
    try {
      static_cast<void>(ModelBench<double>(c));
      accepted.push_back(c);
    } catch (const ConfigError&) {
    }
  }
  return accepted;
}

std::vector<ModelCase> cases_of(const std::string& name) {
  const bool built_in = name == "quadratic" || name == "logistic_regression" || name == "linear_regression";
  return built_in ? built_in_cases(name) : accepted_cases(name);
}

// Calls visit(case, place) for every case. An exception that it throws is a finding.
template <class Visit>
void for_each_case(const std::string& part, Findings& findings, const Visit& visit) {
  FindingPlace outside(findings, part);
  outside.guard([&] {
    for (const ModelCase& c : cases_of(part)) {
      FindingPlace place(findings, c.label);
      place.guard([&] { visit(c, place); });
    }
  });
}

// Whether its gradients are the derivatives of its losses, for any number of rows.
template <class T>
bool is_plain(const ModelBench<T>& bench) {
  return bench.model->minibatch_needs(0).least_rows <= 1 &&
         std::ranges::none_of(bench.model->layers().layers, [](const Layer& layer) { return layer.running_rate > 0; });
}

// Returns whether |x - y| <= tolerance (1 + |y|); false for NaN.
bool near(double x, double y, double tolerance) { return std::abs(x - y) <= tolerance * (1 + std::abs(y)); }

void expect_near(FindingPlace& place, double x, double y, double tolerance, const std::string& what) {
  if (!near(x, y, tolerance)) place.fail(what + ": " + std::to_string(x) + " against " + std::to_string(y));
}

void accepts(const std::string& part, Findings& findings) {
  FindingPlace place(findings, part);
  place.guard([&] {
    place.expect(!cases_of(part).empty(),
                 "it refuses classes, targets, quadratics, images, sequences and ratings alike: nothing can be checked");
  });
}

void layers(const std::string& part, Findings& findings) {
  for_each_case(part, findings, [](const ModelCase& c, FindingPlace& place) {
    const ModelBench<float> bench(c);
    std::size_t next = 0;
    for (const Layer& layer : bench.model->layers().layers) {
      place.expect(layer.begin == next && layer.size() > 0, "layers do not follow one another without gaps");
      next += layer.size();
    }
    std::vector<float> x(bench.P, 7.0f), again(bench.P, 8.0f);
    bench.model->initial(3, x.data());
    bench.model->initial(3, again.data());
    place.expect(x == again, "the same seed gives another initial model");
  });
}

double loss_at(const ModelBench<double>& bench, const std::vector<double>& x) {
  const auto rows = all_rows(kModelRows);
  return bench.model->loss_sum(bench.exec, x.data(), bench.data, rows, nullptr) / kModelRows + bench.model->regulariser(x.data());
}

// Returns all parameters of small models, and a few of every layer of larger ones.
std::vector<std::size_t> tried_parameters(const LayerTable& table) {
  constexpr std::size_t kAll = 1000, kSome = 48;
  std::vector<std::size_t> tried;
  for (const Layer& layer : table.layers) {
    const std::size_t of_layer = std::max<std::size_t>(1, kSome / table.layers.size());
    const std::size_t step = table.size() <= kAll ? 1 : std::max<std::size_t>(1, layer.size() / of_layer);
    for (std::size_t j = 0; j < layer.size(); j += step) tried.push_back(layer.begin + j);
  }
  return tried;
}

void gradient(const std::string& part, Findings& findings) {
  for_each_case(part, findings, [](const ModelCase& c, FindingPlace& place) {
    const ModelBench<double> bench(c);
    if (!is_plain(bench)) return;
    const auto rows = all_rows(kModelRows);
    auto x = bench.point(1);
    double loss = 0;
    const auto g = bench.gradient(x, rows, &loss);
    for (const std::size_t j : tried_parameters(bench.model->layers())) {
      const double at = x[j];
      const auto difference = [&](double h) {
        x[j] = at + h;
        const double above = loss_at(bench, x);
        x[j] = at - h;
        const double below = loss_at(bench, x);
        x[j] = at;
        return (above - below) / (2 * h);
      };
      // If the loss has a kink within h, a smaller h avoids it, but rounding errors are larger.
      if (near(g[j], difference(1e-5), 1e-7) || near(g[j], difference(1e-7), 1e-5)) continue;
      expect_near(place, g[j], difference(1e-8), 1e-4, "gradient and finite difference of the loss in parameter " + std::to_string(j));
    }
  });
}

void loss(const std::string& part, Findings& findings) {
  for_each_case(part, findings, [](const ModelCase& c, FindingPlace& place) {
    const ModelBench<double> bench(c);
    if (!is_plain(bench)) return;
    const auto rows = all_rows(kModelRows);
    const auto x = bench.point(2);
    double loss = 0;
    static_cast<void>(bench.gradient(x, rows, &loss));
    std::uint64_t correct = 99;
    const double sum = bench.model->loss_sum(bench.exec, x.data(), bench.data, rows, &correct);
    expect_near(place, loss, sum / kModelRows + bench.model->regulariser(x.data()), 1e-12,
                "gradient()'s loss and loss_sum() / rows + regulariser");
    place.expect(correct <= kModelRows * bench.data.labels_per_row(), "more labels are right than there are");
  });
}

void mean(const std::string& part, Findings& findings) {
  for_each_case(part, findings, [](const ModelCase& c, FindingPlace& place) {
    const ModelBench<double> bench(c);
    if (!is_plain(bench)) return;
    const auto x = bench.point(3);
    for (const std::size_t size : {1u, 2u, 3u, 4u, 5u, 7u, 8u, 13u, 37u}) {
      const auto rows = all_rows(size);
      const auto g = bench.gradient(x, rows);
      std::vector<double> mean(bench.P, 0.0);
      for (const auto row : rows) {
        const auto one = bench.gradient(x, {&row, 1});
        for (std::size_t j = 0; j < bench.P; ++j) mean[j] += one[j] / static_cast<double>(size);
      }
      for (std::size_t j = 0; j < bench.P; ++j)
        expect_near(place, g[j], mean[j], 1e-12, "gradient over " + std::to_string(size) + " rows and the mean of single rows");
    }
  });
}

// Checks a block of clients of many sizes (one without rows), in no order; each client has its own point, stored in a row different from
// its number.
template <class T>
void check_block(const ModelCase& c, const FindingPlace& place) {
  const ModelBench<T> bench(c);
  if (!is_plain(bench)) return;
  const std::vector<std::vector<std::uint32_t>> shards = {{4}, {3, 1, 2}, {}, {9, 8, 7, 6, 5}, all_rows(kModelRows), {30}, {11, 11}, {36}};
  const auto K = static_cast<std::uint32_t>(shards.size());
  const std::vector<std::span<const std::uint32_t>> rows(shards.begin(), shards.end());
  const std::vector<std::uint32_t> slot = {7, 6, 5, 4, 3, 2, 1, 0};
  const std::size_t stride = bench.P + 3;
  std::vector<T> x(K * stride), g(K * stride, T(-1));
  for (std::uint32_t k = 0; k < K; ++k) {
    const auto own = bench.point(40 + k);
    std::copy(own.begin(), own.end(), x.begin() + static_cast<std::ptrdiff_t>(slot[k] * stride));
  }
  std::vector<double> loss(K);
  bench.model->gradient(bench.exec, {x.data(), slot.data(), K, bench.P, stride}, rows, {g.data(), slot.data(), K, bench.P, stride},
                        loss.data());
  for (std::uint32_t k = 0; k < K; ++k) {
    FindingPlace client =
        place.inside("client " + std::to_string(k) + " of " + std::to_string(K) + " with " + std::to_string(rows[k].size()) + " rows");
    double own_loss = 0;
    const auto own = bench.gradient(bench.point(40 + k), rows[k], &own_loss), silent = bench.gradient(bench.point(40 + k), rows[k]);
    client.expect(loss[k] == own_loss, "its loss in a block is not its loss alone");
    client.expect(std::equal(own.begin(), own.end(), &g[slot[k] * stride]),
                  "its gradient in a block is not its gradient alone, bit for bit");
    client.expect(silent == own, "asking for the loss changes its gradient");
    for (std::size_t j = bench.P; j < stride; ++j)
      client.expect(g[slot[k] * stride + j] == T(-1), "something is written past its gradient");
  }
}

void model_blocks(const std::string& part, Findings& findings) {
  for_each_case(part, findings, [](const ModelCase& c, const FindingPlace& place) {
    check_block<double>(c, place.inside("float64"));
    check_block<float>(c, place.inside("float32"));
  });
}

// Checks the pass that evaluations share, on rows that are fewer and more than a block, and on none.
template <class T>
void check_shared_pass(const ModelCase& c, const FindingPlace& place) {
  const ModelBench<T> bench(c);
  const auto* shared = dynamic_cast<const LossWithGradient<T>*>(bench.model.get());
  if (shared == nullptr) return;
  const auto x = bench.point(9);
  for (const std::size_t size : {0u, 1u, 8u, 13u, static_cast<unsigned>(kModelRows)}) {
    const auto rows = all_rows(size);
    FindingPlace of = place.inside(std::to_string(size) + " rows");
    std::vector<T> g(bench.P, T(-1));
    const double sum = shared->gradient_with_loss_sum(bench.exec, x.data(), rows, g.data());
    of.expect(sum == bench.model->loss_sum(bench.exec, x.data(), bench.data, rows, nullptr),
              "gradient_with_loss_sum() gives another sum of losses than loss_sum()");
    of.expect(g == bench.gradient(x, rows), "gradient_with_loss_sum() gives another gradient than gradient()");
  }
}

void shared_pass(const std::string& part, Findings& findings) {
  for_each_case(part, findings, [](const ModelCase& c, const FindingPlace& place) {
    check_shared_pass<double>(c, place.inside("float64"));
    check_shared_pass<float>(c, place.inside("float32"));
  });
}

void precision(const std::string& part, Findings& findings) {
  for_each_case(part, findings, [](const ModelCase& c, FindingPlace& place) {
    const ModelBench<double> exact(c);
    const ModelBench<float> rounded(c);
    if (!is_plain(exact)) return;
    const auto x = rounded.point(8);
    double loss = 0, exact_loss = 0;
    const auto g = rounded.gradient(x, all_rows(kModelRows), &loss);
    const auto exact_g = exact.gradient(std::vector<double>(x.begin(), x.end()), all_rows(kModelRows), &exact_loss);
    expect_near(place, loss, exact_loss, 1e-5, "the loss in float32 and in float64");
    for (std::size_t j = 0; j < exact.P; ++j) expect_near(place, g[j], exact_g[j], 1e-5, "the gradient in float32 and in float64");
  });
}

// Calls the model at one point, elsewhere, and at the first point again.
template <class T>
void check_steady(const ModelCase& c, FindingPlace place) {
  const ModelBench<T> bench(c);
  const auto rows = all_rows(kModelRows), others = all_rows(13);
  const RandomStream stream(3, 4, 5);
  const auto step = [&](const std::vector<T>& x, std::span<const std::uint32_t> some) {
    std::vector<T> g(bench.P);
    bench.model->stochastic_gradient(bench.exec, shared_view(x.data(), 1, bench.P), {{&some, 1}, {&stream, 1}},
                                     {g.data(), nullptr, 1, bench.P, bench.P}, nullptr);
    return g;
  };
  const auto loss = [&](const std::vector<T>& x) { return bench.model->loss_sum(bench.exec, x.data(), bench.data, rows, nullptr); };
  const auto x = bench.point(11), y = bench.point(12);
  const auto before = step(x, rows);
  const double loss_before = loss(x);
  static_cast<void>(step(y, others));
  static_cast<void>(loss(y));
  place.expect(step(x, rows) == before, "the gradient of a minibatch depends on the calls before it");
  place.expect(loss(x) == loss_before, "the loss depends on the calls before it");
}

void steady(const std::string& part, Findings& findings) {
  for_each_case(part, findings, [](const ModelCase& c, const FindingPlace& place) {
    check_steady<double>(c, place.inside("float64"));
    check_steady<float>(c, place.inside("float32"));
  });
}

// Compares the Hessian of a weighted sum of rows with differences of the gradient, as an operator and as a matrix, and checks its bounds.
void hessian(const std::string& part, Findings& findings) {
  for_each_case(part, findings, [](const ModelCase& c, FindingPlace& place) {
    const ModelBench<double> bench(c);
    const SecondOrder* loss = bench.model->second_order();
    if (loss == nullptr) return;
    const std::size_t P = bench.P;
    const auto rows = all_rows(kModelRows);
    std::vector<double> weight(kModelRows);
    for (std::size_t r = 0; r < kModelRows; ++r) weight[r] = 0.1 + 0.01 * static_cast<double>(r);
    const RowSet set{rows, weight};
    const auto x = bench.point(6), v = bench.point(7);
    std::vector<double> above(P), below(P), Hv(P), H(P * P, 0.5), moved(P);
    const double h = 1e-5;
    for (std::size_t j = 0; j < P; ++j) moved[j] = x[j] + h * v[j];
    static_cast<void>(loss->evaluate(bench.exec, moved.data(), set, above.data()));
    for (std::size_t j = 0; j < P; ++j) moved[j] = x[j] - h * v[j];
    static_cast<void>(loss->evaluate(bench.exec, moved.data(), set, below.data()));
    loss->hessian_times(bench.exec, x.data(), set, v.data(), Hv.data());
    loss->add_hessian(bench.exec, x.data(), set, H.data());
    double rayleigh = 0, square = 0;
    for (std::size_t i = 0; i < P; ++i) {
      expect_near(place, Hv[i], (above[i] - below[i]) / (2 * h), 1e-6, "hessian_times() and finite differences of the gradient");
      double row = 0;
      for (std::size_t j = 0; j < P; ++j) row += (H[i * P + j] - 0.5) * v[j];
      expect_near(place, row, Hv[i], 1e-11, "add_hessian() and hessian_times()");
      rayleigh += v[i] * Hv[i], square += v[i] * v[i];
    }
    const auto bounds = loss->curvature(set);
    place.at_most(rayleigh, bounds.largest * square, "the curvature in a direction");
    place.at_most(bounds.least * square, rayleigh, "the least curvature");
  });
}

void second_order(const std::string& part, Findings& findings) {
  for_each_case(part, findings, [](const ModelCase& c, FindingPlace& place) {
    const ModelBench<double> bench(c);
    const SecondOrder* loss = bench.model->second_order();
    if (loss == nullptr) return;
    bench.model->set_regulariser(0, 0);
    const auto x = bench.point(6);
    std::vector<double> sum(bench.P);
    double mean_loss = 0;
    const auto rows = all_rows(kModelRows);
    const auto g = bench.gradient(x, rows, &mean_loss);
    const double total = loss->evaluate(bench.exec, x.data(), {rows}, sum.data());
    expect_near(place, total, mean_loss * kModelRows, 1e-12, "evaluate() and gradient()'s loss");
    place.expect(loss->evaluate(bench.exec, x.data(), {rows}, nullptr) == total, "asking for the gradient changes evaluate()");
    for (std::size_t j = 0; j < bench.P; ++j) expect_near(place, sum[j] / kModelRows, g[j], 1e-12, "evaluate()'s gradient and gradient()");
  });
}

}  // namespace

void check_model_on(const std::string& model, RowForm rows) { own_forms()[model] = std::move(rows); }

const std::vector<Check>& model_checks() {
  static const std::vector<Check> checks = {
      {"accepts", "it accepts classes, targets, quadratics, images, sequences or ratings", accepts},
      {"layers", "layers cover the parameters, and a seed decides the initial model", layers},
      {"gradient", "the gradient is the derivative of the loss, by finite differences", gradient},
      {"loss", "the loss is the mean over rows plus the regulariser", loss},
      {"mean", "the gradient over rows is the mean of those of single rows", mean},
      {"blocks", "a block of clients gives what each gives alone, bit for bit", model_blocks},
      {"shared_pass", "losses computed along with the gradient have the bytes of separate passes", shared_pass},
      {"precision", "float32 follows float64", precision},
      {"steady", "a gradient and a loss do not depend on the calls before them", steady},
      {"hessian", "the Hessian, where there is one, is the derivative of the gradient", hessian},
      {"second_order", "second_order() and gradient() are about the same loss", second_order},
  };
  return checks;
}

}  // namespace fl::checks
