// Compares operators and feedback methods with traces that were made without this library: traces.py follows the published equations in
// NumPy for three rounds and writes traces.txt, whose format is described there.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "compressors/conversation.hpp"
#include "fl_core/config/registry.hpp"
#include "tests/support/data_folder.hpp"
#include "tests/support/plain_loop.hpp"

namespace fl {
namespace {

using test::Vector;

constexpr double kTolerance = 1e-12;
constexpr std::uint32_t kRounds = 3;

// "words numbers": what a line of a trace says of a vector.
struct Line {
  std::vector<std::string> words;
  Vector numbers;
};
struct Golden {
  std::string name, label;
  std::string input, scope, options;  // of an operator
  std::string scenario;               // of a feedback method
  std::vector<Line> lines;
};
void PrintTo(const Golden& golden, std::ostream* out) { *out << golden.name << ' ' << golden.label; }

struct Goldens {
  std::uint64_t key = 0;
  std::map<std::string, std::map<std::uint32_t, std::map<std::uint32_t, Vector>>> inputs;  // name, round, client
  std::string data;
  std::vector<Golden> operators, feedbacks;
};

// Returns the number of words before the numbers of a line.
std::size_t words_before_numbers(const std::string& first) {
  static const std::map<std::string, std::size_t> kWords = {{"x", 3}, {"c", 3}, {"mean", 2}, {"model", 2}, {"client", 4}, {"shared", 3}};
  return kWords.at(first);
}
Line line_of(const std::string& first, std::istringstream& rest) {
  Line line{.words = {first}, .numbers = {}};
  std::string word;
  while (line.words.size() < words_before_numbers(first) && rest >> word) line.words.push_back(word);
  while (rest >> word) line.numbers.push_back(std::stod(word));
  return line;
}
std::string remaining(std::istringstream& rest) {
  std::string text;
  std::getline(rest >> std::ws, text);
  return text;
}
std::uint32_t number(const std::string& word) { return static_cast<std::uint32_t>(std::stoul(word)); }

Goldens read_goldens() {
  std::ifstream in(FL_SOURCE_DIR "/tests/golden/traces.txt");
  Goldens goldens;
  std::vector<Golden>* kind = nullptr;
  std::string text, first, input;
  while (std::getline(in, text)) {
    std::istringstream rest(text);
    rest >> first;
    if (first == "#") continue;
    if (first == "key") {
      rest >> goldens.key;
    } else if (first == "input") {
      rest >> input;
    } else if (first == "x") {
      Line line = line_of(first, rest);
      goldens.inputs[input][number(line.words[1])][number(line.words[2])] = std::move(line.numbers);
    } else if (first == "data") {
      goldens.data += remaining(rest) + "\n";
    } else if (first == "operator" || first == "feedback") {
      kind = first == "operator" ? &goldens.operators : &goldens.feedbacks;
      rest >> kind->emplace_back().name >> kind->back().label;
    } else if (first == "of") {
      rest >> kind->back().input >> kind->back().scope;
    } else if (first == "options") {
      kind->back().options = remaining(rest);
    } else if (first == "toml") {
      kind->back().scenario += remaining(rest) + "\n";
    } else {
      kind->back().lines.push_back(line_of(first, rest));
    }
  }
  return goldens;
}
const Goldens& goldens() {
  static const Goldens kGoldens = read_goldens();
  return kGoldens;
}

testing::AssertionResult agrees(const Vector& ours, const Line& golden) {
  std::string where;
  for (const std::string& word : golden.words) where += word + " ";
  if (ours.size() != golden.numbers.size()) return testing::AssertionFailure() << where << "has " << ours.size() << " numbers";
  const double distance = test::relative_distance(ours, golden.numbers);
  if (distance <= kTolerance) return testing::AssertionSuccess();
  auto failure = testing::AssertionFailure() << where << "differs by " << distance << "\nours  ";
  for (const double x : ours) failure << ' ' << x;
  failure << "\nNumPy ";
  for (const double x : golden.numbers) failure << ' ' << x;
  return failure;
}

std::string test_name(const testing::TestParamInfo<Golden>& one) { return one.param.name + "_" + one.param.label; }

// ---- operators: one vector after another, what is remembered of each client carried along ----

// The fifteen numbers as one vector, or as a matrix of 4 x 3 and a vector of three.
Scope scope_of(const std::string& name) {
  if (name == "model") return {ScopeKind::model, {{0, 15, 15, 1}}, {}, 15};
  return {ScopeKind::tensor, {{0, 12, 4, 3}, {12, 15, 3, 1}}, {}, 15};
}

class OperatorUnderTest {
 public:
  explicit OperatorUnderTest(const Golden& golden)
      : part_(parse_cells("name = 'trace'\nrounds = 1\ndata = { kind = 'quadratics' }\nmodel = { kind = 'quadratic' }\ncompressor.up = " +
                              golden.options + "\n",
                          "trace.toml")
                  .at(0)
                  .scenario.compressor_up("")
                  .part),
        operator_(make_part<Compressor<double>>("compressor", part_.kind, part_.options, Device::cpu, Precision::float64)),
        scope_(operator_->adapt(scope_of(golden.scope))),
        conversation_(*operator_, scope_, goldens().key) {
    operator_->check(scope_);
    exec_.workspace = &workspace_;
  }

  [[nodiscard]] int num_phases() const { return operator_->num_phases(); }

  // The mean of the clients' C(x), as its receiver reads it.
  Vector send(std::uint32_t round, const std::map<std::uint32_t, Vector>& inputs) {
    const std::size_t K = inputs.size(), L = operator_->client_state_size(scope_);
    Vector together, before, after(K * L), state(K * scope_.P);
    std::vector<std::uint32_t> clients;
    for (const auto& [client, x] : inputs) {
      clients.push_back(client);
      together.insert(together.end(), x.begin(), x.end());
      Vector& memory = memory_[client];
      memory.resize(L, 0.0);
      before.insert(before.end(), memory.begin(), memory.end());
    }
    Senders<double> senders{.clients = clients,
                            .state = {StateRule::residual, rows_view(state.data(), K, scope_.P)},
                            .remembered = rows_view<const double>(before.data(), K, L),
                            .remember = rows_view(after.data(), K, L)};
    senders.input.add(1.0, rows_view<const double>(together.data(), K, scope_.P));
    conversation_.open(round);
    Transcript<double> transcript = conversation_.hold(exec_, senders);
    for (std::size_t k = 0; k < K; ++k) std::copy_n(after.begin() + static_cast<std::ptrdiff_t>(k * L), L, memory_[clients[k]].begin());
    return transcript.mean;
  }

 private:
  Part part_;
  std::unique_ptr<Compressor<double>> operator_;
  Scope scope_;
  Conversation<double> conversation_;
  std::map<std::uint32_t, Vector> memory_;
  Workspace workspace_;
  Exec exec_;
};

class NumpyOperators : public testing::TestWithParam<Golden> {};

TEST_P(NumpyOperators, FollowThePublishedEquations) {
  const Golden& golden = GetParam();
  const auto& inputs = goldens().inputs.at(golden.input);
  OperatorUnderTest ours(golden);
  for (const Line& line : golden.lines) {
    const std::uint32_t round = number(line.words[1]);
    if (ours.num_phases() > 1) {
      EXPECT_TRUE(agrees(ours.send(round, inputs.at(round)), line));
    } else {
      const std::uint32_t client = number(line.words[2]);
      EXPECT_TRUE(agrees(ours.send(round, {{client, inputs.at(round).at(client)}}), line));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, NumpyOperators, testing::ValuesIn(goldens().operators), test_name);

// ---- feedback methods: whole runs, model and state after every round ----

class NumpyFeedbacks : public test::DataFolderTest, public testing::WithParamInterface<Golden> {};

TEST_P(NumpyFeedbacks, FollowThePublishedEquations) {
  const Golden& golden = GetParam();
  write("traces.libsvm", goldens().data);
  test::OneRun<double> run(golden.scenario + "[data]\npath = '" + (folder_ / "traces.libsvm").string() +
                           "'\nlabels = 'target'\ntest = 'none'\n");
  for (std::uint32_t round = 1; round <= kRounds; ++round) {
    run.play(round, round);
    for (const Line& line : golden.lines) {
      const bool is_state = line.words[0] != "model";
      if (number(line.words[is_state ? 2 : 1]) != round) continue;
      const Vector ours = !is_state                   ? run.model()
                          : line.words[0] == "client" ? test::state_of(run, line.words[1], number(line.words[3]))
                                                      : test::copy(run->shared().slot(line.words[1]));
      EXPECT_TRUE(agrees(ours, line));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, NumpyFeedbacks, testing::ValuesIn(goldens().feedbacks), test_name);

// ---- everything that is registered has a golden ----

void expect_every_name(const std::string& role, const std::vector<Golden>& cases) {
  std::map<std::string, std::set<std::uint32_t>> rounds;
  for (const Golden& golden : cases)
    for (const Line& line : golden.lines)
      rounds[golden.name].insert(number(line.words[line.words[0] == "client" || line.words[0] == "shared" ? 2 : 1]));
  for (const std::string& name : Registry::instance().names(role))
    EXPECT_EQ(rounds[name].size(), kRounds) << role << " '" << name
                                            << "' has no golden of three rounds: add a case to tests/golden/published/cases.py";
}

TEST(NumpyGoldens, ThereIsOneOfEveryOperator) { expect_every_name("compressor", goldens().operators); }
TEST(NumpyGoldens, ThereIsOneOfEveryFeedbackMethod) { expect_every_name("feedback", goldens().feedbacks); }

}  // namespace
}  // namespace fl
