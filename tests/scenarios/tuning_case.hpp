// Studies that are tuned in a folder of their own.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "fl_core/config/error.hpp"
#include "scenarios/results/run_store.hpp"
#include "scenarios/sweep/tuning.hpp"

namespace fl::test {

[[nodiscard]] inline double number(const Value& value) { return std::get<double>(value.data); }

class TuningTest : public testing::Test {
 protected:
  static inline const std::string kTop = "{label='top', kind='top_k', k=3}";
  static inline const std::string kHard = "{label='hard', kind='hard_threshold', match_bits_of='top'}";
  static inline const std::string kGrid =
      "[sweep.tune]\nseeds = 2\nat = 'rounds'\nkey = 'local.learning_rate'\nvalues = [0.001, 0.5, 2.5]\n";

  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "fedbits_tuning_XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // Five quadratics of different minimisers and a sweep over compressors.
  [[nodiscard]] static std::string study(const std::string& values, const std::string& tune = "", const std::string& more = "") {
    return "name = 'tuning'\nrounds = 40\nprecision = 'float64'\n[data]\nkind = 'quadratics'\nclients = 5\ndimension = 20\nzeta_sq = 1.0\n"
           "[partition]\nkind = 'natural'\nclients = 5\n[model]\nkind = 'quadratic'\n[local]\nkind = 'gradient'\nlearning_rate = 0.1\n"
           "[feedback.up]\nkind = 'ef14'\n[evaluate]\nevery = 2\n[sweep]\nseeds = 2\n" +
           tune + "[[sweep.axis]]\nkey = 'compressor.up'\nvalues = [" + values + "]\n" + more;
  }
  std::vector<TunedOption> tune(std::vector<Cell>& cells) const {
    return tune_cells(cells, DataCatalog(""), {.workers = 2, .store = folder_, .note = {}, .stop = {}});
  }
  [[nodiscard]] std::vector<TunedOption> tune(const std::string& text) const {
    std::vector<Cell> cells = parse_cells(text, "study.toml");
    return tune(cells);
  }
  [[nodiscard]] std::size_t num_runs() const { return RunStore::open(folder_, RunStore::Mode::read).list().size(); }
  [[nodiscard]] std::string refusal(const std::string& text) const {
    try {
      (void)tune(text);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "accepted";
  }
  std::filesystem::path folder_;
};

}  // namespace fl::test
