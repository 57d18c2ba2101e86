#include "scenarios/plugins.hpp"

#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <fstream>
#include <iterator>
#include <optional>
#include <string_view>

#include "fl_core/plugin_stamp.hpp"
#include "fl_core/registry.hpp"
#include "scenarios/data/sha256.hpp"

namespace fl {
namespace {

namespace fs = std::filesystem;

// In two halves, as in the stamp's header: this library is no plug-in.
const std::string kStampOpening = std::string("fedbits-plug") + "-in{";

std::string read_bytes(const fs::path& file) {
  std::error_code error;
  if (!fs::exists(file, error)) throw ConfigError("no such file");
  if (!fs::is_regular_file(file, error)) throw ConfigError("not a regular file");
  std::ifstream in(file, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  if (!in.good() && !in.eof()) throw ConfigError("it cannot be read");
  return bytes;
}

// The text of the stamp. Throws ConfigError for a file that is no plug-in.
std::string stamp_of(std::string_view bytes) {
  if (!bytes.starts_with("\x7f"
                         "ELF"))
    throw ConfigError("not a shared object");
  const std::size_t begin = bytes.find(kStampOpening);
  const std::size_t end = begin == std::string_view::npos ? begin : bytes.find('}', begin);
  if (end == std::string_view::npos) throw ConfigError("not a plug-in of fedbits: build it with fedbits_add_plugin");
  return std::string(bytes.substr(begin + kStampOpening.size(), end - begin - kStampOpening.size()));
}

// "version|interface|ABI" as {version, interface, ABI}.
std::vector<std::string> fields_of(std::string_view stamp) {
  std::vector<std::string> fields;
  for (std::size_t begin = 0; begin <= stamp.size();) {
    const std::size_t end = std::min(stamp.find('|', begin), stamp.size());
    fields.emplace_back(stamp.substr(begin, end - begin));
    begin = end + 1;
  }
  fields.resize(3);
  return fields;
}

void check_stamp(std::string_view stamp) {
  static constexpr const char* kNames[] = {"fedbits ", "public headers ", "compiler ABI "};
  const std::vector<std::string> theirs = fields_of(stamp), ours = fields_of(kStampText);
  for (std::size_t i = 0; i < ours.size(); ++i)
    if (theirs[i] != ours[i])
      throw ConfigError("built for " + std::string(kNames[i]) + theirs[i] + ", but this is " + kNames[i] + ours[i] + "; build it again");
}

// Registrations reach the registry of the shared library; a binary that holds everything itself has another one.
void require_shared_library() {
  if (::dlopen(FL_LIBRARY_NAME, RTLD_NOLOAD | RTLD_LAZY) == nullptr)
    throw ConfigError("this fedbits holds everything in one file and cannot load plug-ins; use one that is built with FL_SHARED=ON");
}

// "" or why not.
std::string open_library(const fs::path& file) {
  // An absolute path: a bare name would be looked for among the system's libraries.
  if (::dlopen(fs::absolute(file).c_str(), RTLD_NOW | RTLD_LOCAL) != nullptr) return "";
  const char* reason = ::dlerror();
  return std::string("it cannot be loaded: ") + (reason != nullptr ? reason : "no reason was given");
}

constexpr std::string_view kLoaded = "loaded";
int g_probe_pipe = -1;

[[noreturn]] void end_probe(std::string_view answer) {
  static_cast<void>(!::write(g_probe_pipe, answer.data(), answer.size()));
  ::_exit(0);
}

// Says what is being thrown and ends the probe.
[[noreturn]] void report_and_end() {
  std::string text = "it threw something that is no exception while it was loaded";
  try {
    if (std::current_exception()) std::rethrow_exception(std::current_exception());
  } catch (const std::exception& error) {
    text = std::string("it threw while it was loaded: ") + error.what();
  } catch (...) {
  }
  end_probe(text);
}

// noexcept: what is thrown reaches report_and_end, and no handler of the process that this one was copied from.
[[noreturn]] void run_probe(const fs::path& file, int pipe) noexcept {
  g_probe_pipe = pipe;
  std::set_terminate(report_and_end);
  const std::string why = open_library(file);
  end_probe(why.empty() ? kLoaded : why);
}

// Loads the file in a process of its own: what is thrown while a shared object is loaded cannot be caught, nor can a crash.
void probe(const fs::path& file) {
  int ends[2];
  if (::pipe(ends) != 0) throw ConfigError(std::string("it cannot be tried out: ") + std::strerror(errno));
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(ends[0]);
    run_probe(file, ends[1]);
  }
  ::close(ends[1]);
  std::string answer;
  char part[512];
  for (ssize_t n = 0; (n = ::read(ends[0], part, sizeof part)) > 0;) answer.append(part, static_cast<std::size_t>(n));
  ::close(ends[0]);
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child) throw ConfigError("it cannot be tried out: no process could be started");
  if (WIFSIGNALED(status)) throw ConfigError(std::string("it crashed while it was loaded: ") + ::strsignal(WTERMSIG(status)));
  if (answer.empty()) throw ConfigError("it ended the process while it was loaded");
  if (answer != kLoaded) throw ConfigError(answer);
}

std::vector<PartName> registered_parts() {
  std::vector<PartName> parts;
  const Registry& registry = Registry::instance();
  for (const std::string& role : registry.roles())
    for (const std::string& name : registry.names(role)) parts.push_back({role, name});
  std::ranges::sort(parts);
  return parts;
}

Plugin load(const fs::path& file) {
  const std::string bytes = read_bytes(file);
  check_stamp(stamp_of(bytes));
  require_shared_library();
  Plugin plugin{.file = file, .sha256 = sha256_of(std::as_bytes(std::span(bytes))), .parts = {}};
  const std::vector<PartName> before = registered_parts();
  probe(file);
  const std::string why = open_library(file);
  if (!why.empty()) throw ConfigError(why);
  const std::vector<PartName> after = registered_parts();
  std::ranges::set_difference(after, before, std::back_inserter(plugin.parts));
  if (plugin.parts.empty()) throw ConfigError("it registers no part");
  return plugin;
}

}  // namespace

std::vector<Plugin> load_plugins(const std::vector<std::string>& files) {
  std::vector<Plugin> plugins;
  std::vector<fs::path> seen;
  Problems problems;
  for (const std::string& name : files) {
    std::error_code ignored;
    const fs::path same = fs::weakly_canonical(name, ignored);
    if (std::ranges::find(seen, same) != seen.end()) continue;
    seen.push_back(same);
    try {
      plugins.push_back(load(name));
    } catch (const Error& error) {
      problems.push_back({"", "plug-in " + name + ": " + error.what()});
    }
  }
  if (!problems.empty()) throw ConfigError(std::move(problems));
  return plugins;
}

std::vector<PartName> parts_of(const Scenario& s) {
  std::vector<PartName> parts = {
      {"data", s.data.synthetic.kind},  {"partitioner", s.partition.part.kind},       {"model", s.model.part.kind},
      {"local_update", s.local.kind},   {"participation", s.participation.part.kind}, {"feedback", s.feedback_up.kind},
      {"compressor", s.down.part.kind}, {"server_optimizer", s.server.part.kind}};
  for (const auto& [_, spec] : s.up) parts.push_back({"compressor", spec.part.kind});
  std::erase_if(parts, [](const PartName& part) { return part.name.empty(); });
  return parts;
}

std::vector<PluginUse> plugins_used(const Scenario& scenario, const std::vector<Plugin>& plugins) {
  const std::vector<PartName> parts = parts_of(scenario);
  std::vector<PluginUse> used;
  for (const Plugin& plugin : plugins)
    if (std::ranges::find_first_of(plugin.parts, parts) != plugin.parts.end())
      used.push_back({plugin.file.filename().string(), plugin.sha256});
  return used;
}

}  // namespace fl
