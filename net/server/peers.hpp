// The peers of a server as the thread that plays rounds uses them: which clients are there, frames to those that host them, and their
// answers.
//
// All that the clients of a run need of a network is behind this interface: RemoteCohort, MeasuredSums and RemoteSource know no sockets.
// PeerHub implements it over connections; processes that share a machine or a cluster can implement it by other means. An implementation
// delivers the frames to each host in the order of send(), takes answers while the caller waits in collect(), and refuses all others
// (ExpectedAnswers keeps the books of both). Every function is called from one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fl_core/config/error.hpp"
#include "fl_core/config/stopping.hpp"
#include "net/server/expected_answers.hpp"
#include "net/server/kept_rounds.hpp"
#include "net/server/presence.hpp"
#include "net/wire/frame.hpp"

namespace fl::net {

using HostId = std::uint64_t;  // of a peer in a run, through all its connections
inline constexpr std::uint64_t kNobody = 0;

// A run as announced to peers.
struct RunOffer {
  std::uint64_t run = 0, split = 0;            // hashes of the resolved scenario and of the rows of every client
  std::shared_ptr<const Bytes> scenario;       // its text
  std::uint32_t num_clients = 0;               // N
  std::uint64_t most_message_bytes = 1 << 20;  // of one client's message
  std::vector<std::uint64_t> row_hashes{};     // [N] of what each client's rows contain; empty = peers do not compare it
  // For a run that continues: [N] last closed round of each client, empty = 0 for all; and the rounds that peers may not have.
  std::vector<std::uint32_t> closed_rounds{};
  std::vector<KeptRounds> kept_rounds{};
};

// Reports that the server was asked to stop while it waited.
class FL_API Interrupted : public Stopped {
 public:
  Interrupted() : Stopped("interrupted") {}
};

struct Attendance {
  std::uint64_t num_changes = 0;  // how often a peer has become ready, left or acknowledged a round
  std::size_t num_hosted = 0;     // clients that ready peers host
};

// A client that nobody hosts now.
struct MissingClient {
  std::uint32_t client = 0;
  bool is_claimed = false;  // a connected peer has asked for it
  std::string why{};        // its last peer has left; "" = it had none
};

// The closed rounds of a run, as far as a run that continues needs them.
struct ClosedRounds {
  std::vector<std::uint32_t> last;  // [N] last closed round of each client
  std::vector<KeptRounds> kept;     // closed rounds that peers have not acknowledged
};

// The place of a frame in the rounds of its receiver. `between`: an order of sums between two rounds, which a peer that is away is sent
// when it connects again, until a round closes.
enum class Moment { opening, within, closing, between };

struct Sending {
  HostId host = kNobody;  // which may be away
  Moment moment = Moment::within;
  std::uint32_t round = 0;
  std::span<const std::uint32_t> clients{};  // of this host in the cohort, for a round that closes
  OutgoingFrame frame{};
};

// The limits of a wait for answers.
struct Wait {
  std::optional<Clock::time_point> until{};  // nothing = until all is there
  // Returns when the wait ends if nothing else arrives, from what has arrived; nothing = it goes on. Null: `until` alone decides.
  std::function<std::optional<Clock::time_point>(const Completions& completed)> closes_at{};
  double patience_s = 60;          // for a client whose peer has left; not used with `until`
  bool tolerates_absence = false;  // goes on without such a client instead of throwing
};

// Whether a refusal counts towards the number at which a peer is disconnected.
enum class Penalty { counts, none };

class FL_API Peers {
 public:
  virtual ~Peers() = default;

  // Offers a run to all peers, including those that connect later. Null ends it: peers wait for the next one.
  virtual void set_run(const RunOffer* offer) = 0;
  void begin_run(const RunOffer& offer) { set_run(&offer); }
  void end_run() { set_run(nullptr); }

  // Waits until num_changes is not `seen` any more, for a short time at most, and returns the attendance. Throws Interrupted if goes_on()
  // returns false.
  virtual Attendance wait_for_change(std::uint64_t seen, const std::function<bool()>& goes_on) = 0;
  // Returns the attendance now.
  [[nodiscard]] Attendance attendance() {
    return wait_for_change(kNeverSeen, [] { return true; });
  }
  // Returns the clients that nobody hosts now, ascending.
  [[nodiscard]] virtual std::vector<MissingClient> missing() const = 0;
  // Returns the host of each client that can play another round now, or kNobody.
  [[nodiscard]] virtual std::vector<HostId> hosts_of(std::span<const std::uint32_t> clients) = 0;

  // Sends a frame, and notes the round that it opens or closes for its host and for `clients`.
  virtual void send(Sending sending) = 0;
  // Sets the expected frames (ExpectedAnswers::expect); all others are refused from now on.
  virtual void expect(std::vector<Expected> frames, std::span<const std::uint8_t> required = {}) = 0;
  // Waits for the expected frames and returns those that are there. Throws Error if a client's peer has left and is not back in time, and
  // Interrupted if goes_on() returns false.
  [[nodiscard]] virtual Answers collect(const Wait& wait, const std::function<bool()>& goes_on) = 0;
  // Tells a client's peer that an answer is not used, and counts it by its reason.
  virtual void reject(std::uint32_t client, std::uint32_t round, const std::string& why, Penalty penalty) = 0;

  // Returns the closed rounds, for a checkpoint.
  [[nodiscard]] virtual ClosedRounds closed_rounds() const = 0;
  // Returns whether every connected peer, and with `also_away` every other one, has acknowledged all rounds that are closed.
  [[nodiscard]] virtual bool all_acknowledged(bool also_away) const = 0;

 private:
  static constexpr std::uint64_t kNeverSeen = ~std::uint64_t{0};
};

// Returns the text of an error about clients whose peers have left and are not back within `patience_s`. `why`: the reason of the first
// one, or "".
[[nodiscard]] FL_API std::string text_of_loss(const std::vector<std::uint32_t>& clients, const std::string& when, double patience_s,
                                              const std::string& why);
// Returns the same with the reason that the peers know.
[[nodiscard]] FL_API std::string text_of_loss(const Peers& peers, const std::vector<std::uint32_t>& clients, const std::string& when,
                                              double patience_s);

}  // namespace fl::net
