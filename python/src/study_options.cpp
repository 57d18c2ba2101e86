#include "python/src/study_options.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>

namespace nb = nanobind;

namespace fl::python {

void take_study_options(const nb::dict& options, StudyArguments& arguments) {
  const auto text_of = [&](const char* name) {
    std::string text;
    take(options, name, text);
    return text;
  };
  if (options.contains("text"))
    arguments.text = ScenarioText{.text = text_of("text"), .name = text_of("name"), .folder = text_of("folder")};
  take(options, "file", arguments.file);
  take(options, "settings", arguments.settings);
  take(options, "plugins", arguments.plugins);
  take(options, "out", arguments.out);
  take(options, "data_folder", arguments.data);
  take(options, "device", arguments.device);
  take(options, "state_memory", arguments.state_memory);
  take(options, "state_folder", arguments.state_folder);
  take(options, "resume", arguments.checkpoints.resume);
  take(options, "again", arguments.again);
  take(options, "checkpoint_rounds", arguments.checkpoints.rounds);
  take(options, "checkpoint_minutes", arguments.checkpoints.minutes);
  take(options, "any_build", arguments.checkpoints.any_build);
  arguments.models.folder = text_of("save_model");
  arguments.models.format = text_of("model_format") == "npy" ? ModelFormat::npy : ModelFormat::safetensors;
  arguments.quiet = arguments.silent = true;
  arguments.workers = Workers::threads;  // a process of Python has threads, and must not be forked
}

}  // namespace fl::python
