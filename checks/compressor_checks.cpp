// The requirements on every compressor, independent of its contract.
#include <array>
#include <cstring>

#include "checks/check.hpp"
#include "checks/compressor_cases.hpp"
#include "compressors/codec/codec.hpp"
#include "compressors/codec/finite.hpp"

namespace fl::checks {
namespace {

template <class S>
using NumberOf = typename std::decay_t<S>::Number;

// Returns whether the bits are equal, so that NaN equals itself and -0 differs from 0.
template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}
template <class T>
bool equal(const std::vector<T>& a, const std::vector<T>& b) {  // compares as numbers
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

template <class T>
std::vector<std::byte> encoded(const Payload<T>& message, const Scope& scope, const MessageLevels& known) {
  const codec::Channel<T> channel{&message.on_wire(), &scope, {}, known};
  std::vector<std::byte> bytes;
  codec::encode<T>(std::span(&channel, 1), bytes);
  return bytes;
}

// Decodes the bytes as a receiver does. Returns false if they cannot be decoded.
template <class T>
bool decode(const std::vector<std::byte>& bytes, const Scope& scope, const MessageLevels& known, std::size_t length, Payload<T>& decoded,
            FindingPlace& place) {
  Payload<T>* const targets[] = {&decoded};
  const Scope* const scopes[] = {&scope};
  const std::size_t lengths[] = {length};
  const auto read = codec::decode<T>(bytes, scopes, lengths, targets, std::span(&known, 1));
  if (!read.ok()) place.fail("the encoded message cannot be decoded: " + read.error().reason);
  return read.ok();
}

// Returns true if the message is finite, so that it is sent. Adds a finding if a receiver accepts a message that is not finite.
template <class T>
bool is_sent(const Payload<T>& message, const Scope& scope, const MessageLevels& known, FindingPlace& place) {
  if (codec::is_finite(message.on_wire(), scope)) return &message.on_wire() == &message || codec::is_finite(message, scope);
  Payload<T> decoded;
  Findings refused;
  FindingPlace other(refused, "");
  place.expect(!decode(encoded(message, scope, known), scope, known, message.length, decoded, other),
               "a message that is not finite is read");
  return false;
}

// ---- the checks --------------------------------------------------------------------------------------------------------------

void serves(const std::string& part, Findings& findings) {
  int served_scopes = 0;
  Findings others;  // reported by the other checks
  for_each_subject(part, others, [&](const auto& subject) { served_scopes += subject.c.label == subject.c.name ? 1 : 0; });
  FindingPlace(findings, part).expect(served_scopes > 0, "with its default options it serves no scope");
}

void messages(const std::string& part, Findings& findings) {
  for_each_input(part, findings, kInputShapes, [](const auto& s, InputShape shape) {
    using T = NumberOf<decltype(s)>;
    BlockInput<T> block(shape, 2, s.scope.P, 11);
    const Outcome<T> outcome = Sender<T>(s.compressor, s.scope).send(block, StateRule::none, false, 2);
    for (int phase = 0; phase < s.compressor.num_phases(); ++phase)
      for (const Payload<T>& message : outcome.messages[static_cast<std::size_t>(phase)]) {
        const Scope own = message_scope(s.compressor, s.scope, phase);
        s.place.expect(s.compressor.published_bits(message, own) >= 0, "published_bits is negative or NaN");
      }
    const WireValue values = outcome.messages.back()[0].values;
    if (values != WireValue::levels && values != kNativeWire<T>) return;  // a narrower format may overflow
    const bool finite = std::all_of(outcome.c.begin(), outcome.c.end(), [](T c) { return std::isfinite(c); });
    s.place.expect(finite, "a finite input became NaN or infinity");
  });
}

void residual(const std::string& part, Findings& findings) {
  for_each_input(part, findings, kInputShapes, [](const auto& s, InputShape shape) {
    using T = NumberOf<decltype(s)>;
    BlockInput<T> block(shape, 3, s.scope.P, 12), again(shape, 3, s.scope.P, 12);
    std::vector<T> expected = block.p();
    Sender<T> sender(s.compressor, s.scope);
    const Outcome<T> outcome = sender.send(block, StateRule::residual, false, 3);
    for (std::size_t i = 0; i < expected.size(); ++i) expected[i] = expected[i] - outcome.c[i];
    s.place.expect(equal(outcome.state, expected), "the new state is not the input minus the decoded message");
    const bool in_place = same_bits(sender.send(again, StateRule::residual, true, 3).state, outcome.state);
    s.place.expect(in_place, "the new state is another one where it is written over the input");
  });
}

void zeroed(const std::string& part, Findings& findings) {
  for_each_subject(part, findings, [](const auto& s) {
    using T = NumberOf<decltype(s)>;
    if (s.compressor.num_phases() > 1) return;
    BlockInput<T> block(InputShape::random, 2, s.scope.P, 13);
    std::vector<T> expected = block.p();
    const Outcome<T> outcome = Sender<T>(s.compressor, s.scope).send(block, StateRule::zero_where_sent, true, 2);
    for (std::size_t k = 0; k < 2; ++k) zero_where_sent(outcome.messages[0][k], s.scope, expected.data() + k * s.scope.P);
    s.place.expect(equal(outcome.state, expected), "zero_where_sent does not leave the entries that were not sent, and those alone");
  });
}

void untouched(const std::string& part, Findings& findings) {
  for_each_subject(part, findings, [](const auto& s) {
    using T = NumberOf<decltype(s)>;
    BlockInput<T> block(InputShape::random, 2, s.scope.P, 14);
    const BlockInput<T> before = block;
    const Outcome<T> outcome = Sender<T>(s.compressor, s.scope).send(block, StateRule::none, false, 2);
    s.place.expect(same_bits(block.e, before.e) && same_bits(block.g, before.g), "the input was written to");
    const bool silent = std::all_of(outcome.state.begin(), outcome.state.end(), [](T x) { return x == T(-77); });
    s.place.expect(silent, "a state was written where none was asked for");
  });
}

// Compares the messages of the same block from a second compressor, and in blocks of one and of two clients.
void compressor_blocks(const std::string& part, Findings& findings) {
  constexpr std::array kSome = {InputShape::random, InputShape::sparse, InputShape::tied};
  for_each_input(part, findings, kSome, [](const auto& s, InputShape shape) {
    using T = NumberOf<decltype(s)>;
    BlockInput<T> together(shape, 5, s.scope.P, 15), again = together, alone = together, pairs = together;
    Sender<T> sender(s.compressor, s.scope);
    const auto other = make<T>(s.c);
    const Outcome<T> a = sender.send(together, StateRule::residual, true, 5), b = sender.send(alone, StateRule::residual, true, 1),
                     d = sender.send(pairs, StateRule::residual, false, 2),
                     e = Sender<T>(*other, s.scope).send(again, StateRule::residual, true, 5);
    s.place.expect(same_bits(a.state, e.state), "the same input gives another state a second time");
    s.place.expect(same_bits(a.state, b.state) && same_bits(a.state, d.state), "the state depends on the size of blocks");
    s.place.expect(same_bits(a.memory, e.memory), "the same input is remembered in another way a second time");
    s.place.expect(same_bits(a.memory, b.memory) && same_bits(a.memory, d.memory), "what is remembered depends on the size of blocks");
    const bool in_full = std::none_of(a.memory.begin(), a.memory.end(), [](T x) { return x == T(-77); });
    s.place.expect(in_full, "what is remembered of a client is not written in full");
    for (std::size_t phase = 0; phase < a.messages.size(); ++phase) {
      const Scope own = message_scope(s.compressor, s.scope, static_cast<int>(phase));
      const MessageLevels known = sender.known_levels();
      for (std::size_t k = 0; k < 5; ++k) {
        const auto bytes = encoded(a.messages[phase][k], own, known);
        s.place.expect(bytes == encoded(e.messages[phase][k], own, known), "the same input gives another message a second time");
        const bool alike = bytes == encoded(b.messages[phase][k], own, known) && bytes == encoded(d.messages[phase][k], own, known);
        s.place.expect(alike, "the message depends on the size of blocks");
      }
    }
  });
}

void bits(const std::string& part, Findings& findings) {
  for_each_input(part, findings, kInputShapes, [](const auto& s, InputShape shape) {
    using T = NumberOf<decltype(s)>;
    BlockInput<T> block(shape, 1, s.scope.P, 16);
    Sender<T> sender(s.compressor, s.scope);
    const Outcome<T> outcome = sender.send(block, StateRule::none, false, 1);
    for (int phase = 0; phase < s.compressor.num_phases(); ++phase) {
      const Payload<T>& message = outcome.messages[static_cast<std::size_t>(phase)][0];
      const Scope own = message_scope(s.compressor, s.scope, phase);
      const MessageLevels known = sender.known_levels();
      const codec::Channel<T> channel{&message.on_wire(), &own, {}, known};
      if (!is_sent(message, own, known, s.place)) return;
      const std::vector<std::byte> bytes = encoded(message, own, known);
      s.place.expect(codec::encoded_bits<T>(std::span(&channel, 1)) == 8 * bytes.size(), "the counted bits are not those of the encoding");
      Payload<T> decoded;
      const auto other = make<T>(s.c);  // a receiver has the same configuration and the bytes
      Sender<T> receiver(*other, s.scope);
      if (!decode(bytes, own, receiver.known_levels(), message.length, decoded, s.place)) return;
      receiver.receive(block, 0, decoded);
      std::vector<T> sent(message.length), received(message.length);
      write_dense(message, own, sent.data());
      write_dense(decoded, own, received.data());
      s.place.expect(same_bits(sent, received), "decoding gives other numbers than were encoded");
    }
  });
}

// Runs fifty rounds of EF14 at the client and of h += c on both sides; the server reads only bytes.
void both_ends(const std::string& part, Findings& findings) {
  for_each_subject(part, findings, [](const auto& s) {
    using T = NumberOf<decltype(s)>;
    if (s.compressor.num_phases() > 1) return;
    const std::size_t P = s.scope.P;
    const T gain = T(0.3);
    std::vector<T> client(P, T(0)), server(P, T(0)), error(P, T(0)), rebuilt(P, T(0)), received(P), memory;
    for (std::uint32_t round = 0; round < 50; ++round) {
      BlockInput<T> block(InputShape::random, 1, P, 100 + round);
      block.e = error;
      const std::vector<T> p = block.p();
      Sender<T> sender(s.compressor, s.scope, round);
      sender.set_memory(memory);
      const Outcome<T> outcome = sender.send(block, StateRule::residual, true, 1);
      memory = outcome.memory;
      error = outcome.state;
      add_scaled(outcome.messages[0][0], s.scope, gain, client.data());
      Payload<T> decoded;
      const MessageLevels known = sender.known_levels();
      if (!decode(encoded(outcome.messages[0][0], s.scope, known), s.scope, known, P, decoded, s.place)) return;
      sender.receive(block, 0, decoded);
      add_scaled(decoded, s.scope, gain, server.data());
      write_dense(decoded, s.scope, received.data());
      for (std::size_t j = 0; j < P; ++j) rebuilt[j] = p[j] - received[j];
      if (!s.place.expect(equal(error, rebuilt), "the client's error is not what the server can rebuild from bytes")) return;
      if (!s.place.expect(same_bits(client, server), "client and server drift apart")) return;
    }
  });
}

void nan(const std::string& part, Findings& findings) {
  for_each_subject(part, findings, [](const auto& s) {
    using T = NumberOf<decltype(s)>;
    for (const T bad : {std::numeric_limits<T>::quiet_NaN(), std::numeric_limits<T>::infinity(), -std::numeric_limits<T>::infinity(),
                        std::numeric_limits<T>::max()})
      for (const bool everywhere : {false, true}) {
        FindingPlace place = s.place.inside(std::to_string(bad) + (everywhere ? " everywhere" : " in places"));
        BlockInput<T> block(InputShape::random, 1, s.scope.P, 17);
        for (std::size_t j = 0; j < s.scope.P; ++j)
          if (everywhere || j % 5 == 0) block.e[j] = bad;
        place.guard([&] {
          Sender<T> sender(s.compressor, s.scope);
          const Outcome<T> outcome = sender.send(block, StateRule::residual, true, 1);
          for (int phase = 0; phase < s.compressor.num_phases(); ++phase) {
            const Payload<T>& message = outcome.messages[static_cast<std::size_t>(phase)][0];
            const Scope own = message_scope(s.compressor, s.scope, phase);
            const MessageLevels known = sender.known_levels();
            Payload<T> decoded;
            if (!is_sent(message, own, known, place)) return;
            if (!decode(encoded(message, own, known), own, known, message.length, decoded, place)) return;
          }
        });
      }
  });
}

}  // namespace

const std::vector<Check>& compressor_checks() {
  static const std::vector<Check> checks = {
      {"serves", "with its default options it serves at least one scope", serves},
      {"messages", "messages are well-formed, and finite for finite inputs", messages},
      {"residual", "the new state is the input minus the decoded message, bit for bit", residual},
      {"zero_where_sent", "momentum factor masking clears what was sent and nothing else", zeroed},
      {"untouched", "the input is not written to, nor a state that nobody asked for", untouched},
      {"blocks", "messages and state do not depend on blocks, and are the same a second time", compressor_blocks},
      {"bits", "the counted bits are those of the encoded bytes, and decoding gives the same numbers", bits},
      {"both_ends", "fifty rounds of feedback leave client and server with the same numbers", both_ends},
      {"nan", "NaN, infinities and the largest numbers in the input leave a message that can be read, or one that is not finite", nan},
  };
  return checks;
}

}  // namespace fl::checks
