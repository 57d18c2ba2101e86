#include "study/driver/simulation.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "fl_core/config/error.hpp"
#include "fl_core/config/stopping.hpp"
#include "fl_core/state/checksum.hpp"
#include "scenarios/experiment/experiment.hpp"
#include "scenarios/file/sweep.hpp"
#include "scenarios/plugins/plugins.hpp"
#include "study/driver/cell_player.hpp"
#include "study/driver/study_title.hpp"
#include "study/driver/tuning_report.hpp"
#include "study/machine/folder_lock.hpp"
#include "study/machine/machine.hpp"
#include "study/machine/machine_share.hpp"
#include "study/results/damaged_runs.hpp"
#include "study/results/store_folders.hpp"

namespace fl {

namespace fs = std::filesystem;

struct Simulation::Impl {
  StudySettings settings;
  Device device = Device::cpu;
  std::vector<Plugin> plugins;
  std::vector<Cell> cells;
  std::string folder;
  MachineShare share;
  std::optional<RunStore> store;

  [[nodiscard]] const PlayInParallel* parallel() const { return std::get_if<PlayInParallel>(&settings.play); }
  [[nodiscard]] const PlayInTurn* in_turn() const { return std::get_if<PlayInTurn>(&settings.play); }
  [[nodiscard]] bool is_tuned() const { return std::ranges::any_of(cells, &Cell::needs_tuning); }
  [[nodiscard]] std::string hash(std::size_t cell) const { return to_hex(cells[cell].hash); }
  [[nodiscard]] fs::path checkpoints() const { return checkpoint_folder(folder); }

  void keep_shard();
  [[nodiscard]] std::unique_ptr<CellPlayer> player() const;
  void open_store(StudyEvents& events);
  [[nodiscard]] std::unique_ptr<FolderLock> lock() const;
  [[nodiscard]] bool tune(StudyEvents& events, const StopToken& stop);
  [[nodiscard]] bool is_stored(std::size_t cell, StudyEvents& events) const;
  [[nodiscard]] std::vector<std::size_t> pending(StudyEvents& events) const;
  void tell_stored(const std::vector<std::size_t>& pending, StudyEvents& events) const;
  void remove_pages() const;
  [[nodiscard]] PlayRoom room(StudyEvents& events, const StopToken& stop);
  [[nodiscard]] StudyOutcome outcome(StudyEvents& events, bool is_stopped) const;
};

// ---- opening

namespace {

[[nodiscard]] std::string folder_of(const StudySettings& settings, const std::vector<Cell>& cells) {
  const std::string out = settings.out.empty() ? default_folder(cells).string() : settings.out;
  const auto* parallel = std::get_if<PlayInParallel>(&settings.play);
  return parallel == nullptr ? out : shard_folder(out, parallel->shard);
}

[[nodiscard]] MachineShare share_of(const StudySettings& settings) {
  if (const auto* parallel = std::get_if<PlayInParallel>(&settings.play)) return share_in_parallel(settings, *parallel);
  return share_in_turn(settings, std::get<PlayInTurn>(settings.play));
}

}  // namespace

std::vector<Cell> cells_of(const StudySettings& settings, const DataCatalog* catalog) {
  return settings.text ? read_cells(*settings.text, settings.settings, catalog) : read_cells(settings.file, settings.settings, catalog);
}

Simulation Simulation::open(StudySettings settings) {
  auto impl = std::make_unique<Impl>();
  impl->settings = std::move(settings);
  impl->device = choose_device(impl->settings.device);
  impl->plugins = load_plugins(impl->settings.plugins);
  const DataCatalog catalog(impl->settings.data);
  impl->cells = cells_of(impl->settings, &catalog);
  impl->folder = folder_of(impl->settings, impl->cells);
  impl->share = share_of(impl->settings);
  if (!impl->is_tuned()) impl->keep_shard();
  return Simulation(std::move(impl));
}

Simulation::Simulation(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Simulation::Simulation(Simulation&&) noexcept = default;
Simulation& Simulation::operator=(Simulation&&) noexcept = default;
Simulation::~Simulation() = default;

const std::vector<Cell>& Simulation::cells() const { return impl_->cells; }
std::size_t Simulation::size() const { return impl_->cells.size(); }
std::string Simulation::hash(std::size_t cell) const { return impl_->hash(cell); }
std::uint64_t Simulation::rounds(std::size_t cell) const { return static_cast<std::uint64_t>(impl_->cells[cell].scenario.rounds); }
std::string Simulation::title(std::size_t cell) const { return title_of(impl_->cells[cell], cell + 1, impl_->cells.size()); }
const std::string& Simulation::folder() const { return impl_->folder; }
const RunStore& Simulation::store() const { return *impl_->store; }

// Which runs belong to a shard is known when their values are.
void Simulation::Impl::keep_shard() {
  if (parallel() == nullptr || !parallel()->shard) return;
  std::erase_if(cells, [shard = *parallel()->shard](const Cell& cell) { return !shard.holds(cell.hash); });
}

// ---- running

std::unique_ptr<CellPlayer> Simulation::Impl::player() const {
  const OpenStudy open{.settings = settings, .cells = cells, .folder = folder, .device = device, .share = share};
  return parallel() != nullptr ? player_in_parallel(open) : player_in_turn(open);
}

void Simulation::check() { impl_->player()->check(); }

StudyOutcome Simulation::run(StudyEvents& events, const StopToken& stop) {
  const StopScope scope(stop, [&events](const std::string& text) { events.preparing(text); });
  std::unique_ptr<CellPlayer> player = impl_->player();
  player->check();  // a study that is rejected creates no folder
  impl_->open_store(events);
  const std::unique_ptr<FolderLock> lock = impl_->lock();
  refuse_other_plan(*impl_->store, impl_->cells);
  if (impl_->is_tuned()) {
    player.reset();
    if (!impl_->tune(events, stop)) return {.end = StudyEnd::stopped_while_tuning};
    player = impl_->player();
    player->check();
  }
  impl_->remove_pages();
  const std::vector<std::size_t> pending = impl_->pending(events);
  const int workers = player->fit(pending, events);
  events.begin(*this, pending, workers);
  impl_->tell_stored(pending, events);
  player->play(pending, impl_->room(events, stop));
  return impl_->outcome(events, stop.is_asked());
}

// Opens the store, and checks before the first round that results can be written there. Workers of a sweep hold the lock with it.
void Simulation::Impl::open_store(StudyEvents& events) {
  store.emplace(RunStore::open(folder, RunStore::Mode::create));
  for (const std::string& text : rescue_notes(*store)) events.note(Note::warning, text);
  store->probe_writable();
}

std::unique_ptr<FolderLock> Simulation::Impl::lock() const {
  return parallel() != nullptr ? std::make_unique<FolderLock>(folder) : nullptr;
}

// Returns whether the values are found, which a request to stop prevents.
bool Simulation::Impl::tune(StudyEvents& events, const StopToken& stop) {
  events.tuning();
  tune_study(cells, folder, settings.data, share, events, stop);
  if (stop.is_asked()) {
    events.note(Note::warning,
                "interrupted while tuning: the values found so far are kept in " + tuning_folder(folder).string() + "; --resume continues");
    return false;
  }
  keep_shard();
  return true;
}

void Simulation::Impl::remove_pages() const {
  remove_leftover_pages(checkpoints(), settings.state_folder.empty() ? checkpoints() : fs::path(settings.state_folder));
}

// Returns whether a repetition of the run would end the same way, and write the same files: it is finished, made by the same plug-ins, and
// its files exist.
bool Simulation::Impl::is_stored(std::size_t cell, StudyEvents& events) const {
  const std::string run = hash(cell);
  std::error_code ignored;
  if (!has_whole(*store, run, [&events](const std::string& text) { events.note(Note::warning, text); })) return false;
  if (!settings.models.folder.empty() && !fs::exists(settings.models.file_of(run), ignored)) return false;
  if (in_turn() != nullptr && !in_turn()->samples.empty() && !fs::exists(sample_file_of(in_turn()->samples, run), ignored)) return false;
  const std::vector<PluginUse> used = plugins_used(cells[cell].scenario, plugins);
  if (store->record(run).plugins == used) return true;
  events.note(Note::warning, run + " is in the store, made by another build of its plug-ins: it is repeated");
  return false;
}

// Returns the runs that are not stored, in their order. Refuses to lose what was begun.
std::vector<std::size_t> Simulation::Impl::pending(StudyEvents& events) const {
  std::vector<std::size_t> pending;
  for (std::size_t i = 0; i < cells.size(); ++i)
    if (settings.again || !is_stored(i, events)) pending.push_back(i);
  if (settings.again || settings.checkpoints.resume || pending.empty()) return pending;
  const std::size_t finished = cells.size() - pending.size();
  if (parallel() != nullptr && finished > 0)
    throw ConfigError(folder + " holds " + std::to_string(finished) + " of the " + std::to_string(cells.size()) +
                      " runs already: --resume runs the others, --again repeats all of them");
  refuse_begun_runs(*store, cells, folder);
  return pending;
}

// A process that was killed may have left a checkpoint of a run that it had stored.
void Simulation::Impl::tell_stored(const std::vector<std::size_t>& pending, StudyEvents& events) const {
  for (std::size_t i = 0, next = 0; i < cells.size(); ++i) {
    if (next < pending.size() && pending[next] == i) {
      ++next;
      continue;
    }
    remove_checkpoint({.file = checkpoints() / (hash(i) + ".checkpoint"), .pages = settings.state_folder});
    events.note(Note::detail, hash(i) + " is in the store: shown, not repeated (--again repeats it)");
    events.stored(i, store->record(hash(i)));
  }
}

PlayRoom Simulation::Impl::room(StudyEvents& events, const StopToken& stop) {
  return {.store = *store, .events = events, .stop = stop, .describe = [this](std::size_t cell, RunRecord& record) {
            describe_machine(record, device);
            record.plugins = plugins_used(cells[cell].scenario, plugins);
          }};
}

StudyOutcome Simulation::Impl::outcome(StudyEvents& events, bool is_stopped) const {
  StudyOutcome outcome;
  for (const Cell& cell : cells)
    if (const std::string run = to_hex(cell.hash); store->holds(run)) outcome.records.push_back(store->record(run));
  const auto done = std::ranges::count(outcome.records, RunStatus::done, &RunRecord::status);
  if (!is_stopped && static_cast<std::size_t>(done) < cells.size()) outcome.end = StudyEnd::incomplete;
  if (!is_stopped) return outcome;
  outcome.end = StudyEnd::stopped;
  const auto finished = std::ranges::count_if(outcome.records, [](const RunRecord& record) { return is_finished(record.status); });
  events.note(Note::warning, "interrupted: " + std::to_string(finished) + " of " + std::to_string(cells.size()) + " runs are stored in " +
                                 folder + "; --resume continues");
  return outcome;
}

}  // namespace fl
