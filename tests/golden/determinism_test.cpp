// Tests that results have the same bytes for any number of threads and any block size: model, rows and summary, except for the measured
// seconds. The scenarios cover every operator, every scope, every feedback, sampled clients, minibatches, compression in both directions,
// many clients and long vectors.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <variant>

#include "tests/support/run_text.hpp"

namespace fl {
namespace {

struct Study {
  std::string label;
  std::string keys;
};
void PrintTo(const Study& study, std::ostream* out) { *out << study.label; }

const std::string kMushrooms =
    "[data]\nname = 'mushrooms'\nrows = 300\ntest_fraction = 0.1\n"
    "[partition]\nkind = 'dirichlet_client'\nalpha = 1\nclients = 17\n";
const std::string kBinary = "[model]\nkind = 'logistic_regression'\nl2 = 0.01\n";
const std::string kMultinomial = "[model]\nkind = 'logistic_regression'\nmultinomial = true\nl2 = 0.01\n";
const std::string kNoOptimum = "[evaluate]\nevery = 3\nmeasure_every = 1\noptimum = false\n";

// Threads and clients per block, 0 = chosen; compared with one thread and a chosen block.
constexpr std::pair<int, std::uint32_t> kMachines[] = {{1, 1}, {1, 64}, {2, 3}, {2, 0}, {3, 7}, {3, 1}, {8, 64}, {8, 3}, {8, 0}};

std::string axis(const std::string& key, const std::string& values) {
  return "[[sweep.axis]]\nkey = '" + key + "'\nvalues = [" + values + "]\n";
}

// Forty rows of thirty features out of 20,000, as a file; its name is always the same, so that a scenario's hash is.
std::string long_data() {
  const std::filesystem::path path = std::filesystem::path(testing::TempDir()) / "fedbits_determinism_long.txt";
  const std::filesystem::path own = path.string() + std::to_string(::getpid());
  std::ofstream file(own);
  for (int row = 0; row < 40; ++row) {
    file << (row % 3 == 0 ? 1 : -1);
    for (int i = 0; i < 30; ++i) file << ' ' << 1 + 660 * i + (37 * row + 11 * i) % 600 << ':' << (1 + (row + i) % 7) * 0.25;
    file << '\n';
  }
  file.close();
  std::filesystem::rename(own, path);  // several tests may run at once
  return path.string();
}

std::vector<Study> studies() {
  const std::string operators =
      "{label='identity', kind='identity'}, {label='fp16', kind='identity', format='fp16'}, {label='top_k', kind='top_k', k=7},"
      "{label='top_k ties', kind='top_k', ratio=0.03, ties='all', value_format='fp16'}, {label='random_k', kind='random_k', k=9, "
      "scaled=true},"
      "{label='hard', kind='hard_threshold', threshold=0.01}, {label='qsgd', kind='qsgd', levels=7}, {label='qsgd max', kind='qsgd', "
      "norm='max'},"
      "{label='sign', kind='ef_sign'}, {label='natural', kind='natural'}, {label='integer', kind='scaled_integer', rounding='stochastic'},"
      "{label='powersgd', kind='powersgd', rank=2, scope='tensor'}";
  std::string scoped;
  for (const std::string scope : {"scope='tensor'", "scope='bucket', bucket=50", "scope='model', exclude=['bias']"})
    for (const std::string kind : {"kind='top_k', ratio=0.1", "kind='random_k', ratio=0.1", "kind='hard_threshold', threshold=0.02",
                                   "kind='qsgd', levels=7, scaled=true", "kind='ef_sign'"})
      scoped += "{label=\"" + kind + " " + scope + "\", " + kind + ", " + scope + "},";
  const std::string methods =
      "{label='ef14', kind='ef14'}, {label='ef21', kind='ef21'}, {label='ef21 momentum', kind='ef21', momentum=0.3},"
      "{label='ef_bv', kind='ef_bv', lambda=0.5, nu=0.7}, {label='econtrol', kind='econtrol'}, {label='lag', kind='lag', xi=1.0},"
      "{label='momentum', kind='momentum_correction'}, {label='unmasked', kind='momentum_correction', masking=false},"
      "{label='ef21_plus', kind='ef21_plus'}, {label='ef21_sgdm', kind='ef21_sgdm'}, {label='normalised', kind='ef21_normalised'},"
      "{label='clip21', kind='clip21', tau=0.1}, {label='cafe', kind='cafe'},"
      "{label='power_ef', kind='power_ef', steps=3, perturbation=0.1}, {label='clag', kind='clag', zeta=4.0},"
      "{label='v4', kind='three_pc', variant='v4'}, {label='v5', kind='three_pc', variant='v5', p=0.4},"
      "{label='adacgd', kind='adacgd', zeta=4.0}";
  const std::string sampled =
      "[local]\nkind = 'gradient'\nbatch = 3\nlearning_rate = 0.1\n[participation]\nkind = 'uniform'\nfraction = 0.4\n";
  const std::string steps =
      "[local]\nkind = 'sgd'\nbatch = 2\nreplacement = false\nsteps = 3\nlearning_rate = 0.05\n[participation]\nkind = 'uniform'\nclients "
      "= 5\n"
      "estimate = 'unbiased'\n";

  return {
      {"EveryOperator", kMushrooms + kMultinomial + kNoOptimum + sampled + axis("compressor.up", operators)},
      {"EveryScope", kMushrooms + kMultinomial + kNoOptimum + "[feedback.up]\nkind = 'ef14'\n" + axis("compressor.up", scoped)},
      {"EveryMemory", kMushrooms + kBinary + "[evaluate]\nevery = 2\n" + sampled + "[compressor.up]\nkind = 'top_k'\nk = 6\n" +
                          axis("feedback.up", methods)},
      {"Diana",
       kMushrooms + kBinary + kNoOptimum + sampled + "[compressor.up]\nkind = 'natural'\n[feedback.up]\nkind = 'diana'\nalpha = 0.5\n"},
      {"EcDiana", kMushrooms + kBinary + kNoOptimum +
                      "[compressor.up]\nkind = 'top_k'\nk = 6\nunit = 'step'\n[compressor.up.shift]\nkind = 'qsgd'\n"
                      "[feedback.up]\nkind = 'ec_diana'\n"},
      {"Cser", kMushrooms + kBinary + kNoOptimum +
                   "[local]\nkind = 'sgd'\nbatch = 4\nsteps = 2\nlearning_rate = 0.05\n"
                   "[compressor.up]\nkind = 'qsgd'\n[compressor.up.reset]\nkind = 'top_k'\nk = 9\n"
                   "[feedback.up]\nkind = 'cser'\nreset_every = 3\n"},
      {"Marina", kMushrooms + kBinary + kNoOptimum +
                     "[local]\nkind = 'gradient_difference'\nbatch = 4\n[compressor.up]\nkind = 'random_k'\nk = 9\nscaled = true\n"
                     "[feedback.up]\nkind = 'marina'\np = 0.3\n"},
      {"Scaffold", kMushrooms + kBinary + kNoOptimum +
                       "[local]\nkind = 'scaffold'\nbatch = 4\nsteps = 3\n[participation]\nkind = 'uniform'\nclients = 6\n"
                       "[feedback.up]\nkind = 'scaffold'\n"},
      {"FedDyn", kMushrooms + kBinary + kNoOptimum +
                     "[local]\nkind = 'feddyn'\nbatch = 4\nepochs = 2\nstragglers = 0.5\n[participation]\nkind = 'uniform'\nclients = 6\n"
                     "[compressor.up]\nkind = 'qsgd'\n[feedback.up]\nkind = 'feddyn'\n"},
      {"MimeLite", kMushrooms + kBinary + kNoOptimum +
                       "[local]\nkind = 'mime_lite'\nbatch = 4\nsteps = 3\nschedule = 'cosine'\n[participation]\nkind = 'uniform'\n"
                       "clients = 6\n[compressor.up]\nkind = 'top_k'\nk = 6\n[feedback.up]\nkind = 'mime_lite'\n"},
      {"SaPef", kMushrooms + kBinary + kNoOptimum + steps + "[compressor.up]\nkind = 'top_k'\nk = 6\n[feedback.up]\nkind = 'sa_pef'\n"},
      {"Dasha", kMushrooms + kBinary + kNoOptimum +
                    "[local]\nkind = 'mvr'\nbatch = 4\n[compressor.up]\nkind = 'natural'\n[feedback.up]\nkind = 'dasha'\na = 0.5\n"},
      {"Scallion", kMushrooms + kBinary + kNoOptimum +
                       "[local]\nkind = 'scallion'\nbatch = 4\nsteps = 3\n[participation]\nkind = 'uniform'\nclients = 6\n"
                       "[compressor.up]\nkind = 'natural'\n[feedback.up]\nkind = 'scallion'\n"},
      {"Scafcom",
       kMushrooms + kBinary + kNoOptimum +
           "[local]\nkind = 'scallion'\nbatch = 4\nepochs = 2\nstragglers = 0.5\n[participation]\nkind = 'uniform'\nclients = 6\n"
           "[compressor.up]\nkind = 'top_k'\nk = 6\n[feedback.up]\nkind = 'scafcom'\n"},
      {"FedComGate", kMushrooms + kBinary + kNoOptimum +
                         "[local]\nkind = 'fedcomgate'\nbatch = 4\nsteps = 3\n[participation]\nkind = 'uniform'\nclients = 6\n"
                         "[compressor.up]\nkind = 'qsgd'\n[feedback.up]\nkind = 'fedcomgate'\n"},
      {"EcLsvrg", kMushrooms + kBinary + kNoOptimum +
                      "[local]\nkind = 'lsvrg'\nbatch = 2\n[participation]\nkind = 'uniform'\nclients = 6\n"
                      "[compressor.up]\nkind = 'top_k'\nk = 6\nunit = 'step'\n[feedback.up]\nkind = 'ec_lsvrg'\n"},
      {"Ef21P", kMushrooms + kBinary + kNoOptimum + sampled +
                    "[compressor.up]\nkind = 'natural'\n[compressor.down]\nkind = 'top_k'\nk = 9\n"
                    "[feedback.up]\nkind = 'ef21_p'\nalpha = 0.5\n"},
      {"BothDirections", kMushrooms + kBinary + kNoOptimum + steps +
                             "[compressor.up]\nkind = 'top_k'\nk = 6\n[feedback.up]\nkind = 'ef14'\n"
                             "[server]\nkind = 'sgd'\nmomentum = 0.5\n" +
                             axis("compressor.down",
                                  "{label='top', kind='top_k', ratio=0.1}, {label='qsgd', kind='qsgd'},"
                                  "{label='fp16', kind='identity', format='fp16'}")},
      // More clients than a group of the aggregator (64) and than any block.
      {"ManyClients",
       "[data]\nkind = 'quadratics'\nclients = 200\ndimension = 9\nzeta_sq = 2.0\n"
       "[partition]\nkind = 'natural'\nclients = 200\n[model]\nkind = 'quadratic'\n"
       "[compressor.up]\nkind = 'top_k'\nk = 2\n[feedback.up]\nkind = 'ef21'\n" +
           axis("participation", "{label='all', kind='full'}, {label='some', kind='uniform', fraction=0.7}")},
      // More parameters than one piece of the aggregator's work (16,384).
      {"LongVectors", "[data]\npath = '" + long_data() + "'\nfeatures = 20000\n[partition]\nclients = 5\n[start]\nshift = 0.1\n" + kBinary +
                          kNoOptimum + "[local]\nkind = 'gradient'\nbatch = 2\n[feedback.up]\nkind = 'ef14'\n" +
                          axis("compressor.up", "{label='top', kind='top_k', ratio=0.01}, {label='sign', kind='ef_sign', scope='tensor'}")},
  };
}

class Determinism : public testing::TestWithParam<std::tuple<Study, std::string>> {
 protected:
  [[nodiscard]] static std::string text() {
    const auto& [study, precision] = GetParam();
    return "name = 'determinism'\nrounds = " + std::string(study.label == "LongVectors" ? "3" : "8") + "\nprecision = '" + precision +
           "'\n" + study.keys;
  }
};

void expect_same_summary(const RunRecord& record, const RunRecord& expected) {
  for (const RunColumn& column : kRunColumns) {
    if (column.name == "seconds") continue;
    const bool same = std::visit(
        [&](auto member) {
          using Value = std::decay_t<decltype(record.*member)>;
          if constexpr (std::is_same_v<Value, double>)
            return std::memcmp(&(record.*member), &(expected.*member), sizeof(double)) == 0;
          else
            return record.*member == expected.*member;
        },
        column.member);
    EXPECT_TRUE(same) << column.name;
  }
  EXPECT_EQ(record.split_hash, expected.split_hash);
}

void expect_same_rows(const std::vector<RoundRow>& rows, const std::vector<RoundRow>& expected) {
  ASSERT_EQ(rows.size(), expected.size());
  for (std::size_t r = 0; r < rows.size(); ++r)
    for (const RoundColumn& column : kRoundColumns)
      std::visit(
          [&](auto member) {
            EXPECT_EQ(std::memcmp(&(rows[r].*member), &(expected[r].*member), sizeof(rows[r].*member)), 0)
                << column.name << " of round " << r << ": " << rows[r].*member << " and " << expected[r].*member;
          },
          column.member);
}

TEST_P(Determinism, AnyThreadsAndBlocksGiveTheSameBytes) {
  const std::vector<RunResult> expected = test::run_text(text());
  for (const RunResult& result : expected) {
    ASSERT_EQ(result.record.status, RunStatus::done);
    ASSERT_GT(result.record.bits_up, 0u);
  }
  for (const auto& [threads, block] : kMachines) {
    const std::vector<RunResult> results = test::run_text(text(), {.threads = threads, .block = block});
    ASSERT_EQ(results.size(), expected.size());
    for (std::size_t cell = 0; cell < results.size(); ++cell) {
      SCOPED_TRACE(std::to_string(threads) + " threads, blocks of " + std::to_string(block) + ", cell " + std::to_string(cell));
      expect_same_summary(results[cell].record, expected[cell].record);
      expect_same_rows(results[cell].rows, expected[cell].rows);
      if (HasFailure()) return;
    }
  }
}

// A test of equality requires that other seeds give other bytes.
TEST_P(Determinism, AnotherSeedGivesOtherBytes) {
  const std::vector<RunResult> one = test::run_text("seed = 1\n" + text()), two = test::run_text("seed = 2\n" + text());
  for (std::size_t cell = 0; cell < one.size(); ++cell) EXPECT_NE(one[cell].record.checksum, two[cell].record.checksum) << cell;
}

INSTANTIATE_TEST_SUITE_P(Studies, Determinism, testing::Combine(testing::ValuesIn(studies()), testing::Values("float32", "float64")),
                         [](const auto& one) { return std::get<0>(one.param).label + "_" + std::get<1>(one.param); });

}  // namespace
}  // namespace fl
