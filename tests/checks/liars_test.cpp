// Tests the checks with parts that break one promise each: the check of this promise fails and names it. An honest part passes.
//
// The parts are registered only in this program.
#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <vector>

#include "checks/check.hpp"
#include "clients/learning/model.hpp"
#include "compressors/compressor.hpp"
#include "compressors/postprocessors/postprocessor.hpp"
#include "compressors/support/quantizer.hpp"
#include "fl_core/config/registry.hpp"
#include "fl_core/data/partitioner.hpp"
#include "fl_core/ops/ops.hpp"
#include "server/delivery_policy.hpp"

namespace fl::cpu {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

std::string text_of(const checks::Findings& findings) {
  std::string text;
  for (const std::string& line : findings.texts()) text += line + "\n";
  return text;
}

// The names of the checks that found something.
std::vector<std::string> failed_checks(const std::string& role, const std::string& part, std::string* text = nullptr) {
  std::vector<std::string> failed;
  for (const checks::Check& check : checks::checks_of(role)) {
    checks::Findings findings;
    check.run(part, findings);
    if (findings.empty()) continue;
    failed.push_back(check.name);
    if (text != nullptr) *text += text_of(findings);
  }
  return failed;
}

// ---- compressors: an honest hard threshold, and what becomes of it ------------------------------------------------------------

enum class Lie {
  none,
  delta,
  unbiased,
  kappa,
  throws,
  nan,
  forgets,
  counts_calls,
  state,
  memory,
  later,
  small,
  wide,
  large,
  early,
  void_domain
};

// Keeps entries of at least 1/2: absolute with kappa = sqrt(d) / 2.
template <class T, Lie kLie>
class Liar : public Compressor<T> {
 public:
  explicit Liar(const NoOptions&) {}
  [[nodiscard]] Contract contract(const Scope& scope) const override {
    std::size_t d = 0;
    for (const Segment& segment : scope.segments) d += segment.size();
    Contract contract;
    contract.kappa = std::sqrt(static_cast<double>(d)) / (kLie == Lie::kappa ? 20 : 2);
    if (kLie == Lie::delta) contract.delta = 0.9;
    if (kLie == Lie::unbiased) contract.omega = 10;
    // Entries of at most 0.02 are not sent and cost at most sqrt(d) / 50; those of up to 0.2 cost more than it claims.
    if (kLie == Lie::small || kLie == Lie::wide) {
      contract.kappa = std::sqrt(static_cast<double>(d)) / 20;
      contract.domain.entries.most = kLie == Lie::wide ? 0.2 : 0.02;
    }
    // A largest entry of 1/2 is sent, one of 0.4 is not.
    if (kLie == Lie::large || kLie == Lie::early) {
      contract.delta = 1 / static_cast<double>(d);
      contract.domain.largest.least = kLie == Lie::early ? 0.4 : 0.5;
    }
    if (kLie == Lie::void_domain) contract.domain.norm = {2, 1};
    return contract;
  }
  void compress(const Exec& exec, const CompressContext<T>& context, const Affine<T>& input, const Scope& scope, const StateWrite<T>& state,
                std::span<Payload<T>* const> messages) override {
    if (kLie == Lie::throws && context.clients.size() > 1) throw std::runtime_error("a block of " + std::to_string(context.clients.size()));
    ++num_calls_;
    T threshold = kLie == Lie::counts_calls && num_calls_ % 2 == 0 ? T(0.7) : T(0.5);
    if (kLie == Lie::later && context.round > 8) threshold = T(50);
    if (kLie == Lie::memory) threshold = context.remembered.row(0)[0] == T(0) ? T(0.5) : T(50);
    if (kLie == Lie::memory)
      for (std::uint32_t k = 0; k < context.remember.K; ++k) context.remember.row(k)[0] = T(1);
    select_rows(exec, input, scope, AtLeast<T>{threshold}, kNativeWire<T>, state, messages);
    for (Payload<T>* message : messages) {
      if (message->num_sent == 0) continue;
      if (kLie == Lie::nan) message->value[0] = std::numeric_limits<T>::quiet_NaN();
      if (kLie == Lie::forgets) message->index[0] = static_cast<std::uint32_t>(scope.P);
      if (kLie == Lie::state && state.rule == StateRule::residual) state.out.row(0)[message->index[0]] = T(1);
    }
  }

  [[nodiscard]] std::size_t client_state_size(const Scope&) const override { return kLie == Lie::memory ? 1 : 0; }

 private:
  int num_calls_ = 0;
};

template <class T>
using Honest = Liar<T, Lie::none>;
template <class T>
using ClaimsDelta = Liar<T, Lie::delta>;
template <class T>
using ClaimsNoBias = Liar<T, Lie::unbiased>;
template <class T>
using ClaimsKappa = Liar<T, Lie::kappa>;
template <class T>
using Throws = Liar<T, Lie::throws>;
template <class T>
using MakesNan = Liar<T, Lie::nan>;
template <class T>
using Overflows = Liar<T, Lie::forgets>;
template <class T>
using CountsCalls = Liar<T, Lie::counts_calls>;
template <class T>
using BreaksState = Liar<T, Lie::state>;
template <class T>
using KeepsItAtFirst = Liar<T, Lie::memory>;
template <class T>
using KeepsItForEightRounds = Liar<T, Lie::later>;
template <class T>
using HoldsWhereSmall = Liar<T, Lie::small>;
template <class T>
using HoldsWhereLarge = Liar<T, Lie::large>;
template <class T>
using ClaimsAWideDomain = Liar<T, Lie::wide>;
template <class T>
using ClaimsAnEarlyDomain = Liar<T, Lie::early>;
template <class T>
using ClaimsNoDomain = Liar<T, Lie::void_domain>;
#define FL_LIAR(Class, name) FL_REGISTER_PART(Compressor, Class, NoOptions, (PartInfo{"compressor", name, "", ""}))
FL_LIAR(Honest, "honest");
FL_LIAR(ClaimsDelta, "claims_delta");
FL_LIAR(ClaimsNoBias, "claims_no_bias");
FL_LIAR(ClaimsKappa, "claims_kappa");
FL_LIAR(Throws, "throws");
FL_LIAR(MakesNan, "makes_nan");
FL_LIAR(Overflows, "overflows");
FL_LIAR(CountsCalls, "counts_calls");
FL_LIAR(BreaksState, "breaks_state");
FL_LIAR(KeepsItAtFirst, "keeps_it_at_first");
FL_LIAR(KeepsItForEightRounds, "keeps_it_for_eight_rounds");
FL_LIAR(HoldsWhereSmall, "holds_where_small");
FL_LIAR(HoldsWhereLarge, "holds_where_large");
FL_LIAR(ClaimsAWideDomain, "claims_a_wide_domain");
FL_LIAR(ClaimsAnEarlyDomain, "claims_an_early_domain");
FL_LIAR(ClaimsNoDomain, "claims_no_domain");

TEST(LyingCompressors, AnHonestOnePasses) { EXPECT_THAT(failed_checks("compressor", "honest"), IsEmpty()); }

TEST(LyingCompressors, OneThatIsHonestInItsDomainAlonePasses) {
  for (const char* part : {"holds_where_small", "holds_where_large"}) {
    std::string text;
    EXPECT_THAT(failed_checks("compressor", part, &text), IsEmpty()) << text;
  }
}

TEST(LyingCompressors, AreFoundByTheCheckOfTheirLie) {
  const std::vector<std::tuple<const char*, const char*, const char*>> lies = {
      {"claims_delta", "pointwise", "(delta)"},
      {"claims_no_bias", "expectations", "omega claims none"},
      {"claims_kappa", "pointwise", "(kappa)"},
      {"claims_a_wide_domain", "pointwise", "at the most of the domain"},
      {"claims_an_early_domain", "pointwise", "at the least of the domain"},
      {"claims_no_domain", "claims", "has a range from 2"},
      {"keeps_it_at_first", "rounds", "round 2 of a client that takes part in every round"},
      {"keeps_it_for_eight_rounds", "rounds", "(kappa)"},
      {"throws", "messages", "threw: a block of 2"},
      {"makes_nan", "messages", "a finite input became NaN"},
      {"overflows", "messages", "a position lies outside its segment"},
      {"counts_calls", "blocks", "depends on the size of blocks"},
      {"breaks_state", "residual", "is not the input minus the decoded message"},
  };
  for (const auto& [part, check, words] : lies) {
    std::string text;
    EXPECT_THAT(failed_checks("compressor", part, &text), Contains(check)) << part;
    EXPECT_THAT(text, HasSubstr(words)) << part;
    EXPECT_THAT(text, HasSubstr(std::string(part) + ", float32")) << part;
  }
}

// ---- models: |x - mean of the rows' targets|^2 / 2 --------------------------------------------------------------------------------

enum class Fault { none, gradient, block, nan, loss };

template <class T, Fault kFault>
class Mean : public Model<T> {
 public:
  explicit Mean(const NoOptions&) {}
  void bind(const Dataset<T>& data) override { this->data_ = &data; }
  [[nodiscard]] LayerTable layers() const override {
    LayerTable table;
    table.layers.push_back({"x", 0, 3, 1});
    return table;
  }
  void initial(std::uint64_t, T* x) const override { std::fill_n(x, 3, T(0)); }
  void gradient(const Exec&, BatchView<const T> x, std::span<const std::span<const std::uint32_t>> rows, BatchView<T> gradient,
                double* loss) const override {
    for (std::size_t k = 0; k < x.K; ++k) {
      const double scale = rows[k].empty() ? 0 : 1 / static_cast<double>(rows[k].size());
      double total = 0;
      for (std::size_t j = 0; j < x.P; ++j) {
        double sum = 0;
        const auto at = static_cast<double>(x.row(k)[j]);
        for (const std::uint32_t row : rows[k])
          sum += at - this->data_->target[row], total += 0.5 * std::pow(at - this->data_->target[row], 2);
        const double slip = kFault == Fault::gradient ? 1.01 : kFault == Fault::block && x.K > 1 ? 1 + 1e-6 : 1;
        gradient.row(k)[j] = static_cast<T>(slip * scale * sum + this->regulariser_.derivative(at));
        if (kFault == Fault::nan) gradient.row(k)[j] = std::numeric_limits<T>::quiet_NaN();
      }
      if (loss != nullptr) loss[k] = scale * total + this->regulariser_.value(x.row(k), x.P);
    }
  }
  [[nodiscard]] double loss_sum(const Exec&, const T* x, const Dataset<T>& data, std::span<const std::uint32_t> rows,
                                std::uint64_t* correct) const override {
    double sum = 0;
    for (const std::uint32_t row : rows)
      for (std::size_t j = 0; j < 3; ++j) sum += 0.5 * std::pow(static_cast<double>(x[j]) - data.target[row], 2);
    if (correct != nullptr) *correct = 0;
    return kFault == Fault::loss ? sum / static_cast<double>(rows.size()) : sum;
  }
  [[nodiscard]] ModelTraits traits() const override { return {.loss_is_convex = true}; }
};
template <class T>
using MeanModel = Mean<T, Fault::none>;
template <class T>
using WrongGradient = Mean<T, Fault::gradient>;
template <class T>
using WrongBlock = Mean<T, Fault::block>;
template <class T>
using NanGradient = Mean<T, Fault::nan>;
template <class T>
using WrongLoss = Mean<T, Fault::loss>;
#define FL_MODEL(Class, name) FL_REGISTER_PART(Model, Class, NoOptions, (PartInfo{"model", name, "", ""}))
FL_MODEL(MeanModel, "mean");
FL_MODEL(WrongGradient, "wrong_gradient");
FL_MODEL(WrongBlock, "wrong_block");
FL_MODEL(NanGradient, "nan_gradient");
FL_MODEL(WrongLoss, "wrong_loss");

TEST(FaultyModels, ASoundOnePasses) {
  std::string text;
  EXPECT_THAT(failed_checks("model", "mean", &text), IsEmpty()) << text;
}

TEST(FaultyModels, AreFoundByTheCheckOfTheirFault) {
  for (const auto& [part, check] : {std::pair{"wrong_gradient", "gradient"},
                                    {"wrong_block", "blocks"},
                                    {"nan_gradient", "gradient"},
                                    {"nan_gradient", "precision"},
                                    {"wrong_loss", "loss"}})
    EXPECT_THAT(failed_checks("model", part), Contains(check)) << part;
}

// ---- partitioners -----------------------------------------------------------------------------------------------------------------

// The rows in turn, with one fault.
template <int kFaulty>
class Deal final : public Partitioner {
 public:
  explicit Deal(const NoOptions&) {}
  [[nodiscard]] std::vector<Shard> split(const PartitionRequest& request) const override {
    if (kFaulty != 4 && (request.num_clients == 0 || request.num_clients > request.num_rows)) throw ConfigError("too many or no clients");
    std::vector<Shard> shards(request.num_clients);
    for (std::uint32_t row = 0; row < request.num_rows && !shards.empty(); ++row)
      shards[(row + static_cast<std::uint32_t>(offset_)) % request.num_clients].push_back(row);
    if (kFaulty == 1) shards.front().pop_back();
    if (kFaulty == 2) shards.back() = {};
    if (kFaulty == 3) ++offset_;
    if (kFaulty == 5) throw std::out_of_range("in the dark");
    return shards;
  }
  [[nodiscard]] bool draws() const override { return kFaulty == 6; }

 private:
  mutable int offset_ = 0;
};
FL_REGISTER_PARTITIONER(Deal<0>, NoOptions, "deal", "", "");
FL_REGISTER_PARTITIONER(Deal<1>, NoOptions, "loses_a_row", "", "");
FL_REGISTER_PARTITIONER(Deal<2>, NoOptions, "empty_client", "", "");
FL_REGISTER_PARTITIONER(Deal<3>, NoOptions, "unsteady", "", "");
FL_REGISTER_PARTITIONER(Deal<4>, NoOptions, "refuses_nothing", "", "");
FL_REGISTER_PARTITIONER(Deal<5>, NoOptions, "throws", "", "");
FL_REGISTER_PARTITIONER(Deal<6>, NoOptions, "claims_to_draw", "", "");

TEST(FaultyPartitioners, ASoundOnePasses) { EXPECT_THAT(failed_checks("partitioner", "deal"), IsEmpty()); }

TEST(FaultyPartitioners, AreFoundByTheCheckOfTheirFault) {
  for (const auto& [part, check, words] : {std::tuple{"loses_a_row", "rows", "given to no client"},
                                           {"empty_client", "rows", "a client has no rows"},
                                           {"unsteady", "seeds", "gives another split"},
                                           {"claims_to_draw", "seeds", "another seed gives the same split"},
                                           {"refuses_nothing", "refusals", "no ConfigError"},
                                           {"throws", "rows", "threw: in the dark"}}) {
    std::string text;
    EXPECT_THAT(failed_checks("partitioner", part, &text), Contains(check)) << part;
    EXPECT_THAT(text, HasSubstr(words)) << part;
  }
}

// ---- postprocessors ---------------------------------------------------------------------------------------------------------------

enum class PostFault { none, long_vectors, long_estimates, counts_calls, reads_neighbours, infinite, hidden_client, hidden_server, throws };

// Clips entry by entry to 1, on both sides, with one fault.
template <class T, PostFault kFault>
class EntryClipping : public Postprocessor<T> {
 public:
  explicit EntryClipping(const NoOptions&) {}
  [[nodiscard]] PostprocessorPlan plan() const override {
    return {.changes_vectors = kFault != PostFault::hidden_client,
            .changes_estimate = kFault != PostFault::hidden_server,
            .bound = VectorBound{VectorBound::Norm::infinity, 1}};
  }
  void on_client(const Exec&, const ClientRound<T>&, const ClientBlock<T>& block, std::size_t vector) const override {
    if (kFault == PostFault::throws) throw std::out_of_range("in the dark");
    ++calls_;
    for (std::uint32_t k = 0; k < block.K; ++k) {
      T* v = block.vectors[vector].row(k);
      for (std::size_t j = 0; j < block.vectors[vector].P; ++j) {
        if (kFault != PostFault::long_vectors) v[j] = std::clamp(v[j], T(-1), T(1));
        if (kFault == PostFault::counts_calls && calls_ > 1) v[j] /= 2;
        if (kFault == PostFault::reads_neighbours && k > 0) v[j] /= 2;
        if (kFault == PostFault::infinite) v[j] = T(1) / v[j];
      }
    }
  }
  void on_server(const ServerRound<T>&, std::span<double> estimate) const override {
    if (kFault == PostFault::long_estimates) return;
    for (double& e : estimate) e = std::clamp(e, -1.0, 1.0);
  }

 private:
  mutable std::atomic<int> calls_ = 0;
};
#define FL_POSTPROCESSOR(fault)                                     \
  template <class T>                                                \
  using EntryClipping_##fault = EntryClipping<T, PostFault::fault>; \
  FL_REGISTER_PART(Postprocessor, EntryClipping_##fault, NoOptions, (PartInfo{"postprocessor", "clipping_" #fault, "", ""}))
FL_POSTPROCESSOR(none);
FL_POSTPROCESSOR(long_vectors);
FL_POSTPROCESSOR(long_estimates);
FL_POSTPROCESSOR(counts_calls);
FL_POSTPROCESSOR(reads_neighbours);
FL_POSTPROCESSOR(infinite);
FL_POSTPROCESSOR(hidden_client);
FL_POSTPROCESSOR(hidden_server);
FL_POSTPROCESSOR(throws);

TEST(FaultyPostprocessors, ASoundOnePasses) {
  std::string text;
  EXPECT_THAT(failed_checks("postprocessor", "clipping_none", &text), IsEmpty()) << text;
}

TEST(FaultyPostprocessors, AreFoundByTheCheckOfTheirFault) {
  for (const auto& [part, check, words] : {std::tuple{"clipping_long_vectors", "bound", "the norm of a client's vector is"},
                                           {"clipping_long_estimates", "bound", "the norm of the estimate is"},
                                           {"clipping_counts_calls", "blocks", "the second time"},
                                           {"clipping_reads_neighbours", "blocks", "blocks of 1 clients give other vectors"},
                                           {"clipping_infinite", "finite", "become NaN or infinite"},
                                           {"clipping_hidden_client", "plan", "on_client() changes vectors"},
                                           {"clipping_hidden_server", "plan", "on_server() changes the estimate"},
                                           {"clipping_throws", "bound", "threw: in the dark"}}) {
    std::string text;
    EXPECT_THAT(failed_checks("postprocessor", part, &text), Contains(check)) << part;
    EXPECT_THAT(text, HasSubstr(words)) << part;
  }
}

// ---- deliveries -----------------------------------------------------------------------------------------------------------------

// The first half of the awaited messages, with one fault.
template <int kFaulty>
class FirstHalf final : public DeliveryPolicy {
 public:
  explicit FirstHalf(const NoOptions&) {}
  [[nodiscard]] bool waits_for_all() const override { return kFaulty == 7; }
  [[nodiscard]] double over_selection() const override { return kFaulty == 8 ? 0.5 : 1; }
  [[nodiscard]] double decide(std::span<const double> arrival_s, std::size_t awaited, std::span<std::uint8_t> counts) const override {
    std::vector<double> times(arrival_s.begin(), arrival_s.end());
    std::ranges::sort(times);
    double closes = times[(awaited - 1) / 2];
    if (kFaulty == 1) closes = std::numeric_limits<double>::quiet_NaN();
    if (kFaulty == 2 && times.size() == 7) closes = std::numeric_limits<double>::infinity();
    if (kFaulty == 3 && !std::isfinite(closes)) closes = 0;
    if (kFaulty == 5) closes += ++calls_;
    if (kFaulty == 6) closes = std::isfinite(times.back()) ? closes : times.back();  // it knows what comes later
    if (kFaulty == 7 && !std::isfinite(closes)) closes = 1e9;
    for (std::size_t i = 0; i < counts.size(); ++i) counts[i] = std::isfinite(arrival_s[i]) && arrival_s[i] <= closes ? 1 : 0;
    if (kFaulty == 4) counts.back() = 1;
    if (kFaulty == 9) std::ranges::transform(arrival_s, counts.begin(), [](double t) { return std::isfinite(t) ? 1 : 0; });
    return closes;
  }

 private:
  mutable double calls_ = 0;
};
FL_REGISTER_DELIVERY(FirstHalf<0>, NoOptions, "first_half", "", "");
FL_REGISTER_DELIVERY(FirstHalf<1>, NoOptions, "closes_at_nan", "", "");
FL_REGISTER_DELIVERY(FirstHalf<2>, NoOptions, "never_closes", "", "");
FL_REGISTER_DELIVERY(FirstHalf<3>, NoOptions, "closes_at_once", "", "");
FL_REGISTER_DELIVERY(FirstHalf<4>, NoOptions, "counts_the_lost", "", "");
FL_REGISTER_DELIVERY(FirstHalf<5>, NoOptions, "remembers_calls", "", "");
FL_REGISTER_DELIVERY(FirstHalf<6>, NoOptions, "looks_ahead", "", "");
FL_REGISTER_DELIVERY(FirstHalf<7>, NoOptions, "claims_to_wait", "", "");
FL_REGISTER_DELIVERY(FirstHalf<8>, NoOptions, "asks_too_few", "", "");
FL_REGISTER_DELIVERY(FirstHalf<9>, NoOptions, "counts_the_late", "", "");

TEST(FaultyDeliveries, ASoundOnePasses) {
  std::string text;
  EXPECT_THAT(failed_checks("delivery", "first_half", &text), IsEmpty()) << text;
}

TEST(FaultyDeliveries, AreFoundByTheCheckOfTheirFault) {
  for (const auto& [part, check, words] : {std::tuple{"closes_at_nan", "closes", "no number"},
                                           {"never_closes", "closes", "does not close"},
                                           {"closes_at_once", "closes", "closes at its opening"},
                                           {"counts_the_lost", "counts", "has not arrived counts"},
                                           {"remembers_calls", "repeats", "another answer"},
                                           {"looks_ahead", "online", "after the round has closed"},
                                           {"claims_to_wait", "closes", "although waits_for_all()"},
                                           {"asks_too_few", "asked", "fewer clients"},
                                           {"counts_the_late", "counts", "after the round has closed"}}) {
    std::string text;
    EXPECT_THAT(failed_checks("delivery", part, &text), Contains(check)) << part;
    EXPECT_THAT(text, HasSubstr(words)) << part;
  }
}

}  // namespace
}  // namespace fl::cpu
