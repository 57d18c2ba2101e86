#include "python/src/study_options.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>

namespace nb = nanobind;

namespace fl::python {

void take_study_options(const nb::dict& options, StudySettings& settings) {
  const auto text_of = [&](const char* name) {
    std::string text;
    take(options, name, text);
    return text;
  };
  if (options.contains("text")) settings.text = ScenarioText{.text = text_of("text"), .name = text_of("name"), .folder = text_of("folder")};
  take(options, "file", settings.file);
  take(options, "settings", settings.settings);
  take(options, "plugins", settings.plugins);
  take(options, "out", settings.out);
  take(options, "data_folder", settings.data);
  take(options, "device", settings.device);
  take(options, "state_memory", settings.state_memory);
  take(options, "state_folder", settings.state_folder);
  take(options, "resume", settings.checkpoints.resume);
  take(options, "again", settings.again);
  take(options, "checkpoint_rounds", settings.checkpoints.rounds);
  take(options, "checkpoint_minutes", settings.checkpoints.minutes);
  take(options, "any_build", settings.checkpoints.any_build);
  settings.models.folder = text_of("save_model");
  settings.models.format = text_of("model_format") == "npy" ? ModelFormat::npy : ModelFormat::safetensors;
  settings.workers = Workers::threads;  // a process of Python has threads, and must not be forked
}

}  // namespace fl::python
