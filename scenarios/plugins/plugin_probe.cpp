#include "scenarios/plugins/plugin_probe.hpp"

#include <dlfcn.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <optional>
#include <random>
#include <string_view>

#include "clients/learning/local_optimizer.hpp"
#include "clients/learning/local_update.hpp"
#include "clients/learning/model.hpp"
#include "clients/nn/module.hpp"
#include "compressors/compressor.hpp"
#include "compressors/feedback/feedback.hpp"
#include "compressors/postprocessors/postprocessor.hpp"
#include "fl_core/config/error.hpp"
#include "fl_core/config/registry.hpp"
#include "fl_core/data/data_generator.hpp"
#include "fl_core/data/partitioner.hpp"
#include "scenarios/measures/measure.hpp"
#include "scenarios/plugins/plugins.hpp"
#include "server/aggregation_rule.hpp"
#include "server/async_rule.hpp"
#include "server/delivery_policy.hpp"
#include "server/participation.hpp"
#include "server/server_optimizer.hpp"
#include "timing/availability.hpp"
#include "timing/devices.hpp"
#include "timing/network.hpp"

namespace fl {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kStage = 256;  // bytes
constexpr std::string_view kLoading = "while it was loaded";

// ---- in the process that tries it out ----------------------------------------------------------------------------------------------

struct Probe {
  int pipe = -1;
  char* stage = nullptr;  // what is being done, in memory that the parent sees
};
Probe g_probe;

[[noreturn]] void end_probe(std::string_view answer) {
  static_cast<void>(!::write(g_probe.pipe, answer.data(), answer.size()));
  ::_exit(0);
}

// Says what is being thrown and ends the probe.
[[noreturn]] void report_and_end() {
  std::string text = "something that is no exception";
  try {
    if (std::current_exception()) std::rethrow_exception(std::current_exception());
  } catch (const std::exception& error) {
    text = error.what();
  } catch (...) {
  }
  end_probe("E" + text);
}

template <class Interface>
void make_as(const std::any& factory, const Options& options) {
  if (const auto* make = std::any_cast<Factory<Interface>>(&factory)) static_cast<void>((*make)(options));
}

// Makes a part of any role with its default options. A part may refuse these: what it throws is no fault of the plug-in.
void make_once(const PartName& part, Precision precision) {
  const Registry& registry = Registry::instance();
  if (!registry.contains(part.role, part.name, Device::cpu, precision)) return;
  const std::any& factory = registry.factory(part.role, part.name, Device::cpu, precision);
  const Options options = registry.default_options(part.role, part.name);
  try {
    const auto make_for = [&]<class T>(T) {
      make_as<Compressor<T>>(factory, options);
      make_as<Feedback<T>>(factory, options);
      make_as<LocalUpdate<T>>(factory, options);
      make_as<LocalOptimizer<T>>(factory, options);
      make_as<Model<T>>(factory, options);
      make_as<Postprocessor<T>>(factory, options);
      make_as<ServerOptimizer<T>>(factory, options);
      make_as<DataGenerator<T>>(factory, options);
      make_as<nn::Module<T>>(factory, options);
      make_as<Measure<T>>(factory, options);
    };
    make_for(float());
    make_for(double());
    make_as<Partitioner>(factory, options);
    make_as<Participation>(factory, options);
    make_as<AggregationRule>(factory, options);
    make_as<DeliveryPolicy>(factory, options);
    make_as<Devices>(factory, options);
    make_as<Network>(factory, options);
    make_as<Availability>(factory, options);
    make_as<AsyncRule>(factory, options);
  } catch (const std::exception&) {
  }
}

// noexcept: what is thrown reaches report_and_end, and no handler of the process that this one was copied from.
[[noreturn]] void run_probe(const fs::path& file, const std::string& token) noexcept {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  std::set_terminate(report_and_end);
  std::atexit([] { ::_exit(0); });  // before the handlers of the process that this one was copied from
  const std::vector<PartName> before = registered_parts();
  if (const std::string why = open_plugin(file); !why.empty()) end_probe("L" + why);
  for (const PartName& part : registered_parts()) {
    if (std::ranges::binary_search(before, part)) continue;
    std::snprintf(g_probe.stage, kStage, "while its %s %s was made", part.role.c_str(), part.name.c_str());
    for (const Precision precision : {Precision::float32, Precision::float64}) make_once(part, precision);
  }
  end_probe("T" + token);
}

// ---- in the process that waits -----------------------------------------------------------------------------------------------------

// The process, killed with those that it started when its owner goes out of scope.
class Child {
 public:
  explicit Child(pid_t process) : process_(process) { ::setpgid(process, process); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    ::kill(-process_, SIGKILL);
    if (!status_) ::waitpid(process_, nullptr, 0);
  }
  // Returns how the process ended; nothing while it runs.
  [[nodiscard]] std::optional<int> ended() {
    int status = 0;
    if (!status_ && ::waitpid(process_, &status, WNOHANG) == process_) status_ = status;
    return status_;
  }

 private:
  pid_t process_;
  std::optional<int> status_;
};

// Returns what arrives until the process ends or the time is over: others may hold the pipe for longer than it.
std::string read_answer(int pipe, Child& child, Clock::time_point deadline) {
  constexpr std::size_t kMost = 65536;  // bytes
  std::string answer;
  for (;;) {
    const bool is_last = child.ended().has_value();
    pollfd waiting{.fd = pipe, .events = POLLIN, .revents = 0};
    while (::poll(&waiting, 1, is_last ? 0 : 10) > 0 && answer.size() < kMost) {
      std::array<char, 512> part;
      const ssize_t size = ::read(pipe, part.data(), part.size());
      if (size <= 0) break;
      answer.append(part.data(), static_cast<std::size_t>(size));
    }
    if (is_last || Clock::now() > deadline) return answer;
    if ((waiting.revents & POLLHUP) != 0) ::usleep(2000);  // it has closed the pipe, and will end
  }
}

[[noreturn]] void refuse(const std::string& why) { throw ConfigError(why); }

std::string random_token() {
  std::random_device device;
  std::string token;
  for (int i = 0; i < 4; ++i) token += std::to_string(device()) + ".";
  return token;
}

// A pipe and a little memory that both processes see.
struct Shared {
  Shared() {
    if (::pipe(ends) != 0) refuse(std::string("it cannot be tried out: ") + std::strerror(errno));
    void* memory = ::mmap(nullptr, kStage, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) refuse(std::string("it cannot be tried out: ") + std::strerror(errno));
    stage = static_cast<char*>(memory);
    std::copy(kLoading.begin(), kLoading.end(), stage);
  }
  Shared(const Shared&) = delete;
  Shared& operator=(const Shared&) = delete;
  ~Shared() {
    for (const int end : ends)
      if (end >= 0) ::close(end);
    ::munmap(stage, kStage);
  }
  int ends[2] = {-1, -1};
  char* stage = nullptr;
};

}  // namespace

std::chrono::milliseconds plugin_time() {
  constexpr double kUsual = 20, kMost = 1e6;  // seconds
  const char* text = std::getenv("FEDBITS_PLUGIN_SECONDS");
  if (text == nullptr) return std::chrono::milliseconds(static_cast<std::int64_t>(1000 * kUsual));
  double seconds = 0;
  const char* end = text + std::strlen(text);
  const auto [next, error] = std::from_chars(text, end, seconds);
  if (error != std::errc{} || next != end || !(seconds > 0) || seconds > kMost)
    throw ConfigError("FEDBITS_PLUGIN_SECONDS: must be a number of seconds above 0, is \"" + plain_text(text) + "\"");
  return std::chrono::milliseconds(static_cast<std::int64_t>(1000 * seconds));
}

std::string plain_text(std::string_view text) {
  constexpr std::size_t kMost = 300;
  std::string plain(text.substr(0, kMost));
  for (std::size_t i = 0; i < plain.size(); ++i) {
    const auto c = static_cast<unsigned char>(plain[i]), before = static_cast<unsigned char>(i > 0 ? plain[i - 1] : 0);
    const bool is_second_control = before == 0xC2 && c >= 0x80 && c < 0xA0;  // U+0080 to U+009F
    if (c < 0x20 || c == 0x7F || is_second_control) plain[i] = '.';
  }
  return plain + (text.size() > kMost ? "..." : "");
}

std::string open_plugin(const fs::path& file) {
  // An absolute path: a bare name would be looked for among the system's libraries.
  if (::dlopen(fs::absolute(file).c_str(), RTLD_NOW | RTLD_LOCAL) != nullptr) return "";
  const char* reason = ::dlerror();
  return std::string("it cannot be loaded: ") + (reason != nullptr ? reason : "no reason was given");
}

void probe_plugin(const fs::path& file, std::chrono::milliseconds time) {
  Shared shared;
  const std::string token = random_token();
  const pid_t process = ::fork();
  if (process < 0) refuse("it cannot be tried out: no process could be started");
  if (process == 0) {
    ::setpgid(0, 0);
    ::close(shared.ends[0]);
    g_probe = {.pipe = shared.ends[1], .stage = shared.stage};
    run_probe(file, token);
  }
  ::close(std::exchange(shared.ends[1], -1));
  Child child(process);
  const std::string answer = read_answer(shared.ends[0], child, Clock::now() + time);
  const std::string stage = plain_text(std::string_view(shared.stage, ::strnlen(shared.stage, kStage)));
  const std::optional<int> status = child.ended();
  if (!status)
    refuse("it was not done after " + std::to_string(static_cast<double>(time.count()) / 1000).substr(0, 5) + " s, " + stage +
           "; if it only needs longer, set FEDBITS_PLUGIN_SECONDS");
  if (WIFSIGNALED(*status)) refuse("it crashed " + stage + ": " + ::strsignal(WTERMSIG(*status)));
  if (answer == "T" + token) return;
  if (answer.starts_with('L')) refuse(plain_text(answer.substr(1)));
  if (answer.starts_with('E')) refuse("it threw " + stage + ": " + plain_text(answer.substr(1)));
  refuse("it ended the process " + stage + (WEXITSTATUS(*status) == 0 ? "" : " with exit code " + std::to_string(WEXITSTATUS(*status))));
}

}  // namespace fl
