// The rules by which a server waits for its clients.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

namespace fl::net {

using Clock = std::chrono::steady_clock;

struct Presence {
  std::uint32_t min_clients = 0;  // a run starts when this number of clients is hosted; 0 = all
  // Limit of a round, from its opening; 0 = none. With over_select it makes the delivery of runs whose scenarios state none
  // (RemoteSource::delivery_of). The clients of a run have the limit that its delivery sets for a round without answers.
  double deadline_s = 0;
  double patience_s = 60;      // limit of waiting for a client whose peer has left
  double ready_limit_s = 600;  // from a run's assignment until its peer is ready
  double over_select = 1;      // clients that are asked in a round, as a multiple of those whose messages are awaited

  // Returns whether a round goes on without clients that nobody hosts.
  [[nodiscard]] bool tolerates_absence() const { return deadline_s > 0 || min_clients > 0; }
};

// The time limits of one round. Its stages share the deadline equally, so that one silent client cannot use up the time of later stages:
// stage 0 waits for peers, one stage for each phase follows, and one for the memories that clients send after the round.
class RoundTimer {
 public:
  RoundTimer() = default;
  RoundTimer(const Presence& presence, int num_stages)
      : begun_(Clock::now()), num_stages_(num_stages), stage_s_(presence.deadline_s / num_stages), has_deadline_(presence.deadline_s > 0) {}

  // Returns the end of a stage, or nothing if the round has no deadline.
  [[nodiscard]] std::optional<Clock::time_point> end_of(int stage) const {
    if (!has_deadline_) return std::nullopt;
    return begun_ + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(stage_s_ * (stage + 1)));
  }
  // Returns the seconds of a round at a time in a stage, as its delivery counts them: the end of every stage is the end of the round.
  [[nodiscard]] double seconds_at(Clock::time_point time, int stage) const {
    return std::chrono::duration<double>(time - begun_).count() * num_stages_ / (stage + 1);
  }
  // Returns the inverse of seconds_at(); nothing for a time that does not come.
  [[nodiscard]] std::optional<Clock::time_point> time_of(double seconds, int stage) const {
    constexpr double kNever = 1e9;
    if (!(seconds < kNever)) return std::nullopt;
    return begun_ + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds * (stage + 1) / num_stages_));
  }

 private:
  Clock::time_point begun_{};
  int num_stages_ = 1;
  double stage_s_ = 0;
  bool has_deadline_ = false;
};

}  // namespace fl::net
