#include "clients/learning/oracle.hpp"

#include <algorithm>

#include "clients/learning/gradient_failure.hpp"
#include "fl_core/config/key_error.hpp"

namespace fl {

void describe(Schema& s, SamplingOptions& o) {
  s.field("batch", o.batch, "rows per stochastic gradient; 0 = all rows of the client").at_least(0).at_most(1 << 24).unit("rows");
  s.field("replacement", o.replacement, "rows of a batch are drawn with replacement");
  s.field("sample_file", o.sample_file,
          "CSV file with the rows of stochastic gradients, which are then not drawn: the columns round,client,step,rows that `fedbits run "
          "--save-samples` writes; or, without a header, line r, column i = row of client i in round r (batch = 1)");
}

template <class T>
GradientOracle<T>::GradientOracle(const Model<T>& model, const std::vector<Shard>& shards, SamplingOptions sampling, std::uint64_t seed,
                                  std::uint32_t num_rounds, std::span<const std::uint64_t> row_counts)
    : model_(model),
      shards_(shards),
      sizes_(shards, row_counts),
      sampling_(std::move(sampling)),
      seed_(seed),
      key_(hash64(seed, static_cast<std::uint64_t>(Purpose::minibatch))),
      epoch_key_(hash64(seed, static_cast<std::uint64_t>(Purpose::epoch))),
      inner_key_(hash64(seed, static_cast<std::uint64_t>(Purpose::inside_model))),
      model_size_(model.layers().size()),
      least_rows_(model.minibatch_needs(0).least_rows),
      running_averages_(running_averages_of(model.layers())) {
  if (!sampling_.sample_file.empty()) {
    replay_ = std::make_unique<SampleFile>(sampling_.sample_file, shards_, num_rounds, sizes_);
    if (!replay_->has_steps() && sampling_.batch > 1)
      throw key_error("local.batch", "a sample_file with a column per client gives one row per round, batch must be 1");
    if (!replay_->has_steps()) sampling_.batch = 1;
  }
  if (sampling_.batch > 0 && !sampling_.replacement && !replay_) {
    for (std::size_t i = 0; i < shards_.size(); ++i)
      if (sizes_[i] < static_cast<std::size_t>(sampling_.batch))
        throw key_error("local.batch", std::to_string(sampling_.batch) + " rows without replacement, but client " + std::to_string(i) +
                                           " has " + std::to_string(sizes_[i]));
  }
}

template <class T>
std::span<const std::uint32_t> GradientOracle<T>::draw(std::uint32_t client, const Sample& sample, std::uint32_t* out) const {
  if (sample.full) return shards_[client];
  const std::span<const std::uint32_t> rows = replay_     ? replay_->rows(client, sample.round, sample.step)
                                              : is_full() ? shards_[client]
                                                          : draw_anew(client, sample, out);
  record(client, sample, rows);
  return rows;
}

template <class T>
std::span<const std::uint32_t> GradientOracle<T>::draw_anew(std::uint32_t client, const Sample& sample, std::uint32_t* out) const {
  const Shard& shard = shards_[client];
  const auto batch = static_cast<std::size_t>(sampling_.batch);
  const RandomStream stream(key_, client, sample.round, sample.step);
  // A word scaled to 0 .. bound-1 (multiply-shift).
  const auto below = [&stream](std::uint64_t index, std::uint64_t bound) {
    return static_cast<std::uint32_t>((static_cast<std::uint64_t>(stream.bits(index)) * bound) >> 32);
  };
  if (sampling_.replacement) {
    for (std::size_t b = 0; b < batch; ++b) out[b] = shard[below(b, shard.size())];
    return {out, batch};
  }
  // Floyd's algorithm: a uniform subset of local row numbers, then sorted so that the sum has one order.
  for (std::size_t b = 0; b < batch; ++b) {
    const auto last = static_cast<std::uint32_t>(shard.size() - batch + b);
    const std::uint32_t candidate = below(b, last + 1ull);
    out[b] = std::find(out, out + b, candidate) == out + b ? candidate : last;
  }
  std::sort(out, out + batch);
  for (std::size_t b = 0; b < batch; ++b) out[b] = shard[out[b]];
  return {out, batch};
}

template <class T>
std::size_t GradientOracle<T>::most_rows() const {
  if (replay_) return replay_->most_rows();
  if (!is_full()) return batch();
  std::size_t most = 0;
  for (const Shard& shard : shards_) most = std::max(most, shard.size());
  return most;
}

static std::string round_text(const Sample& sample) { return "round " + std::to_string(sample.round); }

template <class T>
void GradientOracle<T>::gradient(const Exec& exec, BatchView<const T> x, std::span<const std::uint32_t> clients, const Sample& sample,
                                 BatchView<T> gradient, double* loss) const {
  Workspace::Frame frame(*exec.workspace);
  const auto batch = static_cast<std::size_t>(sampling_.batch);
  auto* drawn = frame.take<std::uint32_t>(clients.size() * batch + 1);
  auto* rows = frame.take<std::span<const std::uint32_t>>(clients.size());
  for (std::size_t k = 0; k < clients.size(); ++k) rows[k] = draw(clients[k], sample, drawn + k * batch);
  for (std::size_t k = 0; k < clients.size(); ++k) check_rows(clients[k], rows[k].size());
  if (sample.full)
    return naming_failures(clients, round_text(sample), [&] {
      if (running_averages_.empty())
        model_.gradient(exec, x, {rows, clients.size()}, gradient, loss);
      else
        model_.stochastic_gradient(exec, x, {{rows, clients.size()}, {}}, gradient, loss);
    });
  auto* random = frame.take<RandomStream>(clients.size());
  for (std::size_t k = 0; k < clients.size(); ++k) random[k] = inner_random(clients[k], sample);
  naming_failures(clients, round_text(sample), [&] {
    model_.stochastic_gradient(exec, x, {{rows, clients.size()}, {random, clients.size()}}, gradient, loss);
  });
}

template <class T>
void GradientOracle<T>::gradient_on(const Exec& exec, const T* x, std::uint32_t client, const Sample& sample,
                                    std::span<const std::uint32_t> rows, T* gradient) const {
  check_rows(client, rows.size());
  const std::size_t P = model_size_;
  const RandomStream random = inner_random(client, sample);
  naming_failures({&client, 1}, round_text(sample), [&] {
    model_.stochastic_gradient(exec, shared_view(x, 1, P), {{&rows, 1}, {&random, 1}}, {gradient, nullptr, 1, P, P}, nullptr);
  });
}

template <class T>
void GradientOracle<T>::check_rows(std::uint32_t client, std::size_t rows) const {
  if (rows > 0 && rows < least_rows_)
    throw key_error("local.batch", "a minibatch of client " + std::to_string(client) + " has " + std::to_string(rows) +
                                       " row, one value per channel for batch_norm, which has no variance; it needs " +
                                       std::to_string(least_rows_) + " or more");
}

template <class T>
void GradientOracle<T>::shuffle(std::uint32_t client, std::uint32_t round, std::uint32_t epoch, std::uint32_t* out) const {
  const Shard& shard = shards_[client];
  std::copy(shard.begin(), shard.end(), out);
  RandomSequence(RandomStream(epoch_key_, client, round, epoch)).shuffle(out, out + shard.size());
}

template <class T>
LocalSteps<T>::LocalSteps(Workspace::Frame& frame, const GradientOracle<T>& oracle, std::uint32_t client, std::uint32_t round,
                          const LocalWork& work)
    : oracle_(oracle), client_(client), round_(round) {
  const bool in_epochs = work.epochs > 0;
  if (in_epochs && oracle.replays_rounds())
    throw key_error("local.sample_file",
                    "a file with a column per client gives one row per round, and epochs take all of them; use the "
                    "form with the columns round,client,step,rows");
  const auto amount = static_cast<std::uint64_t>(oracle.amount(work, client, round));
  const std::size_t rows = oracle.shards()[client].size(), batch = oracle.is_full() ? rows : oracle.batch();
  if (in_epochs) per_epoch_ = static_cast<std::uint32_t>((rows + batch - 1) / batch);
  const std::uint64_t count = in_epochs ? amount * per_epoch_ : amount;
  if (count > kMostLocalSteps)
    throw key_error("local.epochs", "client " + std::to_string(client) + " would take " + std::to_string(count) +
                                        " local steps in a round, at most " + std::to_string(kMostLocalSteps) + " are possible");
  count_ = static_cast<std::uint32_t>(count);
  drawn_ = frame.take<std::uint32_t>(in_epochs ? rows : batch);
}

template <class T>
std::span<const std::uint32_t> LocalSteps<T>::rows(std::uint32_t step) {
  const Sample sample{.round = round_, .step = step};
  if (per_epoch_ == 0 || oracle_.replays_steps()) return oracle_.draw(client_, sample, drawn_);
  const std::uint32_t at = step % per_epoch_;
  if (at == 0) oracle_.shuffle(client_, round_, step / per_epoch_, drawn_);
  const std::size_t rows = oracle_.shards()[client_].size(), batch = oracle_.is_full() ? rows : oracle_.batch();
  const std::span<const std::uint32_t> taken{drawn_ + at * batch, std::min(batch, rows - at * batch)};
  oracle_.record(client_, sample, taken);
  return taken;
}
template class LocalSteps<float>;
template class LocalSteps<double>;

template class GradientOracle<float>;
template class GradientOracle<double>;

}  // namespace fl
