#include "net/peer/peer_run.hpp"

#include <chrono>
#include <mutex>

#include "fl_core/config/error.hpp"
#include "fl_core/state/checksum.hpp"
#include "net/peer/failure_kind.hpp"
#include "net/wire/row_hashes.hpp"

namespace fl::net {

namespace {

class Stopwatch {
 public:
  [[nodiscard]] double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - started_).count(); }

 private:
  std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
};

// Returns whether two openings say the same, whether or not one of them is sent again.
bool is_same_opening(const Frame& a, const Frame& b) {
  const auto text_of = [](wire::Header header) {
    header.mutable_open()->clear_is_replay();
    header.mutable_open()->clear_saved_round();
    return header.SerializeAsString();
  };
  return a.payload == b.payload && text_of(a.header) == text_of(b.header);
}

// Lets clients play a closed round again, and returns the memories that it asks for.
std::vector<OutgoingFrame> play_again(HostedClients& clients, const RoundRecord& record) {
  for (const Frame& frame : record.frames) {
    if (frame.header.has_open()) clients.open(frame);
    if (frame.header.has_close()) return clients.close(frame);
    if (frame.header.has_open() || clients.learn_mean(frame)) clients.exchange([](const std::vector<OutgoingFrame>&) {});
  }
  throw ProtocolError("the record of round " + std::to_string(record.round) + " has no end");
}

}  // namespace

PeerRun::PeerRun(std::vector<ClientRange> clients, HostOptions machine, StateOptions state, std::function<void(const std::string&)> say)
    : ranges_(std::move(clients)), machine_(std::move(machine)), state_(std::move(state)), say_(std::move(say)) {
  PeerJournal::require_clients(state_.folder, to_text(ranges_));
}

PeerRun::~PeerRun() = default;

OutgoingFrame PeerRun::begin(const wire::Assignment& assignment, std::span<const std::byte> scenario) {
  if (journal_ != nullptr && assignment.run() != run_) {
    clients_.reset();  // its page file goes before the journal's files
    if (has_ended_) journal_->remove();
    earlier_.push_back(std::move(journal_));
  }
  if (journal_ == nullptr) {
    run_ = assignment.run();
    scenario_.assign(reinterpret_cast<const char*>(scenario.data()), scenario.size());
    open_journal();
  }
  has_ended_ = false;
  const std::uint32_t wanted = assignment.closed_round();
  if (clients_ == nullptr || closed_ > wanted) restore(wanted);
  require_rows(assignment);  // before anything that the rows determine leaves this process
  mismatch_.clear();
  if (closed_ != wanted) {
    mismatch_ = "the server has closed round " + std::to_string(wanted) + " of run " + to_hex(run_) + ", and " + state_.folder.string() +
                " has the clients' state of round " + std::to_string(closed_);
    for (const std::string& other : PeerJournal::runs_in(state_.folder))
      if (other != to_hex(run_)) mismatch_ += "; it also has the state of run " + other;
  }
  wire::Header header;
  header.mutable_ready()->set_run(run_);
  header.mutable_ready()->set_split(assignment.split());
  header.mutable_ready()->set_closed_round(closed_);
  return make_frame(header);
}

// Throws OtherRows unless the server has named the rows that are here: a server that does not know them could ask for gradients that
// tell what they are.
void PeerRun::require_rows(const wire::Assignment& assignment) const {
  const std::string option = machine_.shard != nullptr ? "--shard: " : "--data: ";
  if (assignment.rows().empty()) throw ProtocolError("it does not say what the rows of these clients are");
  if (clients_->split_hash() != assignment.split())
    throw OtherRows(option +
                    "the rows are split over the clients in another way than the server's: another data set, or another order of its rows");
  const std::vector<std::uint64_t> stated(assignment.rows().begin(), assignment.rows().end());
  const std::string others = clients_with_other_rows(clients_->row_hashes(), stated, ranges_);
  if (others.empty()) return;
  const bool is_one = others.find_first_of("-,") == std::string::npos;
  throw OtherRows(option + "the rows of client" + (is_one ? " " : "s ") + others +
                  " are not those of the run: they were made from another data set, or were changed");
}

void PeerRun::open_journal() {
  const bool has_pages = machine_.paging.memory_bytes > 0;
  const std::filesystem::path pages = machine_.paging.file.folder;
  journal_ = std::make_unique<PeerJournal>(PeerJournalOptions{.folder = state_.folder,
                                                              .run = to_hex(run_),
                                                              .clients = to_text(ranges_),
                                                              .pages = pages,
                                                              .has_pages = has_pages,
                                                              .system = state_.system,
                                                              .long_bytes = state_.long_bytes});
  if (!journal_->damage().empty()) say_(journal_->damage());
  const CheckpointPlan plan = journal_->plan_of(JournalSnapshot::base);
  if (has_pages)
    machine_.paging.file = {.folder = plan.pages_folder(), .name = page_file_name(plan), .can_be_kept = true, .system = state_.system};
}

// Brings new clients to a round, or to the last one before it that the journal leads to.
void PeerRun::restore(std::uint32_t round) {
  opened_ = {};
  memories_.clear();
  for (const JournalWay& way : journal_->ways_to(round)) {
    if (!load(way.snapshot)) continue;
    closed_ = way.from;
    for (const std::size_t i : way.records) {
      RoundRecord record;
      try {
        record = journal_->read(i);
      } catch (const StoreError& damaged) {
        say_(damaged.what());
        break;
      }
      memories_ = play_again(*clients_, record);
      closed_ = record.round;
    }
    if (closed_ > 0) say_("clients " + to_text(ranges_) + " go on after round " + std::to_string(closed_) + " of run " + to_hex(run_));
    journal_->forget_after(closed_);
    return;
  }
}

// Makes new clients, and gives them a snapshot's state. Returns false if the snapshot is damaged.
bool PeerRun::load(JournalSnapshot snapshot) {
  clients_.reset();  // two could not have the page file open
  clients_ = host_clients(scenario_, run_, ranges_, machine_);
  if (snapshot == JournalSnapshot::none) return true;
  try {
    CheckpointHeader header{.run = to_hex(run_)};
    return load_checkpoint(journal_->plan_of(snapshot), header, [this](Archive& archive) { clients_->persist(archive); });
  } catch (const StoreError& damaged) {
    say_(damaged.what());
    return false;
  }
}

void PeerRun::take(Frame frame, const FrameSink& send) {
  const Stopwatch stopwatch;
  if (clients_ == nullptr) throw ProtocolError("the server plays a round before it has named a run");
  if (frame.header.has_close()) {
    close(std::move(frame));
    return send(closed_frames());
  }
  if (frame.header.has_measure_order()) return send(clients_->measure(frame));
  if (frame.header.has_open())
    open(std::move(frame), send);
  else if (frame.header.has_mean())
    learn(std::move(frame), send);
  else
    throw ProtocolError("a frame that only a peer sends");
  opened_.seconds += stopwatch.seconds();
}

void PeerRun::open(Frame frame, const FrameSink& send) {
  const wire::Open& opening = frame.header.open();
  if (opening.round() <= closed_) return;  // its close is answered
  if (opened_.round != 0 && is_same_opening(opened_.frames.front(), frame)) {
    opened_.is_replay = opening.is_replay();
    if (!opened_.is_replay) send(opened_.sent);
    return;
  }
  if (opened_.round != 0) restore(closed_);  // the clients have begun a round that does not go on
  compact(opening.saved_round());
  opened_ = {.round = opening.round(), .is_replay = opening.is_replay()};
  opened_.frames.push_back(std::move(frame));
  clients_->open(opened_.frames.back());
  exchange(send);
}

void PeerRun::learn(Frame frame, const FrameSink& send) {
  const wire::Mean& mean = frame.header.mean();
  if (mean.round() <= closed_) return;
  for (const Frame& known : opened_.frames)
    if (known.header.has_mean() && known.header.mean().phase() == mean.phase() && known.header.mean().channel() == mean.channel()) return;
  opened_.frames.push_back(std::move(frame));
  if (clients_->learn_mean(opened_.frames.back())) exchange(send);
}

// Lets the clients compute. Their answers are kept until the round is closed, in case that the connection is lost.
void PeerRun::exchange(const FrameSink& send) {
  std::mutex mutex;
  clients_->exchange([&](std::vector<OutgoingFrame> answers) {
    const std::lock_guard lock(mutex);
    opened_.sent.insert(opened_.sent.end(), answers.begin(), answers.end());
    if (!opened_.is_replay) send(std::move(answers));
  });
}

void PeerRun::close(Frame frame) {
  const std::uint32_t round = frame.header.close().round();
  if (round == closed_) return;  // the server has not heard that it is
  if (round != opened_.round) throw ProtocolError("a round closes that is not the one that is open");
  const Stopwatch stopwatch;
  opened_.frames.push_back(std::move(frame));
  memories_ = clients_->close(opened_.frames.back());
  journal_->append_record({.round = round, .before = closed_, .frames = std::move(opened_.frames)}, opened_.seconds + stopwatch.seconds());
  closed_ = round;
  opened_ = {};
}

// Returns the answers to the end of the last round. Memories may be missing at the server also when its round is closed.
std::vector<OutgoingFrame> PeerRun::closed_frames() const {
  std::vector<OutgoingFrame> frames = memories_;
  wire::Header header;
  header.mutable_closed()->set_round(closed_);
  frames.push_back(make_frame(header));
  return frames;
}

void PeerRun::compact(std::uint32_t saved) {
  journal_->compact(
      closed_, saved, clients_->page_file(), [this](Archive& archive) { clients_->persist(archive); },
      [this] { clients_->commit_checkpoint(); });
}

void PeerRun::end() {
  clients_.reset();
  has_ended_ = true;
}

void PeerRun::remove() {
  clients_.reset();
  if (journal_ != nullptr) earlier_.push_back(std::move(journal_));
  for (const auto& journal : earlier_) journal->remove();
  earlier_.clear();
  run_ = closed_ = 0;
}

}  // namespace fl::net
