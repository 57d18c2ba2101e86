// Tests that operators stay within their memory and come to an end while another thread writes into the arrays that they read: the vector,
// the memory of the error, the operator's state of the client and the shared state. fedbits.TopK().compress(x) reads the caller's array
// without a copy and lets other threads of Python run. The message may then be nonsense or an Error. The data race is deliberate: faults
// show as a crash, as a test that does not end, or in the address sanitizer.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <limits>
#include <thread>

#include "checks/compressor_cases.hpp"
#include "compressors/codec/codec.hpp"
#include "compressors/codec/finite.hpp"
#include "python/src/require_finite.hpp"
#include "tests/support/sanitized.hpp"

namespace fl::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// Fills arrays with other numbers until it is destroyed: equal ones, different ones, and single ones that stand out.
template <class T>
class WriterThread {
 public:
  explicit WriterThread(std::vector<std::span<T>> arrays) : arrays_(std::move(arrays)), thread_([this] { write(); }) {}
  WriterThread(const WriterThread&) = delete;
  ~WriterThread() {
    is_over_ = true;
    thread_.join();
  }

 private:
  void write() {
    using Limits = std::numeric_limits<T>;
    const T special[] = {Limits::quiet_NaN(),
                         T(0),
                         Limits::infinity(),
                         T(1),
                         -Limits::infinity(),
                         Limits::max(),
                         Limits::denorm_min(),
                         -Limits::max(),
                         T(1e-20),
                         T(-1e20),
                         T(0.75),
                         T(40000)};
    std::uint32_t word = 1;
    const auto next = [&word] { return word = word * 1664525u + 1013904223u; };
    while (!is_over_) {
      const T one = special[(next() >> 16) % std::size(special)];
      const std::uint32_t kind = next() >> 30;
      for (const std::span<T> array : arrays_)
        for (volatile T& x : array) {
          const bool stands_out = (next() >> 16) % 64 == 0;
          const T number = static_cast<T>(static_cast<double>(next()) * 0x1p-31 - 1);
          x = kind == 0 ? one : kind == 1 ? number : (kind == 2) == stands_out ? one : number;
        }
    }
  }

  std::vector<std::span<T>> arrays_;
  std::atomic<bool> is_over_ = false;
  std::thread thread_;
};

LayerTable table_of(const std::vector<std::pair<std::size_t, std::size_t>>& shapes) {
  LayerTable table;
  for (const auto& [rows, cols] : shapes)
    table.layers.push_back({.name = std::to_string(table.layers.size()), .begin = table.size(), .rows = rows, .cols = cols});
  return table;
}

// Vectors of less than a tile, of several tiles, and beyond the size from which operators take samples; segments of all these sizes.
std::vector<checks::NamedScope> scopes() {
  const LayerTable layers = table_of({{12, 17}, {4500, 1}, {1, 1}, {6, 400}});
  std::vector<checks::NamedScope> scopes = {{"model", make_scope(layers, ScopeKind::model, 0, {})},
                                            {"tensor", make_scope(layers, ScopeKind::tensor, 0, {"2"})},
                                            {"bucket of 300", make_scope(layers, ScopeKind::bucket, 300, {})},
                                            {"large", make_scope(table_of({{70000, 1}}), ScopeKind::model, 0, {})}};
  for (checks::NamedScope& named : scopes) named.scope.clients = 6;
  return scopes;
}

// One client that sends again and again, with and without a memory of the error, as python/src/operator.cpp does.
template <class T>
class Client {
 public:
  Client(Compressor<T>& op, const Scope& scope)
      : op_(op),
        scope_(scope),
        x_(scope.P, T(1)),
        error_(scope.P),
        state_(op.client_state_size(scope)),
        shared_(op.cohort_state_size(scope)) {
    op.init_cohort_state(kKey, scope, shared_.data());
  }
  [[nodiscard]] std::vector<std::span<T>> arrays() { return {x_, error_, state_, shared_}; }

  // Sends the vector and reads the message, unless an Error refuses one of them.
  void send(std::uint32_t round, bool has_memory) {
    try {
      Conversation<T> conversation(op_, scope_, kKey, shared_);
      conversation.open(round);
      while (!conversation.is_over())
        if (!send_phase(conversation, has_memory)) return;
    } catch (const Error&) {
    }
  }

 private:
  bool send_phase(Conversation<T>& conversation, bool has_memory) {
    const std::uint32_t client[] = {3};
    Senders<T> sender{.clients = client,
                      .remembered = rows_view<const T>(state_.data(), 1, state_.size()),
                      .remember = rows_view(state_.data(), 1, state_.size())};
    if (has_memory) {
      sender.input.add(T(1), rows_view<const T>(error_.data(), 1, scope_.P));
      sender.state = {StateRule::residual, rows_view(error_.data(), 1, scope_.P)};
    }
    sender.input.add(T(1), rows_view<const T>(x_.data(), 1, scope_.P));
    const Scope vector = message_scope(op_, scope_, conversation.phase());
    const MessageLevels known = conversation.known_levels();
    Payload<T> message;
    Payload<T>* const messages[] = {&message};
    conversation.send(exec_, sender, messages);
    if (!codec::is_finite(message.on_wire(), vector) || !codec::is_finite(message, vector)) return false;
    read(conversation, vector, known, message);
    if (conversation.num_phases() == 1) return false;
    std::vector<T> mean(vector.P), estimate(scope_.P);
    write_dense(message, vector, mean.data());
    conversation.receive(mean, estimate);
    return true;
  }
  void read(const Conversation<T>& conversation, const Scope& vector, const MessageLevels& known, const Payload<T>& message) {
    const codec::Channel<T> channel{.payload = &message.on_wire(), .scope = &vector, .levels = known};
    const std::uint64_t bits = codec::encoded_bits<T>(std::span(&channel, 1));
    codec::encode<T>(std::span(&channel, 1), bytes_);
    EXPECT_EQ(8 * bytes_.size(), bits);
    EXPECT_GE(codec::entropy_bits(message.on_wire(), vector), 0);
    EXPECT_GE(op_.published_bits(message, scope_), 0);
    Payload<T> decoded;
    Payload<T>* const payloads[] = {&decoded};
    const Scope* const scopes[] = {&vector};
    const std::size_t lengths[] = {conversation.length()};
    ASSERT_TRUE(codec::decode<T>(bytes_, scopes, lengths, payloads, std::span(&known, 1)).ok());
    const std::uint32_t client[] = {3};
    conversation.reconstruct(exec_, client, payloads);
    std::vector<T> out(vector.P);
    write_dense(decoded, vector, out.data());
  }

  static constexpr std::uint64_t kKey = 7;
  Compressor<T>& op_;
  const Scope& scope_;
  std::vector<T> x_, error_, state_, shared_;
  std::vector<std::byte> bytes_;
  Workspace workspace_;
  Exec exec_{.workspace = &workspace_};
};

template <class T>
void disturb(const checks::Case& c, const Scope& model, milliseconds time) {
  const auto op = checks::make<T>(c);
  const std::optional<Scope> scope = checks::served(*op, model);
  if (!scope) return;
  Client<T> client(*op, *scope);
  const WriterThread<T> writer(client.arrays());
  const auto end = steady_clock::now() + time;
  std::uint32_t round = 1;
  do {
    client.send(round, round % 2 == 0);
    ++round;
  } while (steady_clock::now() < end);
}

// Every operator, with the options that the checks of operators take.
class Operators : public testing::TestWithParam<std::string> {};

TEST_P(Operators, StayWithinTheirMemory) {
  for (const checks::NamedScope& named : scopes())
    for (const checks::Case& c : checks::cases_of(GetParam())) {
      SCOPED_TRACE(c.label + ", scope " + named.label);
      disturb<float>(c, named.scope, milliseconds(6));
      disturb<double>(c, named.scope, milliseconds(3));
    }
}

INSTANTIATE_TEST_SUITE_P(ChangingInput, Operators, testing::ValuesIn(Registry::instance().names("compressor")),
                         [](const auto& test) { return test.param; });

// Operators that count or search in one pass what another pass writes.
TEST(ChangingInput, SelectionsStayWithinTheirMemory) {
  const checks::Settings of_one = {{"k", Value{std::int64_t{1}}}}, of_few = {{"k", Value{std::int64_t{20}}}},
                         many = {{"ratio", Value{0.1}}}, most = {{"ratio", Value{0.6}}};
  for (const std::size_t size : {70, 700, 2000, 9000, 50000})
    for (const checks::Settings& settings : {of_one, of_few, many, most})
      for (const char* name : {"top_k", "qsparse", "stc", "aji_dropping"}) {
        checks::Case c{name, name, Registry::instance().default_options("compressor", name)};
        for (const auto& [key, value] : settings) ASSERT_FALSE(c.options.schema().find(key)->assign(value));
        const Scope scope = make_scope(table_of({{size, 1}}), ScopeKind::model, 0, {});
        SCOPED_TRACE(std::string(name) + " of " + std::to_string(size));
        disturb<float>(c, scope, milliseconds(20));
        disturb<double>(c, scope, milliseconds(10));
      }
}

// Numbers of a state choose operators, rounds of a search and positions. A state may come from a file, and two callers may share it.
TEST(ChangingInput, NumbersOfAStateThatNoOperatorWritesDoNoHarm) {
  for (const std::string name : {"lgreco", "sidco", "sketched_sgd", "accordion", "gradzip", "variance_based", "powersgd"})
    for (const checks::Case& c : checks::cases_of(name))
      for (const checks::NamedScope& named : scopes())
        for (const double number : {-1.0, 1e9, 3e38, std::numeric_limits<double>::quiet_NaN()}) {
          const auto op = checks::make<float>(c);
          const std::optional<Scope> scope = checks::served(*op, named.scope);
          if (!scope) continue;
          SCOPED_TRACE(c.label + ", scope " + named.label);
          Client<float> client(*op, *scope);
          for (const bool has_memory : {false, true}) {
            std::ranges::fill(client.arrays()[2], static_cast<float>(number));
            std::ranges::fill(client.arrays()[3], static_cast<float>(number));
            client.send(2, has_memory);
          }
        }
}

// The search for the place of a NaN ends, also if another number has taken its place.
TEST(ChangingInput, TheSearchForANumberThatIsNotFiniteEnds) {
  std::vector<float> x(3000, 1.0F);
  const WriterThread<float> writer({x});
  const auto end = steady_clock::now() + milliseconds(200);
  std::size_t refused = 0;
  while (steady_clock::now() < end) try {
      python::require_finite<float>(x, "the vector");
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("not finite"), std::string::npos);
      ++refused;
    }
  EXPECT_GT(refused, 0U);
}

}  // namespace
}  // namespace fl::test
