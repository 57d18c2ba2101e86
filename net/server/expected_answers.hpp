// The frames that a server waits for, and those of them that have arrived.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "fl_core/config/device.hpp"
#include "net/server/presence.hpp"
#include "net/wire/frame.hpp"

namespace fl::net {

// One frame that the server expects.
struct Expected {
  enum class Kind { update, norms, memory, sums } kind = Kind::update;
  std::uint32_t round = 0, phase = 0, client = 0;
  friend auto operator<=>(const Expected&, const Expected&) = default;
};

// Returns what a frame answers, or nothing for one that is no answer.
[[nodiscard]] FL_API std::optional<Expected> answer_in(const wire::Header& header);

// The times at which all frames of a client were there, by client in the order in which clients are first expected; nothing = not yet.
using Completions = std::vector<std::optional<Clock::time_point>>;

// The frames that have arrived, in the order in which they are expected.
struct Answers {
  std::vector<Frame> frames;
  std::vector<std::uint8_t> arrived;  // 1 for each frame that is there
  Completions completed{};
};

class FL_API ExpectedAnswers {
 public:
  enum class Verdict { accepted, repeated, unexpected };

  // Replaces the expected frames, which are all of one round. A client whose entry in `required` is 0 may answer, but nobody waits for it;
  // an empty `required` requires all.
  void expect(std::vector<Expected> frames, std::span<const std::uint8_t> required = {});
  // Keeps the frame, which has arrived now, if it is expected and not there yet.
  Verdict take(const Expected& what, Frame frame);
  // Ends the wait and returns what has arrived. From now on nothing is accepted, and unanswered() names what is missing.
  [[nodiscard]] Answers finish();

  // Returns whether every required client has sent all its frames.
  [[nodiscard]] bool is_over() const { return num_missing_ == 0; }
  // Returns the number of clients that have sent all their frames, and when.
  [[nodiscard]] std::size_t num_complete() const { return num_complete_; }
  [[nodiscard]] const Completions& completed() const { return answers_.completed; }
  // Returns the frames that have not arrived; those of clients that nobody waits for only if `all`.
  [[nodiscard]] std::vector<Expected> unanswered(bool all) const;
  // Returns whether a frame of this kind, phase 0, has not arrived of a client in [first, last] that is waited for. Takes time in
  // proportion to the frames that are expected of these clients.
  [[nodiscard]] bool is_owed(Expected::Kind kind, std::uint32_t first, std::uint32_t last) const;
  // Stops waiting for a client.
  void give_up(std::uint32_t client);
  // Returns the round of the expected frames; 0 = none.
  [[nodiscard]] std::uint32_t round() const { return asked_.empty() ? 0 : asked_.front().round; }

 private:
  struct Client {
    std::size_t place = 0;      // in Answers::completed
    std::uint32_t missing = 0;  // frames
    bool is_required = true;
  };
  std::vector<Expected> asked_;
  std::map<Expected, std::size_t> places_;  // in asked_
  Answers answers_;
  std::map<std::uint32_t, Client> clients_;
  std::size_t num_missing_ = 0, num_complete_ = 0;  // required clients without all their frames, clients with all their frames
  bool is_open_ = false;
};

}  // namespace fl::net
