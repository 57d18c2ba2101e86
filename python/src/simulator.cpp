#include "python/src/simulator.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <exception>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "fl_core/config/error.hpp"
#include "python/src/calls.hpp"
#include "python/src/interrupt.hpp"
#include "python/src/study_options.hpp"
#include "study/driver/simulation.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace fl::python {
namespace {

// Passes what happens in a study to an object of Python, and keeps its warnings. If a method of the object raises, the study stops as after
// Ctrl-C, and the error comes out of the study.
class PythonEvents final : public StudyEvents {
 public:
  PythonEvents(nb::object listener, StopRequest& stop) : listener_(std::move(listener)), stop_(stop) {}

  void note(Note kind, const std::string& text) override {
    if (kind == Note::warning) warnings_.push_back(text);
  }
  void preparing(const std::string& text) override { keep_preparation(text); }
  void tuning() override {
    tell([&] { listener_.attr("stage")("tuning"); });
  }
  // Runs of tuning are told by their number: they are followed by `ended` below.
  void begin_tuning(const std::string& purpose, const std::vector<Cell>&, const std::vector<std::size_t>& pending, int workers,
                    const std::string&) override {
    tuning_ = {.purpose = "tuning, " + purpose, .done = 0, .runs = pending.size(), .workers = workers};
    tell_tuning();
  }
  void begin(const Simulation& study, const std::vector<std::size_t>& pending, int workers) override {
    tuning_.reset();
    for (std::size_t i = 0; i < study.size(); ++i) titles_.push_back(study.title(i));
    tell([&] {
      nb::list all;
      for (std::size_t i = 0; i < study.size(); ++i) all.append(nb::make_tuple(study.hash(i), titles_[i], study.rounds(i)));
      listener_.attr("begin_study")(all, pending, workers, study.folder());
    });
  }
  void began(std::size_t cell, int) override {
    if (tuning_) return;
    tell([&] { listener_.attr("began")(cell); });
  }
  // Rounds may be short, so that at most ten a second are told.
  void reached(std::size_t cell, const RunProgress& at) override {
    const auto now = std::chrono::steady_clock::now();
    if (tuning_ || now - told_ < kEvery) return;
    told_ = now;
    tell([&] { listener_.attr("reached")(cell, at.round, at.train_loss, at.test_accuracy); });
  }
  void ended(std::size_t cell, const RunRecord& record) override {
    if (tuning_) {
      ++tuning_->done;
      return tell_tuning();
    }
    if (record.status == RunStatus::failed || record.status == RunStatus::diverged)
      bad_runs_.push_back(titles_[cell] + ": " + to_string(record.status) + (record.message.empty() ? "" : ": " + record.message));
    tell([&] { listener_.attr("ended")(cell, record.rounds, to_string(record.status), record.message); });
  }

  // Returns a sentence for each run that failed or diverged.
  [[nodiscard]] const std::vector<std::string>& bad_runs() const { return bad_runs_; }
  [[nodiscard]] const std::vector<std::string>& warnings() const { return warnings_; }
  void raise_if_failed() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  static constexpr std::chrono::milliseconds kEvery{100};

  // The batch of tuning runs that is played.
  struct Tuning {
    std::string purpose;
    std::uint64_t done = 0, runs = 0;
    int workers = 1;
  };

  void tell_tuning() {
    tell([&] { listener_.attr("tuning")(tuning_->purpose, tuning_->done, tuning_->runs, tuning_->workers); });
  }
  template <class Call>
  void tell(const Call& call) {
    const nb::gil_scoped_acquire acquired;
    if (failure_ || listener_.is_none()) return;
    try {
      call();
    } catch (const nb::python_error&) {
      failure_ = std::current_exception();
      stop_.ask();
    }
  }

  nb::object listener_;
  StopRequest& stop_;
  std::vector<std::string> titles_, bad_runs_, warnings_;
  std::optional<Tuning> tuning_;
  std::chrono::steady_clock::time_point told_{};
  std::exception_ptr failure_;
};

// Runs a study without Python's lock. Appends its warnings to `warnings`, also where it raises. Returns the folder of its store, and a
// sentence for each run that failed or diverged.
nb::tuple play(StudySettings settings, nb::object listener, nb::list warnings, bool on_main_thread) {
  StopsAtInterrupt stops(on_main_thread);
  PythonEvents events(std::move(listener), stops.request());
  std::string folder;
  std::exception_ptr thrown;
  {
    const WithoutLock released;
    try {
      Simulation study = Simulation::open(std::move(settings));
      folder = study.folder();
      (void)study.run(events, stops.token());
    } catch (...) {
      thrown = std::current_exception();
    }
  }
  for (const std::string& text : events.warnings()) warnings.append(text);
  events.raise_if_failed();
  if (thrown) std::rethrow_exception(thrown);
  if (stops.is_asked()) raise_interrupt();
  return nb::make_tuple(folder, events.bad_runs());
}

nb::tuple run(const nb::dict& options, nb::object listener, nb::list warnings, bool on_main_thread) {
  StudySettings settings;
  take_study_options(options, settings);
  PlayInTurn& play_in_turn = settings.play.emplace<PlayInTurn>();
  take(options, "threads", play_in_turn.threads);
  take(options, "block", play_in_turn.block);
  take(options, "materialise", play_in_turn.materialise);
  return play(std::move(settings), std::move(listener), std::move(warnings), on_main_thread);
}

nb::tuple sweep(const nb::dict& options, nb::object listener, nb::list warnings, bool on_main_thread) {
  StudySettings settings;
  take_study_options(options, settings);
  PlayInParallel& play_in_parallel = settings.play.emplace<PlayInParallel>();
  take(options, "jobs", play_in_parallel.jobs);
  take(options, "threads", play_in_parallel.threads);
  take(options, "memory", play_in_parallel.memory);
  std::optional<std::string> shard;
  take(options, "shard", shard);
  if (shard) play_in_parallel.shard = parse_shard(*shard);
  return play(std::move(settings), std::move(listener), std::move(warnings), on_main_thread);
}

// Gives a ConfigError of Python the list of its problems, as pairs of place and message.
void translate(const std::exception_ptr& thrown, void* type) {
  try {
    std::rethrow_exception(thrown);
  } catch (const ConfigError& error) {
    const nb::handle config_error(static_cast<PyObject*>(type));
    nb::object raised = config_error(error.what());
    nb::list problems;
    for (const Problem& problem : error.problems()) problems.append(nb::make_tuple(problem.where, problem.message));
    raised.attr("problems") = problems;
    PyErr_SetObject(config_error.ptr(), raised.ptr());
  }
}

}  // namespace

void bind_simulator(nb::module_& module) {
  const nb::object error = module.attr("Error");
  nb::exception<DataError>(module, "DataError", error);
  nb::exception<StoreError>(module, "StoreError", error);
  nb::exception<DeviceError>(module, "DeviceError", error);
  nb::register_exception_translator(translate, module.attr("ConfigError").ptr());
  module.def("run_study", &run, "options"_a, "listener"_a.none(), "warnings"_a, "on_main_thread"_a);
  module.def("sweep_study", &sweep, "options"_a, "listener"_a.none(), "warnings"_a, "on_main_thread"_a);
  module.def("end_calls", &end_calls);
  module.def("take_preparation", &take_preparation);
}

}  // namespace fl::python
