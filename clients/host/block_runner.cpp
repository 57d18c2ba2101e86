#include "clients/host/block_runner.hpp"

#include <algorithm>
#include <cmath>

#include "clients/host/device_views.hpp"
#include "clients/learning/device_room.hpp"
#include "fl_core/config/key_error.hpp"
#include "fl_core/message/payload_ops.hpp"
#include "fl_core/ops/message_sums.hpp"
#include "fl_core/ops/norms.hpp"
#include "fl_core/ops/row_moves.hpp"
#include "fl_core/round/kept_parameters.hpp"

namespace fl {

namespace {
// Vectors of one block should stay in the inner half of a 2 MiB cache next to the data.
constexpr std::size_t kBlockBytes = 256 * 1024;
constexpr std::uint32_t kMaxBlock = 64;
constexpr std::size_t kMostHeld = 2;  // memories of messages
}  // namespace

template <class T>
BlockRunner<T>::BlockRunner(const BlockRunnerParts<T>& parts, std::size_t max_cohort, BlockRunnerOptions options)
    : parts_(parts),
      plan_(parts.feedback.plan()),
      options_(options),
      measuring_(plan_.error_slot, parts.exchange, options.published_metrics, parts.pool.num_threads(), max_cohort),
      writer_(parts.exchange, parts.pool.num_threads(),
              {.encodes = options.materialise,
               .counts_bits = options.counts_bits,
               .device = options.device,
               .is_out_of_reach = options.device != Device::cpu && options.memory == Device::cuda}),
      on_device_(options.device),
      max_cohort_(max_cohort) {
  const Device memory = options.device == Device::cpu ? Device::cpu : options.memory;
  for (std::size_t v = 0; v < parts.local_update.vectors().size(); ++v) vectors_.emplace_back();
  vectors_.front().in_place_slot = plan_.in_place_slot;
  for (const SlotSpec& slot : parts.local_update.slots())
    if (slot.double_buffered) swapped_.push_back(slot.name);
  if (options.device == Device::cuda && !options.trains_on_cpu && vectors_.size() == 1)
    on_device_.training = make_device_training(parts.local_update, *parts.oracle, options.products, options.kinds);
  if (on_device_.training == nullptr && options.products != MatrixProducts::full)
    throw key_error("matrix_products",
                    "\"" + std::string(to_string(options.products)) + "\" is for clients that train on a GPU; these train on the CPU");
  scratch_.resize(static_cast<std::size_t>(parts.pool.num_threads()));
  for (Scratch& scratch : scratch_)
    for (std::size_t v = 0; v < vectors_.size(); ++v) scratch.vectors.emplace_back(0, memory);
}

// Selects the messages of a wave. Those of a round that begins take the place of the wave's last ones, unless a batch still has them.
template <class T>
void BlockRunner<T>::select(std::size_t wave, bool begins) {
  const Device memory = options_.device == Device::cpu ? Device::cpu : options_.memory;
  if (wave >= waves_.size()) waves_.resize(wave + 1);
  now_ = &waves_[wave];
  for (std::size_t v = now_->vectors.size(); v < vectors_.size(); ++v) now_->vectors.emplace_back(0, memory);
  if (now_->sent != nullptr && !(begins && now_->sent.use_count() > 1)) return;
  const auto gone = [](const std::shared_ptr<CohortMessages<T>>& held) { return held.use_count() == 1; };
  if (const auto again = std::ranges::find_if(held_, gone); again != held_.end()) return std::swap(now_->sent, *again);
  if (now_->sent != nullptr && held_.size() < kMostHeld) held_.push_back(now_->sent);
  now_->sent =
      std::make_shared<CohortMessages<T>>(parts_.exchange.channels.size(), max_cohort_, memory, is_plain() ? Device::pinned : memory);
}

template <class T>
void BlockRunner<T>::resize_blocks(const ClientRound<T>& round) {
  const auto M = static_cast<std::uint32_t>(round.order.cohort.size());
  blocks_.stride = aligned_stride<T>(round.P());
  const auto threads = static_cast<std::uint32_t>(parts_.pool.num_threads());
  std::uint32_t K = options_.block;
  if (K == 0) {
    const bool on_device = options_.device != Device::cpu;
    const std::size_t fits = kBlockBytes / (round.P() * sizeof(T) * vectors_.size());
    K = static_cast<std::uint32_t>(on_device ? device_block<T>(M, vectors_.size(), round.P())
                                             : std::clamp<std::size_t>(fits, 1, kMaxBlock));
    if (threads > 1 && !on_device) K = std::min(K, (M + 2 * threads - 1) / (2 * threads));
  }
  blocks_.size = std::max(1u, std::min(K, M));
  blocks_.count = (M + blocks_.size - 1) / blocks_.size;
}

// Calls work(number of the block, exec) for every block: in parallel on the CPU's threads, or one after another on a GPU.
template <class T>
template <class Work>
void BlockRunner<T>::for_each_block(const Work& work) {
  if (options_.device == Device::cpu)
    parts_.pool.parallel_for(blocks_.count, [&work](std::uint32_t index, const Exec& exec) { work(index, exec); });
  else
    for (std::uint32_t index = 0; index < blocks_.count; ++index) work(index, on_device_.exec);
}

// Calls work(exec of a thread, clients) for the whole block. If the block is on a GPU, the CPU's threads share it.
template <class T>
template <class Work>
void BlockRunner<T>::on_host(const Exec& exec, const ClientBlock<T>& block, const Work& work) {
  if (exec.device == Device::cpu) {
    work(exec, block);
    return;
  }
  const std::uint32_t most = 4 * static_cast<std::uint32_t>(parts_.pool.num_threads()), size = (block.K + most - 1) / most;
  parts_.pool.parallel_for((block.K + size - 1) / size, [&](std::uint32_t part, const Exec& host) {
    work(host, block.slice(part * size, std::min(size, block.K - part * size)));
  });
}

template <class T>
MessageBatch<T> BlockRunner<T>::exchange(const RoundView<T>& view, int phase, std::size_t wave) {
  const ClientRound<T> round{view, parts_.state, parts_.shared};
  select(wave, phase == 0);
  CohortMessages<T>& sent = *now_->sent;
  resize_blocks(round);
  if (phase == 0 && round.order.measure) measuring_.begin_round();
  for (std::size_t c = 0; c < sent.channels.size(); ++c) {
    if (phase == 0) sent.channels[c].takes_part = parts_.exchange.channels[c].is_active(round.order.round);
    sent.channels[c].is_active = parts_.exchange.channels[c].is_active_in(round.order.round, phase);
  }
  writer_.open_phase(round, phase, blocks_.size, sent);
  if (parts_.exchange.num_phases() > 1 && phase == 0)
    for (std::size_t v = 0; v < vectors_.size(); ++v)
      if (vectors_[v].in_place_slot.empty()) now_->vectors[v].resize_discard(round.order.cohort.size() * blocks_.stride);

  if (phase == 0) {
    sent.num_own = round.run.kinds.num_unshared();
    sent.num_averaged = round.run.kinds.num_averaged();
    sent.own.resize_discard(round.order.cohort.size() * sent.num_own);
  }
  if (kept_.are_wanted && phase == 0) kept_.rows.resize_discard(round.order.cohort.size() * round.P());
  for_each_block([&](std::uint32_t index, const Exec& exec) {
    const ClientBlock<T> block = open_block(exec, round, index);
    RoundTimes* times = options_.times == nullptr ? nullptr : &scratch_[static_cast<std::size_t>(exec.thread)].times;
    if (phase == 0) {
      const ScopedTimer timer(seconds_in(times, &RoundTimes::train_s));
      train(exec, round, block);
    }
    const ScopedTimer timer(seconds_in(times, &RoundTimes::compress_s));
    if (phase == 0 && kept_.are_wanted)
      on_host(exec, block, [&](const Exec&, const ClientBlock<T>& part) { keep_updates_of(exec, round, part); });
    if (phase == 0 && parts_.postprocessor.part != nullptr) postprocess(exec, round, block);
    send_block(exec, round, block, phase);
  });
  if (options_.times != nullptr) add_times(*options_.times);
  return batch(round.order.cohort.size());
}

// Bytes say everything that their message says.
template <class T>
MessageBatch<T> BlockRunner<T>::batch(std::size_t cohort) const {
  MessageBatch<T> batch{.messages = {now_->sent->messages.data(), cohort}, .memory = now_->sent};
  if (options_.materialise) return batch;
  batch.contents.resize(now_->sent->channels.size());
  for (std::size_t c = 0; c < batch.contents.size(); ++c)
    for (std::uint32_t i = 0; i < cohort; ++i) batch.contents[c].push_back(payload(c, i));
  for (std::uint32_t i = 0; i < cohort; ++i) batch.averaged.push_back(averaged(i));
  return batch;
}

template <class T>
void BlockRunner<T>::keep_updates(bool keep) {
  kept_.are_wanted = keep;
  if (!keep) kept_.rows = {};
}

template <class T>
void BlockRunner<T>::keep_updates_of(const Exec& exec, const ClientRound<T>& round, const ClientBlock<T>& block) {
  for (std::uint32_t k = 0; k < block.K; ++k) {
    const T *update = block.vectors[0].row(k), work = static_cast<T>(block.work[k]);
    T* kept = kept_.rows.data() + (block.first + k) * round.P();
    if (is_plain()) {
      copy_bytes(kept, Device::cpu, update, options_.memory, round.P() * sizeof(T), exec.stream);
      update = kept;
    }
    std::transform(update, update + round.P(), kept, [work](T u) { return work * u; });
  }
}

template <class T>
void BlockRunner<T>::add_times(RoundTimes& times) {
  for (Scratch& scratch : scratch_) {
    times.train_s += scratch.times.train_s;
    times.compress_s += scratch.times.compress_s;
    scratch.times = {};
  }
}

template <class T>
ClientBlock<T> BlockRunner<T>::open_block(const Exec& exec, const ClientRound<T>& round, std::uint32_t index) {
  Scratch& scratch = scratch_[static_cast<std::size_t>(exec.thread)];
  ClientBlock<T> block;
  block.first = index * blocks_.size;
  block.K = std::min<std::uint32_t>(blocks_.size, static_cast<std::uint32_t>(round.order.cohort.size()) - block.first);
  block.clients = std::span(round.order.cohort).subspan(block.first, block.K);
  for (std::size_t v = 0; v < vectors_.size(); ++v) {
    if (!vectors_[v].in_place_slot.empty()) {
      block.vectors.push_back(round.state.shadow(vectors_[v].in_place_slot, block.first, block.K));
    } else if (parts_.exchange.num_phases() > 1) {
      block.vectors.push_back({now_->vectors[v].data() + block.first * blocks_.stride, nullptr, block.K, round.P(), blocks_.stride});
    } else {
      scratch.vectors[v].resize_discard(blocks_.size * blocks_.stride);
      block.vectors.push_back({scratch.vectors[v].data(), nullptr, block.K, round.P(), blocks_.stride});
    }
  }
  if (const std::size_t U = now_->sent->num_own; U > 0) block.own = {now_->sent->own.data() + block.first * U, nullptr, block.K, U, U};
  for (auto& channel : now_->sent->channels) block.messages.push_back({channel.pointers.data() + block.first, block.K});
  block.work = std::span(now_->sent->work).subspan(block.first, block.K);
  return block;
}

// Copies given vectors to the block's, unless operators read them where they are.
template <class T>
void BlockRunner<T>::take_given(const ClientBlock<T>& block) {
  std::ranges::fill(std::span(now_->sent->refused).subspan(block.first, block.K), std::uint8_t{0});
  if (reads_given()) return;
  const BatchView<const T> given = parts_.given->of(block);
  for (std::uint32_t k = 0; k < block.K; ++k) std::copy_n(given.row(k), given.P, block.vectors[0].row(k));
}

// Fills block.own with the values that clients have before their work: averaged parameters of the model, and those that they keep.
template <class T>
void BlockRunner<T>::open_own(const ClientRound<T>& round, const ClientBlock<T>& block) {
  const ParameterKinds& kinds = round.run.kinds;
  for (std::uint32_t k = 0; k < block.K; ++k) {
    T* kept = gather_ranges(kinds.averaged, round.reference.data(), block.own.row(k));
    if (!kinds.kept.empty()) read_kept(round.state, round.shared, block.clients[k], block.stored(round.state, kKeptValues).row(k), kept);
  }
}

// Fills the block's vectors, on the GPU if possible.
template <class T>
void BlockRunner<T>::train(const Exec& exec, const ClientRound<T>& round, const ClientBlock<T>& block) {
  if (parts_.given != nullptr) return take_given(block);
  if (now_->sent->num_own > 0) open_own(round, block);
  if (on_device_.training != nullptr && on_device_.training->can_start_at(round.run)) {
    Workspace::Frame frame(*exec.workspace);
    ClientBlock<T> there = block;
    for (BatchView<T>& vector : there.vectors) vector = reachable(exec, vector, frame);
    there.start = start_of(round, block, nullptr);
    KeptStates<T> kept = kept_states(parts_.local_update.optimizer(), round, block);
    for (BatchView<T>& rows : kept.stored) rows = reachable(exec, rows, frame);
    for (BatchView<T>& rows : kept.shadow) rows = reachable(exec, rows, frame);
    if (!kept.empty()) {
      kept.stored_count = reachable(exec, kept.stored_count, frame);
      kept.shadow_count = reachable(exec, kept.shadow_count, frame);
    }
    on_device_.training->run(exec, parts_.pool, round, there, kept, std::span(now_->sent->refused).subspan(block.first, block.K));
    return;
  }
  if (is_plain()) return train_and_upload(exec, round, block);
  on_host(exec, block, [&](const Exec& host, const ClientBlock<T>& part) { train_on_cpu(host, round, part); });
}

template <class T>
BatchView<const T> BlockRunner<T>::start_of(const ClientRound<T>& round, const ClientBlock<T>& block, T* room) const {
  const std::size_t P = round.P();
  if (room == nullptr) return shared_view(round.reference.data(), block.K, P);
  const bool has_offset = !round.run.offset_slot.empty();
  const BatchView<T> offset = has_offset ? block.stored(round.state, round.run.offset_slot) : BatchView<T>();
  const T factor = static_cast<T>(round.run.offset_factor);
  for (std::uint32_t k = 0; k < block.K; ++k) {
    T* x = room + k * P;
    std::ranges::copy(round.reference, x);
    for (std::size_t j = 0; has_offset && j < P; ++j) x[j] -= factor * offset.row(k)[j];
    round.run.kinds.for_each_own_range([&](const ParameterRange& range, std::size_t position) {
      if (range.running_rate == 0) std::copy_n(block.own.row(k) + position, range.size(), x + range.begin);
    });
  }
  return {room, nullptr, block.K, P, P};
}

template <class T>
void BlockRunner<T>::train_and_upload(const Exec& exec, const ClientRound<T>& round, const ClientBlock<T>& block) {
  ClientBlock<T> here = block;
  for (std::size_t v = 0; v < here.vectors.size(); ++v) {
    vectors_[v].trained.resize_discard(block.K * blocks_.stride);
    here.vectors[v] = {vectors_[v].trained.data(), nullptr, block.K, round.P(), blocks_.stride};
  }
  on_host(exec, here, [&](const Exec& host, const ClientBlock<T>& part) { train_on_cpu(host, round, part); });
  for (std::size_t v = 0; v < here.vectors.size(); ++v)
    for (std::uint32_t k = 0; k < block.K; ++k)
      upload_bytes(block.vectors[v].row(k), here.vectors[v].row(k), round.P() * sizeof(T), exec.stream);
}

template <class T>
void BlockRunner<T>::train_on_cpu(const Exec& exec, const ClientRound<T>& round, const ClientBlock<T>& block) {
  Workspace::Frame frame(*exec.workspace);
  ClientBlock<T> begun = block;
  begun.start = start_of(round, block, round.run.has_own_starts() ? frame.take<T>(block.K * round.P()) : nullptr);
  parts_.local_update.run(exec, round, *parts_.oracle, begun);
  if (now_->sent->num_own > 0)
    for (const BatchView<T>& vector : block.vectors)
      for (std::uint32_t k = 0; k < block.K; ++k) clear_ranges(round.run.kinds.unshared, vector.row(k));
  refuse_non_finite(block);
}

// Refuses clients whose vectors or own values hold NaN or an infinity. They send nothing, and their vectors become zeros, so that no
// operator reads such numbers.
template <class T>
void BlockRunner<T>::refuse_non_finite(const ClientBlock<T>& block) {
  for (std::uint32_t k = 0; k < block.K; ++k) {
    const auto is_finite_in = [k](const BatchView<T>& vector) { return is_finite(vector.row(k), vector.P); };
    const bool finite =
        std::all_of(block.vectors.begin(), block.vectors.end(), is_finite_in) && (now_->sent->num_own == 0 || is_finite_in(block.own));
    now_->sent->refused[block.first + k] = finite ? 0 : 1;
    if (finite) continue;
    for (const BatchView<T>& vector : block.vectors) std::fill_n(vector.row(k), vector.P, T(0));
  }
}

// Changes the block's vectors where the postprocessor works: where they lie, or on the CPU's threads.
template <class T>
void BlockRunner<T>::postprocess(const Exec& exec, const ClientRound<T>& round, const ClientBlock<T>& block) {
  const auto change = [&](const Exec& where, const ClientBlock<T>& part) {
    for (std::size_t v = 0; v < part.vectors.size(); ++v) parts_.postprocessor.part->on_client(where, round, part, v);
  };
  if (parts_.postprocessor.device == exec.device) {
    Workspace::Frame frame(*exec.workspace);
    ClientBlock<T> there = block;
    for (BatchView<T>& vector : there.vectors) vector = reachable(exec, vector, frame);
    change(exec, there);
    synchronise(exec);
  } else {
    on_host(exec, block, change);
  }
  if (now_->sent->num_own > 0)
    for (const BatchView<T>& vector : block.vectors) clear_unshared(exec, round, vector);
}

template <class T>
void BlockRunner<T>::send_block(const Exec& exec, const ClientRound<T>& round, const ClientBlock<T>& block, int phase) {
  bool has_vector = !reads_given();
  for (std::size_t c = 0; c < now_->sent->channels.size(); ++c)
    if (now_->sent->channels[c].is_active) send_channel(exec, round, block, phase, c, has_vector);
  if (!has_vector && !vectors_.front().in_place_slot.empty()) {  // a slot for the vector itself
    const BatchView<const T> given = parts_.given->of(block);
    for (std::uint32_t k = 0; k < block.K; ++k) std::copy_n(given.row(k), given.P, block.vectors[0].row(k));
  }
  writer_.inspect(exec, block);
  on_host(exec, block, [&](const Exec& host, const ClientBlock<T>& part) { writer_.write(host, round, part); });
}

// Clears the entries of parameters that are not shared, because operators write the state of the others alone.
template <class T>
void BlockRunner<T>::clear_unshared(const Exec& exec, const ClientRound<T>& round, const BatchView<T>& rows) {
  const Exec& where = is_plain() ? exec : host_exec(exec);
  Workspace::Frame frame(*where.workspace);
  const BatchView<T> there = reachable(where, rows, frame);
  for (const ParameterRange& range : round.run.kinds.unshared) clear_entries(where, there, range.begin, range.end);
}

template <class T>
void BlockRunner<T>::send_channel(const Exec& exec, const ClientRound<T>& round, const ClientBlock<T>& block, int phase, std::size_t c,
                                  bool& has_vector) {
  const ExchangeChannel<T>& channel = parts_.exchange.channels[c];
  const bool last = phase == channel.num_phases() - 1;
  const bool measured = round.order.measure && last && &channel == measured_channel(parts_.exchange);
  const Exec& host = host_exec(exec);
  Send<T> send = parts_.feedback.prepare(host, round, block, c);
  if (!last) send.state = {};
  const auto is_vector = [&block](const auto& rows) { return rows.row(0) == block.vectors[0].row(0); };
  for (int a = 0; a < send.input.num_terms && !has_vector; ++a)
    if (is_vector(send.input.term[a])) send.input.term[a] = parts_.given->of(block);
  has_vector = has_vector || (send.state.rule != StateRule::none && is_vector(send.state.out));
  if (is_plain() && send.state.rule == StateRule::zero_where_sent)
    throw Error("a feedback that clears what was sent makes the host keep its input, so the plan's host_walks must say so");
  if (send.state.rule != StateRule::none && now_->sent->num_own > 0) clear_unshared(exec, round, send.state.out);

  if (measured) measuring_.of_inputs(exec, host, round, block, send);
  if (exec.device != Device::cpu)
    for (Payload<T>* message : block.messages[c]) message->place_on(options_.memory);
  compress(exec, round, block, phase, c, send);
  if (measured) measuring_.of_messages(exec, host, round, block, c, send);
  parts_.feedback.after_compress(host, round, block, c, send, parts_.exchange);
  if (measured) measuring_.of_silence(block, c);
}

// Opens the operator's state of the block's clients. An operator that does not run, because everything is sent, keeps its state unchanged.
template <class T>
void BlockRunner<T>::open_memory(const Exec& exec, const ClientRound<T>& round, const ClientBlock<T>& block, const std::string& slot,
                                 bool runs, Senders<T>& senders) {
  if (slot.empty()) return;
  senders.remembered = block.stored(round.state, slot);
  senders.remember = block.shadow(round.state, slot);
  if (runs) return;
  const Exec& where = is_plain() ? exec : host_exec(exec);
  Workspace::Frame frame(*where.workspace);
  copy_rows(where, reachable(where, senders.remembered, frame), reachable(where, senders.remember, frame));
}

// Runs the operator where the block lies, or on the CPU's threads.
template <class T>
void BlockRunner<T>::compress(const Exec& exec, const ClientRound<T>& round, const ClientBlock<T>& block, int phase, std::size_t c,
                              const Send<T>& send) {
  const ExchangeChannel<T>& channel = parts_.exchange.channels[c];
  const CompressContext<T> known = channel.context(round, phase, block.clients);
  Conversation<T> conversation(send.dense ? *channel.dense : *channel.compressor, channel.scope, channel.random_key, {});
  if (!channel.shared_slot.empty())
    conversation.read_shared(round.shared.slot(channel.shared_slot), is_plain() ? Device::pinned : Device::managed);
  conversation.open(known.round, known.steps, phase);
  Senders<T> senders{.clients = block.clients, .input = send.input, .state = send.state};
  open_memory(exec, round, block, channel.client_slot, !send.dense, senders);
  if (send.dense || channel.device == exec.device) {
    Workspace::Frame frame(*exec.workspace);
    senders.input = reachable(exec, senders.input, frame);
    senders.state = reachable(exec, senders.state, frame);
    senders.remembered = reachable(exec, senders.remembered, frame);
    senders.remember = reachable(exec, senders.remember, frame);
    conversation.send(exec, senders, block.messages[c]);
    synchronise(exec);
    return;
  }
  on_host(exec, block, [&](const Exec& host, const ClientBlock<T>& part) {
    conversation.send(host, senders.slice(part.first - block.first, part.K), part.messages[c]);
  });
}

template <class T>
const Payload<T>* BlockRunner<T>::payload(std::size_t channel, std::uint32_t position) const {
  return now_->sent->channels[channel].is_active ? &now_->sent->channels[channel].payloads[position] : nullptr;
}

template <class T>
std::span<const T> BlockRunner<T>::averaged(std::uint32_t position) const {
  const CohortMessages<T>& sent = *now_->sent;
  if (sent.has_averaged[position] == 0) return {};
  return {sent.own.data() + position * sent.num_own, sent.num_averaged};
}

template <class T>
std::span<const T> BlockRunner<T>::kept(std::uint32_t position) const {
  const CohortMessages<T>& sent = *now_->sent;
  if (sent.has_own[position] == 0) return {};
  return {sent.own.data() + position * sent.num_own + sent.num_averaged, sent.num_own - sent.num_averaged};
}

template <class T>
void BlockRunner<T>::acknowledge(const RoundView<T>& view, std::span<const std::uint8_t> delivered, std::size_t wave) {
  const ClientRound<T> round{view, parts_.state, parts_.shared};
  select(wave, false);
  resize_blocks(round);
  for_each_block([&](std::uint32_t index, const Exec& exec) {
    const ClientBlock<T> whole = open_block(exec, round, index);
    for (const StateMove& move : plan_.moves)
      if (now_->sent->channels[move.channel].takes_part) move_state(exec, round, whole, move, delivered);
    on_host(exec, whole, [&](const Exec&, const ClientBlock<T>& block) {
      for (std::uint32_t k = 0; k < block.K; ++k) {
        if (delivered[block.first + k] == 0) continue;
        parts_.feedback.acknowledge(round, block, k, parts_.exchange);
        for (const std::string& slot : swapped_) round.state.swap(slot, block.first + k);
        for (std::size_t c = 0; c < now_->sent->channels.size(); ++c) {
          const std::string& own = parts_.exchange.channels[c].client_slot;
          if (!own.empty() && now_->sent->channels[c].takes_part && !block.messages[c][k]->silent) round.state.swap(own, block.first + k);
        }
        round.state.set_acknowledged(block.clients[k], round.order.round);
      }
    });
  });
}

// Computes state += factor c for the delivered messages, where they lie.
template <class T>
void BlockRunner<T>::move_state(const Exec& exec, const ClientRound<T>& round, const ClientBlock<T>& block, const StateMove& move,
                                std::span<const std::uint8_t> delivered) {
  std::vector<const Payload<T>*> arrived;
  for (std::uint32_t k = 0; k < block.K; ++k)
    arrived.push_back(delivered[block.first + k] != 0 ? block.messages[move.channel][k] : nullptr);
  const Scope& scope = parts_.exchange.channels[move.channel].scope;
  const BatchView<T> rows = block.stored(round.state, move.slot);
  const std::span<const Payload<T>* const> messages(arrived);
  const bool there = std::all_of(arrived.begin(), arrived.end(), [](const Payload<T>* m) { return m == nullptr || lies_on_device(*m); });
  if (exec.device != Device::cpu && there) {
    Workspace::Frame frame(*exec.workspace);
    add_messages(exec, messages, scope, static_cast<T>(move.factor), reachable(exec, rows, frame));
    synchronise(exec);
    return;
  }
  on_host(exec, block, [&](const Exec& host, const ClientBlock<T>& part) {
    const std::uint32_t begin = part.first - block.first;
    add_messages(host, messages.subspan(begin, part.K), scope, static_cast<T>(move.factor), rows.slice(begin, part.K));
  });
}

template class BlockRunner<float>;
template class BlockRunner<double>;

}  // namespace fl
