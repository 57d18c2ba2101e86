// Watches the runs of `fedbits serve`: logs what peers do as it happens, and shows the state by HTTP if that is asked for.
//
// A thread looks at the peers twice a second. Rounds come from the thread that plays; it never waits for more than a short lock.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "apps/fedbits/event_log.hpp"
#include "net/server/peer_hub.hpp"
#include "scenarios/file/sweep.hpp"
#include "status/serve_status.hpp"
#include "status/status_server.hpp"

namespace fl {

// Finds what is new about peers and refusals, each time that it is asked, and logs it.
class PeerNews {
 public:
  explicit PeerNews(const EventLog& log) : log_(log) {}
  void tell(const std::vector<net::PeerFacts>& peers, const net::WireCounts& counts);

 private:
  const EventLog& log_;
  std::set<net::PeerId> joined_, left_;
  std::map<std::string, std::uint64_t> refused_;
};

class ServeWatch {
 public:
  // Shows the state at `address` unless that is "". Throws Error if the address cannot be used.
  ServeWatch(net::PeerHub& hub, const std::vector<Cell>& cells, const std::string& address, const EventLog& log);
  ~ServeWatch();
  ServeWatch(const ServeWatch&) = delete;
  ServeWatch& operator=(const ServeWatch&) = delete;

  void begin(const Cell& cell, std::size_t number, std::size_t count);
  void add(const Cell& cell, const RoundRow& row);
  void end(const RunRecord& record, bool is_stored);
  // Logs and shows how everything ended: done, failed or interrupted. A page that is open gets the time to read it.
  void close(const std::string& outcome, const std::string& message);

 private:
  void look();
  void look_again_and_again();
  // Prints how many clients are hosted while a run waits for peers: when the number changes, and every ten seconds.
  void tell_waiting();

  net::PeerHub& hub_;
  const EventLog& log_;
  PeerNews news_;
  std::mutex mutex_;  // guards what follows, up to the thread
  std::condition_variable ends_;
  net::ServeStatus status_;
  bool is_over_ = false;
  std::string told_;  // by tell_waiting() last
  double told_s_ = 0;
  std::unique_ptr<net::StatusServer> server_;
  std::thread thread_;
};

}  // namespace fl
