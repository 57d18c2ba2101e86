#include "net/peer/hosted_clients.hpp"

#include <algorithm>

#include "clients/learning/model_reader.hpp"
#include "fl_core/config/key_error.hpp"
#include "fl_core/config/stopping.hpp"
#include "net/peer/hosted_sums.hpp"
#include "net/wire/raw_values.hpp"
#include "scenarios/experiment/client_side.hpp"
#include "scenarios/file/sweep.hpp"

namespace fl::net {

namespace {

// Returns the problem of a run, from a shard if there is one. Throws ConfigError if the shard does not have the rows of these clients.
template <class T>
std::unique_ptr<FederatedProblem<T>> problem_of(const Cell& cell, const std::vector<ClientRange>& clients, const HostOptions& options,
                                                ProblemCache& cache, ThreadPool& pool) {
  if (options.shard == nullptr) return std::make_unique<FederatedProblem<T>>(cell.scenario, cache, pool, cell.folder);
  std::unique_ptr<FederatedProblem<T>> problem = options.shard->problem<T>(cell, cache.catalog(), pool);
  for (const ClientRange& range : clients)
    for (std::uint64_t client = range.first; client <= range.last; ++client)
      if (!problem->holds_rows_of(static_cast<std::uint32_t>(client)))
        throw key_error("--shard", "it has the rows of clients " + to_text(ranges_of(options.shard->clients())) + ", not those of client " +
                                       std::to_string(client));
  return problem;
}

template <class T>
class Hosted final : public HostedClients {
 public:
  Hosted(Cell cell, const std::vector<ClientRange>& clients, const HostOptions& options)
      : cell_(std::move(cell)),
        hosted_(clients),
        pool_(options.threads),
        cache_(DataCatalog::confined(options.data, options.also_read, options.memory)),
        owned_problem_(problem_of<T>(cell_, hosted_, options, cache_, pool_)),
        problem_(*owned_problem_),
        method_(make_method<T>(cell_.scenario, problem_.layers(), problem_.shards().size(), Device::cpu)),
        run_(run_settings(cell_.scenario, method_, problem_)),
        shared_(run_.P) {
    declare_slots<T>(method_, run_, {.shared = &shared_});
    const std::size_t hosted = num_clients(hosted_);
    side_ = std::make_unique<ClientSide<T>>(cell_.scenario, problem_, method_, run_, SharedReplica<T>{shared_, true},
                                            CohortSizes{hosted, hosted}, ClientPlace{.materialise = true, .paging = options.paging}, pool_);
    if (method_.local->traits().needs_optimum) side_->prepare(problem_.optimum(cell_.scenario.evaluate.optimum).x);
    reader_ = std::make_unique<ModelReader<T>>(
        make_channel<T>(cell_.scenario, problem_.layers(), "down", cell_.scenario.down, 0xD0, 1, Device::cpu), run_.P, run_.kinds);
  }

  [[nodiscard]] std::uint64_t split_hash() const override { return problem_.split_hash(); }
  [[nodiscard]] std::vector<std::uint64_t> row_hashes() const override {
    for (const ClientRange& range : row_hashes_.empty() ? hosted_ : std::vector<ClientRange>())
      for (std::uint64_t client = range.first; client <= range.last; ++client)
        row_hashes_.push_back(problem_.row_hash(static_cast<std::uint32_t>(client)));
    return row_hashes_;
  }

  void open(const Frame& frame) override {
    const wire::Open& open = frame.header.open();
    if (open.round() <= order_.round) throw ProtocolError("a round opens that was played already");
    order_ = {.round = open.round(),
              .step_size = open.step_size(),
              .server_step = open.server_step(),
              .coin = open.coin(),
              .measure = open.measure(),
              .cohort = {open.cohort().begin(), open.cohort().end()}};
    require_hosted(order_.cohort);
    RawReader payload(frame.payload);
    read_model(open, payload);
    if (open.has_initial_slots()) read_slots(payload, [](const SlotSpec& slot) { return slot.sync == SlotSync::initial; });
    if (open.has_missed_slots()) {
      read_slots(payload, [](const SlotSpec& slot) {
        return (slot.sync == SlotSync::derived || slot.sync == SlotSync::last_model) && !slot.derive_alone_reads_it;
      });
    }
    read_slots(payload, [](const SlotSpec& slot) { return slot.sync == SlotSync::broadcast; });
    std::vector<T> replacement(open.has_replacement() ? run_.P : 0);
    if (open.has_replacement()) payload.read_shared(std::span(replacement), run_.kinds.unshared);
    payload.finish();
    side_->clients().open_round(view(), {.replacement = replacement, .derived_is_known = open.has_missed_slots()});
    phase_ = 0;
  }

  void exchange(const FrameSink& send) override {
    side_->runner().set_tap([&](const ClientRound<T>&, int, auto messages, auto bytes) { send(frames_of(messages, bytes)); });
    static_cast<void>(side_->clients().exchange(view(), phase_));
    side_->runner().set_tap({});
    std::vector<OutgoingFrame> measures;
    if (order_.measure && phase_ == method_.exchange.num_phases() - 1)
      for (std::size_t i = 0; i < order_.cohort.size(); ++i) measures.push_back(norms_of(i));
    if (!run_.kinds.kept.empty() && phase_ == method_.exchange.num_phases() - 1)
      for (std::uint32_t i = 0; i < order_.cohort.size(); ++i)
        measures.push_back(kept_move<T>(order_.round, order_.cohort[i], i, run_.kinds.num_kept(), side_->probe()));
    if (!measures.empty()) send(std::move(measures));
    means_ = 0;
  }

  [[nodiscard]] bool learn_mean(const Frame& frame) override {
    const wire::Mean& mean = frame.header.mean();
    const std::size_t c = mean.channel();
    const bool fits = mean.round() == order_.round && static_cast<int>(mean.phase()) == phase_ && c < method_.exchange.channels.size() &&
                      phase_ + 1 < method_.exchange.channels[c].num_phases();
    if (!fits) throw ProtocolError("the mean of a phase that nobody waits for");
    std::vector<T> values(method_.exchange.channels[c].length(phase_));
    read_dense_message<T>(frame.payload, values);
    side_->clients().learn_mean(c, phase_, values);
    const auto goes_on = [this](const ExchangeChannel<T>& one) { return phase_ + 1 < one.num_phases(); };
    if (++means_ < std::ranges::count_if(method_.exchange.channels, goes_on)) return false;
    ++phase_;
    return true;
  }

  [[nodiscard]] std::vector<OutgoingFrame> measure(const Frame& frame) override {
    return HostedSums<T>(problem_, run_, *side_, shared_, pool_).answer(frame, hosted_);
  }

  [[nodiscard]] std::vector<OutgoingFrame> close(const Frame& frame) override {
    const wire::Close& close = frame.header.close();
    if (close.round() != order_.round || close.delivered().size() != order_.cohort.size())
      throw ProtocolError("a round closes that is not the one that is open");
    RawReader payload(frame.payload);
    read_slots(payload, [](const SlotSpec& slot) { return slot.sync == SlotSync::broadcast_at_close; });
    payload.finish();
    const std::vector<std::uint8_t> delivered(close.delivered().begin(), close.delivered().end());
    side_->clients().close_round(view(), delivered);
    std::vector<OutgoingFrame> frames;
    for (std::uint32_t i = 0; close.wants_memory() && i < order_.cohort.size(); ++i) {
      wire::Header header;
      header.mutable_memory()->set_round(order_.round);
      header.mutable_memory()->set_client(order_.cohort[i]);
      frames.push_back(make_frame(header, {weights_of(side_->clients().error_memory(i))}));
    }
    return frames;
  }

  void persist(Archive& archive) override {
    archive.section("hosted clients");
    archive.value(order_.round);
    reader_->persist(archive);
    shared_.persist(archive);
    side_->clients().persist(archive);
    if (archive.is_reading()) side_->require_nothing_after(order_.round);
  }
  [[nodiscard]] std::string page_file() override { return side_->page_file(); }
  void commit_checkpoint() override { side_->commit_checkpoint(); }

 private:
  [[nodiscard]] RoundView<T> view() const { return {run_, order_, reader_->reference()}; }

  // Reads the model as it is sent to the client that was here last: the one whose message says the least.
  void read_model(const wire::Open& open, RawReader& payload) {
    DownMessage latest;
    std::uint64_t receivers = 0;
    for (const wire::Model& model : open.models()) {
      if (model.form() >= kNumDownForms) throw ProtocolError("a model of unknown form");
      DownMessage message{.form = static_cast<DownForm>(model.form()),
                          .since = model.since(),
                          .parts = {},
                          .rounds = {model.rounds().begin(), model.rounds().end()}};
      for (const std::uint64_t bytes : model.bytes()) message.parts.push_back(std::make_shared<const Bytes>(payload.take(bytes)));
      receivers += model.num_clients();
      if (latest.parts.empty() || message.since > latest.since) latest = std::move(message);
    }
    if (receivers != order_.cohort.size()) throw ProtocolError("the models are not for as many clients as the cohort has");
    const std::string error = reader_->read(order_.round, latest);
    if (!error.empty()) throw ProtocolError("the model of round " + std::to_string(order_.round) + " cannot be read: " + error);
  }

  [[nodiscard]] std::shared_ptr<const Bytes> weights_of(std::span<const T> vector) const {
    Bytes bytes;
    append_shared(bytes, vector, run_.kinds.unshared);
    return std::make_shared<const Bytes>(std::move(bytes));
  }

  void require_hosted(const std::vector<std::uint32_t>& cohort) const {
    if (std::ranges::adjacent_find(cohort, std::ranges::greater_equal()) != cohort.end())
      throw ProtocolError("the clients of a cohort do not ascend");
    for (const std::uint32_t client : cohort)
      if (std::ranges::none_of(hosted_, [client](const ClientRange& range) { return range.first <= client && client <= range.last; }))
        throw ProtocolError("client " + std::to_string(client) + " is in the cohort and not hosted here");
  }

  template <class Which>
  void read_slots(RawReader& payload, const Which& which) {
    for (const SlotSpec& slot : shared_.specs())
      if (which(slot))
        payload.read_shared(shared_.slot(slot.name),
                            slot.length == 0 ? std::span<const ParameterRange>(run_.kinds.unshared) : std::span<const ParameterRange>());
  }

  // Returns the frames of a block's messages. Those that are refused have no payload.
  [[nodiscard]] std::vector<OutgoingFrame> frames_of(std::span<const ClientMessage<T>> messages,
                                                     std::span<const std::shared_ptr<const Bytes>> bytes) const {
    std::vector<OutgoingFrame> frames;
    for (std::size_t i = 0; i < messages.size(); ++i) {
      std::vector<std::shared_ptr<const Bytes>> payload;
      if (bytes[i] != nullptr) payload.push_back(bytes[i]);
      frames.push_back(make_frame(header_of(messages[i]), std::move(payload)));
    }
    return frames;
  }

  [[nodiscard]] wire::Header header_of(const ClientMessage<T>& message) const {
    wire::Header header;
    wire::Update& update = *header.mutable_update();
    update.set_round(order_.round);
    update.set_phase(static_cast<std::uint32_t>(phase_));
    update.set_client(message.client);
    update.set_refused(message.refused);
    update.set_work_less_one(message.work - 1);
    return header;
  }

  [[nodiscard]] OutgoingFrame norms_of(std::size_t position) const {
    const ClientMeasures& measured = side_->probe().measures()[position];
    const OperatorError& error = side_->probe().operator_errors()[position];
    wire::Header header;
    wire::Norms& norms = *header.mutable_norms();
    norms.set_round(order_.round);
    norms.set_client(order_.cohort[position]);
    for (const double value : {measured.error, measured.input, measured.compensated, measured.compression_error, error.input, error.error})
      norms.add_values(value);
    return make_frame(header);
  }

  const Cell cell_;
  const std::vector<ClientRange> hosted_;
  ThreadPool pool_;
  ProblemCache cache_;
  std::unique_ptr<FederatedProblem<T>> owned_problem_;
  FederatedProblem<T>& problem_;
  mutable std::vector<std::uint64_t> row_hashes_;  // empty until first use
  RunMethod<T> method_;
  RunSettings run_;
  SharedState<T> shared_;
  std::unique_ptr<ClientSide<T>> side_;
  RoundOrder order_;  // of the round that is open, or was last
  std::unique_ptr<ModelReader<T>> reader_;
  int phase_ = 0;
  std::ptrdiff_t means_ = 0;  // of this phase, that have arrived
};

}  // namespace

std::unique_ptr<HostedClients> host_clients(const std::string& scenario, std::uint64_t run, const std::vector<ClientRange>& clients,
                                            const HostOptions& options) {
  const Preparation preparation("the clients of the run are prepared");
  std::vector<Cell> cells = parse_cells(scenario, "the server's scenario");
  if (cells.size() != 1 || cells.front().hash != run) throw ProtocolError("the scenario that was sent is not the one that was named");
  Cell& cell = cells.front();
  if (cell.scenario.precision == Precision::float32) return std::make_unique<Hosted<float>>(std::move(cell), clients, options);
  return std::make_unique<Hosted<double>>(std::move(cell), clients, options);
}

}  // namespace fl::net
