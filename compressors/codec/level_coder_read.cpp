#include <algorithm>
#include <numeric>
#include <vector>

#include "compressors/codec/level_coder.hpp"
#include "compressors/codec/level_tokens.hpp"

namespace fl::codec {

namespace {

constexpr const char* kLevelsTooShort = "the message ends inside the coded levels";
constexpr const char* kBadModel = "a model of levels whose frequencies do not add up";

bool read_width(BitReader& reader, int& width) {
  const std::uint64_t code = reader.get_gamma();
  if (code == 0 || code > 64) return false;
  width += static_cast<int>(unfolded(code));
  return true;
}

std::string read_tokens(BitReader& reader, std::size_t limit, LevelModel& model) {
  const std::uint64_t p = reader.get_gamma();
  if (p == 0 || p > limit) return "a model of " + std::to_string(p) + " levels where 1 .. " + std::to_string(limit) + " are possible";
  if (p > reader.remaining()) return kLevelsTooShort;
  model.token.resize(static_cast<std::size_t>(p));
  std::uint64_t next = 0;
  for (std::uint16_t& token : model.token) {
    const std::uint64_t step = reader.get_gamma();
    if (step == 0 || next + step > limit) return "a model of levels with one that the format does not have";
    next += step;
    token = static_cast<std::uint16_t>(next - 1);
  }
  return "";
}

std::string read_frequencies(BitReader& reader, LevelModel& model) {
  model.frequency.resize(model.token.size());
  std::uint64_t left = std::uint64_t{1} << model.precision;
  int width = static_cast<int>(model.precision);
  for (std::size_t i = 0; i + 1 < model.frequency.size(); ++i) {
    if (!read_width(reader, width) || width < 1 || width > static_cast<int>(model.precision)) return kBadModel;
    const auto low = static_cast<unsigned>(width) - 1;
    const std::uint64_t frequency = (std::uint64_t{1} << low) | reader.get(low);
    if (frequency >= left) return kBadModel;
    model.frequency[i] = static_cast<std::uint32_t>(frequency);
    left -= frequency;
  }
  model.frequency.back() = static_cast<std::uint32_t>(left);
  return reader.past_end() ? kLevelsTooShort : "";
}

std::string read_model(BitReader& reader, std::size_t limit, LevelModel& model) {
  model.precision = static_cast<unsigned>(reader.get(kPrecisionBits)) + kLeastPrecision;
  if (model.precision > kMostPrecision) return "a model of levels with 2^" + std::to_string(model.precision) + " parts";
  if (std::string wrong = read_tokens(reader, limit, model); !wrong.empty()) return wrong;
  return read_frequencies(reader, model);
}

// The data of a token for one step of the decoder.
struct Slot {
  std::uint16_t token = 0, frequency_less_one = 0, offset = 0;  // offset: of the slot in its token's interval
};

void fill_slots(const LevelModel& model, std::vector<Slot>& slots) {
  slots.resize(std::size_t{1} << model.precision);
  auto slot = slots.begin();
  for (std::size_t i = 0; i < model.token.size(); ++i) {
    for (std::uint32_t offset = 0; offset < model.frequency[i]; ++offset) {
      *slot++ = {.token = model.token[i],
                 .frequency_less_one = static_cast<std::uint16_t>(model.frequency[i] - 1),
                 .offset = static_cast<std::uint16_t>(offset)};
    }
  }
}

// Returns whether to use a table of 2^r slots: it is short, or no longer than the levels that it decodes.
bool has_slots(std::size_t num_levels, const LevelModel& model) {
  constexpr std::size_t kShort = 4096;
  const std::size_t slots = std::size_t{1} << model.precision;
  return slots <= kShort || slots * sizeof(Slot) <= num_levels * sizeof(float);
}

// Returns the slot by a search in the sums of frequencies up to each token, [p].
Slot find_slot(const LevelModel& model, std::uint32_t at) {
  const auto token = std::upper_bound(model.frequency.begin(), model.frequency.end(), at) - model.frequency.begin();
  const auto i = static_cast<std::size_t>(token);
  const std::uint32_t below = i == 0 ? 0 : model.frequency[i - 1];
  return {.token = model.token[i],
          .frequency_less_one = static_cast<std::uint16_t>(model.frequency[i] - below - 1),
          .offset = static_cast<std::uint16_t>(at - below)};
}

// Calls store(i, token) for all levels. The caller has checked that the words exist. slot_of: slot_of(x mod 2^r)
template <class SlotOf, class Store>
std::string decode_state(BitReader& reader, std::uint64_t num_words, std::size_t n, unsigned r, SlotOf slot_of, Store store) {
  const std::uint64_t mask = (std::uint64_t{1} << r) - 1, end = reader.position() + 32 * num_words;
  std::uint64_t at = reader.position() + 64;
  std::uint64_t x = reader.get(64);
  if (x < kLeastState || x >> 63 != 0) return "coded levels start from a state outside 2^31 .. 2^63";
  for (std::size_t i = 0; i < n; ++i) {
    const Slot slot = slot_of(static_cast<std::uint32_t>(x & mask));
    store(i, slot.token);
    x = (std::uint64_t{slot.frequency_less_one} + 1) * (x >> r) + slot.offset;
    if (x < kLeastState) {
      if (at >= end) return "coded levels ask for more words than were sent";
      x = x << 32 | low_bits(reader.peek_at(at), 32);
      at += 32;
    }
  }
  if (x != kLeastState) return "coded levels do not end in the state that they have to";
  for (; at < end; at += 32) {
    if (low_bits(reader.peek_at(at), 32) != 0) return "words that are not zero follow the coded levels";
  }
  reader.skip(end - reader.position());
  return "";
}

// As decode_state(), with the slots in a table, or found by a search if a table would be longer than its levels.
template <class Store>
std::string decode_tokens(BitReader& reader, std::uint64_t num_words, std::size_t n, LevelModel& model, Store store) {
  const unsigned r = model.precision;
  if (!has_slots(n, model)) {
    std::partial_sum(model.frequency.begin(), model.frequency.end(), model.frequency.begin());
    return decode_state(
        reader, num_words, n, r, [&](std::uint32_t at) { return find_slot(model, at); }, store);
  }
  std::vector<Slot> slots;
  fill_slots(model, slots);
  return decode_state(
      reader, num_words, n, r, [&](std::uint32_t at) { return slots[at]; }, store);
}

template <class L>
std::string read_extra(BitReader& reader, L* level, std::size_t n, const LevelFormat& format) {
  for (std::size_t i = 0; i < n; ++i) {
    const auto token = static_cast<std::uint32_t>(level[i]);  // not negative here. NOLINT(bugprone-signed-char-misuse)
    const std::int64_t wide = wide_level(token, static_cast<std::uint32_t>(reader.get(extra_bits_of(token))), format);
    if (wide < format.min_level || wide > max_level(format)) return level_outside(format);
    level[i] = static_cast<L>(wide);
  }
  return reader.past_end() ? kLevelsTooShort : "";
}

template <class L>
std::string read_levels_with(BitReader& reader, L* level, std::size_t n, const LevelFormat& format, std::uint64_t words,
                             LevelModel& model) {
  if (!is_direct(format)) {
    std::string wrong =
        decode_tokens(reader, words, n, model, [&](std::size_t i, std::uint32_t token) { level[i] = static_cast<L>(token); });
    return wrong.empty() ? read_extra(reader, level, n, format) : wrong;
  }
  const std::int32_t min = format.min_level;
  std::string wrong = decode_tokens(reader, words, n, model, [&](std::size_t i, std::uint32_t token) {
    level[i] = static_cast<L>(min + static_cast<std::int32_t>(token));
  });
  if (!wrong.empty()) return wrong;
  return holds_nan(level, n, format.map) ? "a level is not a number" : "";
}

}  // namespace

template <class T>
std::string read_coded_levels(BitReader& reader, Payload<T>& payload) {
  const LevelFormat& format = payload.level_format;
  LevelModel model;
  if (std::string wrong = read_model(reader, num_tokens(format), model); !wrong.empty()) return wrong;
  const std::uint64_t words = reader.get_gamma();
  if (words < 2 || words > reader.remaining() / 32) return kLevelsTooShort;
  return with_levels(payload, [&](auto* level) { return read_levels_with(reader, level, payload.num_sent, format, words, model); });
}

template std::string read_coded_levels<float>(BitReader&, Payload<float>&);
template std::string read_coded_levels<double>(BitReader&, Payload<double>&);

}  // namespace fl::codec
