#include "clients/host/block_runner.hpp"

#include <algorithm>

#include "clients/host/device_views.hpp"
#include "clients/host/host_threads.hpp"
#include "fl_core/message/payload_ops.hpp"
#include "fl_core/ops/message_sums.hpp"
#include "fl_core/ops/row_moves.hpp"

namespace fl {

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
               .is_out_of_reach = options.is_plain()}),
      training_(parts, options, reads_given()),
      on_device_(options.device),
      messages_(parts.exchange.channels.size(), max_cohort, options.place(), options.is_plain() ? Device::pinned : options.place()),
      vectors_(form_of_blocks()),
      times_(static_cast<std::size_t>(parts.pool.num_threads())) {
  for (const SlotSpec& slot : parts.local_update.slots())
    if (slot.double_buffered) swapped_.push_back(slot.name);
}

// The first local vector may be computed in the row of a slot.
template <class T>
BlockForm BlockRunner<T>::form_of_blocks() const {
  BlockForm form{.block = options_.block,
                 .num_threads = parts_.pool.num_threads(),
                 .memory = options_.place(),
                 .is_on_device = options_.device != Device::cpu,
                 .outlives_blocks = parts_.exchange.num_phases() > 1};
  form.in_place_slots.resize(parts_.local_update.vectors().size());
  form.in_place_slots.front() = plan_.in_place_slot;
  return form;
}

// Calls work(number of the block, exec) for every block: in parallel on the CPU's threads, or one after another on a GPU.
template <class T>
template <class Work>
void BlockRunner<T>::for_each_block(const Work& work) {
  if (options_.device == Device::cpu)
    parts_.pool.parallel_for(vectors_.num_blocks(), [&work](std::uint32_t index, const Exec& exec) { work(index, exec); });
  else
    for (std::uint32_t index = 0; index < vectors_.num_blocks(); ++index) work(index, on_device_.exec);
}

template <class T>
MessageBatch<T> BlockRunner<T>::exchange(const RoundView<T>& view, int phase, std::size_t wave) {
  const ClientRound<T> round{view, parts_.state, parts_.shared};
  messages_.select(wave, phase == 0);
  vectors_.divide(view, wave, phase == 0);
  CohortMessages<T>& sent = messages_.now();
  training_.write_to(sent);
  if (phase == 0 && round.order.measure) measuring_.begin_round();
  for (std::size_t c = 0; c < sent.channels.size(); ++c) {
    if (phase == 0) sent.channels[c].takes_part = parts_.exchange.channels[c].is_active(round.order.round);
    sent.channels[c].is_active = parts_.exchange.channels[c].is_active_in(round.order.round, phase);
  }
  writer_.open_phase(round, phase, vectors_.block_size(), sent);
  if (phase == 0) {
    sent.num_own = round.run.kinds.num_unshared();
    sent.num_averaged = round.run.kinds.num_averaged();
    sent.own.resize_discard(round.order.cohort.size() * sent.num_own);
  }
  if (kept_.are_wanted && phase == 0) kept_.rows.resize_discard(round.order.cohort.size() * round.P());
  for_each_block([&](std::uint32_t index, const Exec& exec) {
    ClientBlock<T> block = vectors_.open(exec, round, index, sent);
    RoundTimes* times = options_.times == nullptr ? nullptr : &times_[static_cast<std::size_t>(exec.thread)];
    if (phase == 0) {
      const ScopedTimer timer(seconds_in(times, &RoundTimes::train_s));
      training_.run(exec, round, block);
    }
    const ScopedTimer timer(seconds_in(times, &RoundTimes::compress_s));
    if (phase == 0 && kept_.are_wanted)
      on_host(parts_.pool, exec, block, [&](const Exec&, const ClientBlock<T>& part) { keep_updates_of(exec, round, part); });
    if (phase == 0) training_.postprocess(exec, round, block);
    send_block(exec, round, block, phase);
  });
  if (options_.times != nullptr) add_times(*options_.times);
  return batch(round.order.cohort.size());
}

// Bytes say everything that their message says.
template <class T>
MessageBatch<T> BlockRunner<T>::batch(std::size_t cohort) const {
  MessageBatch<T> batch{.messages = {messages_.now().messages.data(), cohort}, .memory = messages_.memory()};
  if (options_.materialise) return batch;
  batch.contents.resize(messages_.now().channels.size());
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
    if (options_.is_plain()) {
      copy_bytes(kept, Device::cpu, update, options_.memory, round.P() * sizeof(T), exec.stream);
      update = kept;
    }
    std::transform(update, update + round.P(), kept, [work](T u) { return work * u; });
  }
}

template <class T>
void BlockRunner<T>::add_times(RoundTimes& times) {
  for (RoundTimes& of_thread : times_) {
    times.train_s += of_thread.train_s;
    times.compress_s += of_thread.compress_s;
    of_thread = {};
  }
}

template <class T>
void BlockRunner<T>::send_block(const Exec& exec, const ClientRound<T>& round, const ClientBlock<T>& block, int phase) {
  bool has_vector = !reads_given();
  const CohortMessages<T>& sent = messages_.now();
  for (std::size_t c = 0; c < sent.channels.size(); ++c)
    if (sent.channels[c].is_active) send_channel(exec, round, block, phase, c, has_vector);
  if (!has_vector && !vectors_.first_slot().empty()) {  // a slot for the vector itself
    const BatchView<const T> given = parts_.given->of(block);
    for (std::uint32_t k = 0; k < block.K; ++k) std::copy_n(given.row(k), given.P, block.vectors[0].row(k));
  }
  writer_.inspect(exec, block);
  on_host(parts_.pool, exec, block, [&](const Exec& host, const ClientBlock<T>& part) { writer_.write(host, round, part); });
}

// Clears the entries of parameters that are not shared, because operators write the state of the others alone.
template <class T>
void BlockRunner<T>::clear_unshared(const Exec& exec, const ClientRound<T>& round, const BatchView<T>& rows) {
  clear_ranges_of<T>(options_.is_plain() ? exec : host_exec(exec), round.run.kinds.unshared, rows);
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
  if (options_.is_plain() && send.state.rule == StateRule::zero_where_sent)
    throw Error("a feedback that clears what was sent makes the host keep its input, so the plan's host_walks must say so");
  if (send.state.rule != StateRule::none && messages_.now().num_own > 0) clear_unshared(exec, round, send.state.out);

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
  const Exec& where = options_.is_plain() ? exec : host_exec(exec);
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
    conversation.read_shared(round.shared.slot(channel.shared_slot), options_.is_plain() ? Device::pinned : Device::managed);
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
  on_host(parts_.pool, exec, block, [&](const Exec& host, const ClientBlock<T>& part) {
    conversation.send(host, senders.slice(part.first - block.first, part.K), part.messages[c]);
  });
}

template <class T>
const Payload<T>* BlockRunner<T>::payload(std::size_t channel, std::uint32_t position) const {
  const auto& of = messages_.now().channels[channel];
  return of.is_active ? &of.payloads[position] : nullptr;
}

template <class T>
std::span<const T> BlockRunner<T>::averaged(std::uint32_t position) const {
  const CohortMessages<T>& sent = messages_.now();
  if (sent.has_averaged[position] == 0) return {};
  return {sent.own.data() + position * sent.num_own, sent.num_averaged};
}

template <class T>
std::span<const T> BlockRunner<T>::kept(std::uint32_t position) const {
  const CohortMessages<T>& sent = messages_.now();
  if (sent.has_own[position] == 0) return {};
  return {sent.own.data() + position * sent.num_own + sent.num_averaged, sent.num_own - sent.num_averaged};
}

template <class T>
void BlockRunner<T>::acknowledge(const RoundView<T>& view, std::span<const std::uint8_t> delivered, std::size_t wave) {
  const ClientRound<T> round{view, parts_.state, parts_.shared};
  messages_.select(wave, false);
  vectors_.divide(view, wave, false);
  CohortMessages<T>& sent = messages_.now();
  for_each_block([&](std::uint32_t index, const Exec& exec) {
    const ClientBlock<T> whole = vectors_.open(exec, round, index, sent);
    for (const StateMove& move : plan_.moves)
      if (sent.channels[move.channel].takes_part) move_state(exec, round, whole, move, delivered);
    on_host(parts_.pool, exec, whole, [&](const Exec&, const ClientBlock<T>& block) {
      for (std::uint32_t k = 0; k < block.K; ++k) {
        if (delivered[block.first + k] == 0) continue;
        parts_.feedback.acknowledge(round, block, k, parts_.exchange);
        for (const std::string& slot : swapped_) round.state.swap(slot, block.first + k);
        for (std::size_t c = 0; c < sent.channels.size(); ++c) {
          const std::string& own = parts_.exchange.channels[c].client_slot;
          if (!own.empty() && sent.channels[c].takes_part && !block.messages[c][k]->silent) round.state.swap(own, block.first + k);
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
  on_host(parts_.pool, exec, block, [&](const Exec& host, const ClientBlock<T>& part) {
    const std::uint32_t begin = part.first - block.first;
    add_messages(host, messages.subspan(begin, part.K), scope, static_cast<T>(move.factor), rows.slice(begin, part.K));
  });
}

template class BlockRunner<float>;
template class BlockRunner<double>;

}  // namespace fl
