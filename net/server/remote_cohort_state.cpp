// The checkpoints of a cohort on peers: what the server keeps of them, and until when it waits for theirs.
#include <algorithm>
#include <chrono>
#include <utility>

#include "net/server/kept_rounds.hpp"
#include "net/server/remote_cohort.hpp"

namespace fl::net {

// Waits until peers have the state of the last round on their disks. Where no client may be absent, that includes peers that have left:
// with a checkpoint of a round that they do not have, a server that is killed could not go on with them.
template <class T>
void RemoteCohort<T>::wait_for_acknowledgements() {
  const bool also_away = !presence_.tolerates_absence();
  const double limit_s = presence_.deadline_s > 0 ? presence_.deadline_s : presence_.patience_s;
  const auto begun = Clock::now();
  for (Attendance attendance = peers_.attendance();;) {
    const double waited_s = std::chrono::duration<double>(Clock::now() - begun).count();
    constexpr double kStopping = 2;  // seconds for a run that is asked to stop
    if (peers_.all_acknowledged(also_away) || waited_s > (goes_on_() ? limit_s : std::min(limit_s, kStopping))) return;
    attendance = peers_.wait_for_change(attendance.num_changes, [] { return true; });
  }
}

// The peers' state of this round is on their disks before the server writes its own, as far as they are there.
template <class T>
void RemoteCohort<T>::persist(Archive& archive) {
  if (!archive.is_reading() && has_begun_) {
    wait_for_acknowledgements();
    ClosedRounds rounds = peers_.closed_rounds();
    closed_ = std::move(rounds.last);
    kept_ = std::move(rounds.kept);
  }
  closed_.resize(request_.run.num_clients, 0);
  archive.section("remote clients");
  archive.array(std::span(last_heard_));
  archive.array(std::span(closed_));
  archive.value(open_.round);
  net::persist(archive, kept_);
  if (!archive.is_reading()) kept_.clear();
  if (mirror_ != nullptr) mirror_->persist(archive);
  if (archive.is_reading()) open_.saved_round = open_.round;
}

template void RemoteCohort<float>::wait_for_acknowledgements();
template void RemoteCohort<double>::wait_for_acknowledgements();
template void RemoteCohort<float>::persist(Archive&);
template void RemoteCohort<double>::persist(Archive&);

}  // namespace fl::net
