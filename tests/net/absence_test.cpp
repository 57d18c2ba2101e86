// Tests that a client whose answer does not arrive in time is absent in this round and in nothing else, with every method: the run equals a
// simulated one in which the same messages are lost between the clients and the server.
#include <gtest/gtest.h>

#include <bit>

#include "scenarios/experiment/client_side.hpp"
#include "tests/net/presence_run.hpp"
#include "tests/support/every_method.hpp"

namespace fl {
namespace {

using test::Fault;
using Header = net::wire::Header;

// The messages of these clients are lost in one round, from a phase on.
struct Loss {
  std::uint32_t round = 0;
  int phase = 0;
  std::vector<std::uint32_t> clients;
  [[nodiscard]] bool takes(std::uint32_t round_, int phase_, std::uint32_t client) const {
    return round_ == round && phase_ >= phase && std::ranges::find(clients, client) != clients.end();
  }
};

// Simulated clients behind a link that loses messages.
template <class T>
class LossyLink final : public CohortRunner<T> {
 public:
  LossyLink(CohortRunner<T>& clients, Loss loss) : clients_(clients), loss_(std::move(loss)) {}
  void open_round(const RoundView<T>& round, const RoundOpening<T>& opening) override {
    this->lost_memories_.assign(round.order.cohort.size(), 0);
    clients_.open_round(round, {.replacement = opening.replacement});
  }
  void skip_round(std::uint32_t round) override { clients_.skip_round(round); }
  MessageBatch<T> exchange(const RoundView<T>& round, int phase) override {
    MessageBatch<T> sent = clients_.exchange(round, phase);
    messages_.assign(sent.messages.begin(), sent.messages.end());
    for (std::size_t i = 0; i < messages_.size(); ++i) {
      if (!loss_.takes(round.order.round, phase, messages_[i].client)) continue;
      messages_[i] = {.client = messages_[i].client, .refused = true, .is_absent = true, .encoded = {}};
      this->lost_memories_[i] = 1;
    }
    sent.messages = messages_;
    return sent;
  }
  void learn_mean(std::size_t c, int phase, std::span<const T> mean) override { clients_.learn_mean(c, phase, mean); }
  void close_round(const RoundView<T>& round, std::span<const std::uint8_t> delivered) override { clients_.close_round(round, delivered); }
  [[nodiscard]] std::span<const T> error_memory(std::uint32_t i) override { return clients_.error_memory(i); }
  void persist(Archive& archive) override { clients_.persist(archive); }

 private:
  CohortRunner<T>& clients_;
  Loss loss_;
  std::vector<ClientMessage<T>> messages_;
};

template <class T>
class LossyClients final : public RunClients<T> {
 public:
  LossyClients(const ClientRequest<T>& request, const Loss& loss)
      : problem_(request.cell.scenario, cache_, request.pool, request.cell.folder),
        side_(request.cell.scenario, problem_, request.method, request.run, SharedReplica<T>{request.shared}, request.cohort,
              ClientPlace{.materialise = true}, request.pool),
        link_(side_.clients(), loss) {}
  [[nodiscard]] CohortRunner<T>& clients() override { return link_; }
  [[nodiscard]] ClientProbe<T>& probe() override { return side_.probe(); }
  void prepare(std::span<const double> x_star) override { side_.prepare(x_star); }
  void record_into(SampleRecorder*) override {}
  [[nodiscard]] std::string page_file() override { return {}; }
  void commit_checkpoint() override {}
  void require_nothing_after(std::uint64_t) const override {}

 private:
  ProblemCache cache_{DataCatalog("")};
  FederatedProblem<T> problem_;
  ClientSide<T> side_;
  LossyLink<T> link_;
};

class LossySource final : public ClientSource {
 public:
  explicit LossySource(Loss loss) : loss_(std::move(loss)) {}
  [[nodiscard]] std::unique_ptr<RunClients<float>> clients_of(const ClientRequest<float>& request) override {
    return std::make_unique<LossyClients<float>>(request, loss_);
  }
  [[nodiscard]] std::unique_ptr<RunClients<double>> clients_of(const ClientRequest<double>& request) override {
    return std::make_unique<LossyClients<double>>(request, loss_);
  }

 private:
  Loss loss_;
};

constexpr std::uint32_t kLostRound = 3;

// A peer that does not answer the opening of the round, or the mean after `phase - 1`.
test::Faults silent_from(int phase) {
  return [phase](const Header& header) {
    const auto before = static_cast<std::uint32_t>(phase) - 1;
    const bool is_it = phase == 0 ? header.has_open() && header.open().round() == kLostRound
                                  : header.has_mean() && header.mean().round() == kLostRound && header.mean().phase() == before;
    return is_it ? Fault::mute : Fault::none;
  };
}

// Returns why the runs differ, or "". A machine that is too slow for the deadline misses other messages too: then the run is repeated.
std::string difference(const std::string& text, int phase) {
  LossySource source({kLostRound, phase, {2, 5}});
  CellRunner runner(DataCatalog(""), {.threads = 1, .source = &source});
  const RunResult expected = runner.run(test::cell_of(text), [](const RoundRow&) { return true; });
  test::PresenceRun run;
  for (const double deadline_s : {1.0, 4.0, 16.0}) {
    run = test::run_with_presence(text, {.deadline_s = deadline_s}, {{"0-1"}, {"2,5", silent_from(phase)}, {"3-4,6"}});
    if (!run.error.empty()) return run.error;
    const bool is_as_planned = std::ranges::equal(run.result.rows, expected.rows, {}, &RoundRow::refused, &RoundRow::refused) &&
                               std::ranges::equal(run.result.rows, expected.rows, {}, &RoundRow::clients, &RoundRow::clients);
    if (is_as_planned) break;
  }
  if (run.result.rows.size() != expected.rows.size()) return "the numbers of rounds differ";
  if (run.result.rows[kLostRound].refused != expected.rows[kLostRound].refused) return "other clients are refused";
  // The sum of error memories is not known until the absent clients have sent theirs, so the measures of it differ.
  for (std::size_t r = 0; r < expected.rows.size(); ++r) {
    const RoundRow &one = run.result.rows[r], &other = expected.rows[r];
    const bool is_same = one.bits_up == other.bits_up && one.bits_down == other.bits_down &&
                         std::bit_cast<std::uint64_t>(one.train_loss) == std::bit_cast<std::uint64_t>(other.train_loss);
    if (!is_same) return "row " + std::to_string(r) + " differs";
  }
  if (run.result.record.checksum != expected.record.checksum) return "the models differ";
  return run.counts.refused.empty() ? "" : "an answer is refused: " + run.counts.refused.begin()->first;
}

// Several runs at a time, because they mostly wait for their deadline.
void expect_no_difference(const std::vector<std::pair<std::string, int>>& runs) {
  constexpr std::size_t kAtATime = 12;
  std::vector<std::string> found(runs.size());
  std::atomic<std::size_t> next = 0;
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < std::min(kAtATime, runs.size()); ++t)
    threads.emplace_back([&] {
      for (std::size_t i = next++; i < runs.size(); i = next++) {
        try {
          found[i] = difference(runs[i].first, runs[i].second);
        } catch (const std::exception& error) {
          found[i] = error.what();
        }
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (std::size_t i = 0; i < runs.size(); ++i) EXPECT_EQ(found[i], "") << runs[i].first << "phase " << runs[i].second;
}

std::string short_text_of(test::Method method) {
  std::string text = test::text_of(method, "float32");
  return text.replace(text.find("rounds = 14"), 11, "rounds = 6");
}

TEST(NetworkAbsence, ASilentClientOfAnyMethodIsAbsentInItsRoundOnly) {
  std::vector<std::pair<std::string, int>> runs;
  for (const test::Method& method : test::methods()) runs.emplace_back(short_text_of(method), 0);
  expect_no_difference(runs);
}

TEST(NetworkAbsence, SoIsOneThatIsSilentInALaterPhaseOrWithEveryRuleForMemories) {
  std::vector<std::pair<std::string, int>> runs;
  for (const test::Method& method : test::methods())
    if (method.label == "powersgd") runs.emplace_back(short_text_of(method), 1);
  ASSERT_EQ(runs.size(), 1U);
  for (const std::string rule : {"'keep'", "'decay'\nabsent_decay = 0.5", "'drop'", "'server'"}) {
    test::Method method = test::methods().at(1);
    method.more = "[participation]\nkind = 'uniform'\nclients = 5\nabsent = " + rule + "\n";
    runs.emplace_back(short_text_of(method), 0);
  }
  expect_no_difference(runs);
}

}  // namespace
}  // namespace fl
