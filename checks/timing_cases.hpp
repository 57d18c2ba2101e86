// The cases of the checks of devices, networks and availabilities: clients with known rows and classes, and parts that are open.
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "fl_core/config/error.hpp"
#include "fl_core/config/registry.hpp"
#include "timing/client_facts.hpp"

namespace fl::checks {

// N clients with 10, 17, 24, ... rows in another order, and mean class numbers.
class TimedClients {
 public:
  explicit TimedClients(std::size_t num_clients) {
    for (std::size_t i = 0; i < num_clients; ++i) {
      rows_.push_back(static_cast<std::uint32_t>(10 + 7 * ((5 * i) % num_clients)));
      labels_.push_back(static_cast<double>((3 * i) % 10) / 2);
    }
  }
  [[nodiscard]] ClientFacts facts(std::uint64_t seed, const std::string& file) const {
    return {rows_.size(), seed, rows_, labels_, [file](const std::string&) { return file; }};
  }

 private:
  std::vector<std::uint32_t> rows_;
  std::vector<double> labels_;
};

// A temporary file, removed at the end.
class TimingFile {
 public:
  explicit TimingFile(const std::string& text) {
    std::string name = (std::filesystem::temp_directory_path() / "fedbits_timing_XXXXXX").string();
    const int descriptor = ::mkstemp(name.data());
    if (descriptor < 0) throw Error("cannot write a file in " + std::filesystem::temp_directory_path().string());
    ::close(descriptor);
    file_ = name;
    std::ofstream(file_) << text;
  }
  TimingFile(const TimingFile&) = delete;
  TimingFile& operator=(const TimingFile&) = delete;
  ~TimingFile() {
    std::error_code ignored;
    std::filesystem::remove(file_, ignored);
  }
  [[nodiscard]] std::string path() const { return file_.string(); }

 private:
  std::filesystem::path file_;
};

// Returns the content of a file for the parts that read one.
[[nodiscard]] inline std::string timing_file_text(const std::string& role) {
  if (role == "devices") return "client,flops,bandwidth,memory\n*,1e9,2e9,4e9\n1,5e8,1e9,2e9\n";
  if (role == "network") return "time_s,client,down,up,latency\n0,*,1e7,1e6,0.05\n60,*,2e6,1e6,0.1\n0,1,1e6,1e5,0\n0.5,1,1e5,1e4,0.2\n";
  return "client,from_s,until_s\n*,0,600\n*,1200,1800\n1,5,10\n";
}

// Makes a part with its default options. A number without a default is 2.5, and a path that of `file`.
template <class Part>
[[nodiscard]] std::unique_ptr<Part> make_timing_part(const std::string& role, const std::string& name, const std::string& file) {
  Options options = Registry::instance().default_options(role, name);
  Schema schema = options.schema();
  for (Field& field : schema.fields()) {
    if (!field.is_required) continue;
    if (field.type == "string") static_cast<void>(field.assign(Value{file}));
    if (field.type.starts_with("number") && !field.is_set()) static_cast<void>(field.assign(Value{2.5}));
  }
  return make_part<Part>(role, name, options, Device::cpu, Precision::float64);
}

}  // namespace fl::checks
