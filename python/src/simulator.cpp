#include "python/src/simulator.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>

#include <csignal>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/fedbits/run_support.hpp"
#include "apps/fedbits/studies.hpp"
#include "fl_core/config/error.hpp"
#include "fl_core/state/checksum.hpp"
#include "python/src/calls.hpp"
#include "python/src/interrupt.hpp"
#include "python/src/study_options.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace fl::python {
namespace {

// ---- warnings

// Keeps the warnings of a study, which Python shows when it has ended.
class Warnings final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  static std::vector<std::string> take() {
    const std::lock_guard lock(one().mutex_);
    return std::exchange(one().texts_, {});
  }
  static Warnings& one() {
    static const std::shared_ptr<Warnings> sink = [] {
      auto made = std::make_shared<Warnings>();
      spdlog::set_default_logger(std::make_shared<spdlog::logger>("fedbits", made));
      spdlog::set_level(spdlog::level::warn);
      return made;
    }();
    return *sink;
  }

 private:
  void sink_it_(const spdlog::details::log_msg& message) override { texts_.emplace_back(message.payload.data(), message.payload.size()); }
  void flush_() override {}

  std::vector<std::string> texts_;
};

// ---- progress

// Passes what happens in a study to an object of Python. If a method of it raises, the study stops as after Ctrl-C, and the error comes
// out of the study.
class PythonWatch final : public StudyWatch {
 public:
  explicit PythonWatch(nb::object listener) : listener_(std::move(listener)) {}

  void stage(const std::string& text) override {
    tell([&] { listener_.attr("stage")(text); });
  }
  // Runs of tuning are told by their number: they are followed by `ended` below.
  void begin_tuning(const std::string& purpose, const std::vector<Cell>&, const std::vector<std::size_t>& pending, std::uint64_t workers,
                    const std::string&) override {
    tuning_ = {.purpose = "tuning, " + purpose, .done = 0, .runs = pending.size(), .workers = workers};
    tell_tuning();
  }
  void begin_study(const std::vector<Cell>& cells, const std::vector<std::size_t>& pending, std::uint64_t workers,
                   const std::string& folder, const std::function<RunStatus(const Cell&)>&) override {
    tuning_.reset();
    folder_ = folder;
    for (std::size_t i = 0; i < cells.size(); ++i) titles_.push_back(title_of(cells[i], i + 1, cells.size()));
    tell([&] {
      nb::list all;
      for (std::size_t i = 0; i < cells.size(); ++i)
        all.append(nb::make_tuple(to_hex(cells[i].hash), titles_[i], cells[i].scenario.rounds));
      listener_.attr("begin_study")(all, pending, workers, folder);
    });
  }
  void began(std::size_t cell, std::uint64_t) override {
    if (tuning_) return;
    tell([&] { listener_.attr("began")(cell); });
  }
  // Rounds may be short, so that at most ten a second are told.
  void reached(std::size_t cell, std::uint64_t round, double train_loss, double test_accuracy) override {
    const double now = steady_seconds();
    if (tuning_ || now - told_s_ < kEvery_s) return;
    told_s_ = now;
    tell([&] { listener_.attr("reached")(cell, round, train_loss, test_accuracy); });
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

  [[nodiscard]] const std::string& folder() const { return folder_; }
  // Returns a sentence for each run that failed or diverged.
  [[nodiscard]] const std::vector<std::string>& bad_runs() const { return bad_runs_; }
  void raise_if_failed() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  static constexpr double kEvery_s = 0.1;

  // The batch of tuning runs that is played.
  struct Tuning {
    std::string purpose;
    std::uint64_t done = 0, runs = 0, workers = 1;
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
      ask_to_stop(SIGINT);
    }
  }

  nb::object listener_;
  std::string folder_;
  std::vector<std::string> titles_, bad_runs_;
  std::optional<Tuning> tuning_;
  double told_s_ = 0;
  std::exception_ptr failure_;
};

// ---- studies

// Runs a study without Python's lock. Returns the folder of its store, and a sentence for each run that failed or diverged.
template <class Arguments>
nb::tuple play(int (*study)(Arguments, JsonLog&, StudyWatch&), const Arguments& arguments, nb::object listener, bool on_main_thread) {
  Warnings::one();
  PythonWatch watch(std::move(listener));
  JsonLog log("");
  int code = 0;
  {
    const StopsAtInterrupt stops(on_main_thread);
    const WithoutLock released;
    code = watched(watch, [&] { return study(arguments, log, watch); });
  }
  watch.raise_if_failed();
  if (code > 128) raise_interrupt();
  return nb::make_tuple(watch.folder(), watch.bad_runs());
}

nb::tuple run(const nb::dict& options, nb::object listener, bool on_main_thread) {
  RunArguments arguments;
  take_study_options(options, arguments);
  take(options, "threads", arguments.threads);
  take(options, "block", arguments.block);
  take(options, "materialise", arguments.materialise);
  return play(run_study, arguments, std::move(listener), on_main_thread);
}

nb::tuple sweep(const nb::dict& options, nb::object listener, bool on_main_thread) {
  SweepArguments arguments;
  take_study_options(options, arguments);
  take(options, "jobs", arguments.jobs);
  take(options, "threads", arguments.threads);
  take(options, "memory", arguments.memory);
  take(options, "shard", arguments.shard);
  return play(sweep_study, arguments, std::move(listener), on_main_thread);
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
  module.def("run_study", &run, "options"_a, "listener"_a.none(), "on_main_thread"_a);
  module.def("sweep_study", &sweep, "options"_a, "listener"_a.none(), "on_main_thread"_a);
  module.def("end_calls", &end_calls);
  module.def("take_warnings", &Warnings::take);
  module.def("take_preparation", &take_preparation);
}

}  // namespace fl::python
