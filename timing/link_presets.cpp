#include "timing/link_presets.hpp"

namespace fl {

const std::vector<LinkPreset>& link_presets() {
  static const std::vector<LinkPreset> presets = {{"data_center", {.down = 100e9, .up = 100e9, .latency_s = 10e-6}},
                                                  {"lan", {.down = 1e9, .up = 1e9, .latency_s = 1e-4}},
                                                  {"wifi", {.down = 193.7e6, .up = 22.6e6, .latency_s = 7e-3}},
                                                  {"5g", {.down = 166e6, .up = 21.1e6, .latency_s = 15e-3}},
                                                  {"4g", {.down = 12e6, .up = 12e6, .latency_s = 35e-3}},
                                                  {"3g", {.down = 1.6e6, .up = 768e3, .latency_s = 150e-3}}};
  return presets;
}

const LinkPreset* find_link_preset(const std::string& name) {
  for (const LinkPreset& preset : link_presets())
    if (preset.name == name) return &preset;
  return nullptr;
}

std::vector<std::string> link_preset_names() {
  std::vector<std::string> names;
  for (const LinkPreset& preset : link_presets()) names.push_back(preset.name);
  return names;
}

}  // namespace fl
