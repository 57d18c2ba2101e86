#include "clients/host/local_training.hpp"

#include <algorithm>
#include <string>

#include "clients/host/device_views.hpp"
#include "clients/host/host_threads.hpp"
#include "fl_core/config/key_error.hpp"
#include "fl_core/ops/norms.hpp"
#include "fl_core/round/kept_parameters.hpp"

namespace fl {

template <class T>
LocalTraining<T>::LocalTraining(const BlockRunnerParts<T>& parts, const BlockRunnerOptions& options, bool reads_given)
    : parts_(parts), options_(options), reads_given_(reads_given), trained_(parts.local_update.vectors().size()) {
  if (options.device == Device::cuda && !options.trains_on_cpu && trained_.size() == 1)
    on_device_ = make_device_training(parts.local_update, *parts.oracle, options.products, options.kinds);
  if (on_device_ == nullptr && options.products != MatrixProducts::full)
    throw key_error("matrix_products",
                    "\"" + std::string(to_string(options.products)) + "\" is for clients that train on a GPU; these train on the CPU");
}

// Copies given vectors to the block's, unless operators read them where they are.
template <class T>
void LocalTraining<T>::take_given(const ClientBlock<T>& block) {
  std::ranges::fill(std::span(sent_->refused).subspan(block.first, block.K), std::uint8_t{0});
  if (reads_given_) return;
  const BatchView<const T> given = parts_.given->of(block);
  for (std::uint32_t k = 0; k < block.K; ++k) std::copy_n(given.row(k), given.P, block.vectors[0].row(k));
}

// Fills block.own with the values that clients have before their work: averaged parameters of the model, and those that they keep.
template <class T>
void LocalTraining<T>::open_own(const ClientRound<T>& round, const ClientBlock<T>& block) {
  const ParameterKinds& kinds = round.run.kinds;
  for (std::uint32_t k = 0; k < block.K; ++k) {
    T* kept = gather_ranges(kinds.averaged, round.reference.data(), block.own.row(k));
    if (!kinds.kept.empty()) read_kept(round.state, round.shared, block.clients[k], block.stored(round.state, kKeptValues).row(k), kept);
  }
}

// Fills the block's vectors, on the GPU if possible.
template <class T>
void LocalTraining<T>::run(const Exec& exec, const ClientRound<T>& round, ClientBlock<T>& block) {
  if (parts_.given != nullptr) return take_given(block);
  if (sent_->num_own > 0) open_own(round, block);
  if (on_device_ != nullptr && on_device_->can_start_at(round.run)) {
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
    on_device_->run(exec, parts_.pool, round, there, kept, std::span(sent_->refused).subspan(block.first, block.K));
    return;
  }
  if (exec.device == Device::cpu) return train_on_cpu(exec, round, block);
  if (options_.is_plain()) return train_and_upload(exec, round, block);
  on_host(parts_.pool, exec, block, [&](const Exec& host, ClientBlock<T> part) { train_on_cpu(host, round, part); });
}

template <class T>
BatchView<const T> LocalTraining<T>::start_of(const ClientRound<T>& round, const ClientBlock<T>& block, T* room) const {
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
void LocalTraining<T>::train_and_upload(const Exec& exec, const ClientRound<T>& round, const ClientBlock<T>& block) {
  const std::size_t stride = aligned_stride<T>(round.P());
  ClientBlock<T> here = block;
  for (std::size_t v = 0; v < here.vectors.size(); ++v) {
    trained_[v].resize_discard(block.K * stride);
    here.vectors[v] = {trained_[v].data(), nullptr, block.K, round.P(), stride};
  }
  on_host(parts_.pool, exec, here, [&](const Exec& host, ClientBlock<T> part) { train_on_cpu(host, round, part); });
  for (std::size_t v = 0; v < here.vectors.size(); ++v)
    for (std::uint32_t k = 0; k < block.K; ++k)
      upload_bytes(block.vectors[v].row(k), here.vectors[v].row(k), round.P() * sizeof(T), exec.stream);
}

template <class T>
void LocalTraining<T>::train_on_cpu(const Exec& exec, const ClientRound<T>& round, ClientBlock<T>& block) {
  Workspace::Frame frame(*exec.workspace);
  block.start = start_of(round, block, round.run.has_own_starts() ? frame.take<T>(block.K * round.P()) : nullptr);
  parts_.local_update.run(exec, round, *parts_.oracle, block);
  block.start = {};
  if (sent_->num_own > 0)
    for (const BatchView<T>& vector : block.vectors)
      for (std::uint32_t k = 0; k < block.K; ++k) clear_ranges(round.run.kinds.unshared, vector.row(k));
  refuse_non_finite(block);
}

// Refuses clients whose vectors or own values hold NaN or an infinity. They send nothing, and their vectors become zeros, so that no
// operator reads such numbers.
template <class T>
void LocalTraining<T>::refuse_non_finite(const ClientBlock<T>& block) {
  for (std::uint32_t k = 0; k < block.K; ++k) {
    const auto is_finite_in = [k](const BatchView<T>& vector) { return is_finite(vector.row(k), vector.P); };
    const bool finite =
        std::all_of(block.vectors.begin(), block.vectors.end(), is_finite_in) && (sent_->num_own == 0 || is_finite_in(block.own));
    sent_->refused[block.first + k] = finite ? 0 : 1;
    if (finite) continue;
    for (const BatchView<T>& vector : block.vectors) std::fill_n(vector.row(k), vector.P, T(0));
  }
}

// Changes the block's vectors where the postprocessor works: where they lie, or on the CPU's threads.
template <class T>
void LocalTraining<T>::postprocess(const Exec& exec, const ClientRound<T>& round, const ClientBlock<T>& block) {
  if (parts_.postprocessor.part == nullptr) return;
  const auto change = [&](const Exec& there, const ClientBlock<T>& part) {
    for (std::size_t v = 0; v < part.vectors.size(); ++v) parts_.postprocessor.part->on_client(there, round, part, v);
  };
  if (parts_.postprocessor.device == exec.device) {
    Workspace::Frame frame(*exec.workspace);
    ClientBlock<T> there = block;
    for (BatchView<T>& vector : there.vectors) vector = reachable(exec, vector, frame);
    change(exec, there);
    synchronise(exec);
  } else {
    on_host(parts_.pool, exec, block, change);
  }
  const Exec& where = exec.device == Device::cpu || options_.is_plain() ? exec : parts_.pool.exec(0);
  if (sent_->num_own > 0)
    for (const BatchView<T>& vector : block.vectors) clear_ranges_of<T>(where, round.run.kinds.unshared, vector);
}

template class LocalTraining<float>;
template class LocalTraining<double>;

}  // namespace fl
