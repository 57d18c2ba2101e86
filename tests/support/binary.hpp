// Runs the binary as a user would: it starts in a separate folder, with its output captured, and can be ended by signals.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

// The build defines the binary's path; a header that is compiled alone uses the binary on the PATH.
#if !defined(FL_BINARY)
#define FL_BINARY "fedbits"
#endif

namespace fl::test {

inline std::string read_text(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

inline std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++count;
  return count;
}

struct Outcome {
  int code = -1;  // exit code, or -signal if a signal ended the process
  std::string out, err;
};

enum class Rights { ours, no_override };  // no_override: file permissions apply to the superuser too

// The environment in which a process starts.
struct Surroundings {
  Rights rights = Rights::ours;
  std::vector<std::pair<std::string, std::string>> environment{};  // added to the test's environment
  rlim_t memory_bytes = RLIM_INFINITY;                             // limit of the address space of the process and of each of its children
};

// Returns the environment of a process whose children a test kills. The leak check of the address sanitizer is such a child, at the very
// end of the process; a process that has lost it would wait for ever.
inline Surroundings whose_children_are_killed() { return {.environment = {{"ASAN_OPTIONS", "detect_leaks=0"}}}; }

// A process of the binary. It is killed when its owner goes out of scope.
class Process {
 public:
  Process(const std::filesystem::path& folder, std::vector<std::string> arguments, Rights rights)
      : Process(folder, std::move(arguments), Surroundings{.rights = rights}) {}
  Process(const std::filesystem::path& folder, std::vector<std::string> arguments, const Surroundings& surroundings = {})
      : out_(folder / "stdout.txt"), err_(folder / "stderr.txt") {
    std::error_code none;  // a process that is killed before it opens them has no output
    for (const std::filesystem::path& file : {out_, err_}) std::filesystem::remove(file, none);
    arguments.insert(arguments.begin(), FL_BINARY);
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ != 0) return;
    constexpr unsigned long kOverridePermissions = 1;  // CAP_DAC_OVERRIDE
    if (surroundings.rights == Rights::no_override && ::geteuid() == 0 && ::prctl(PR_CAPBSET_DROP, kOverridePermissions, 0, 0, 0) != 0)
      ::_exit(125);
    ::unsetenv("FEDBITS_DATA");
    for (const auto& [name, value] : surroundings.environment) ::setenv(name.c_str(), value.c_str(), 1);
    const rlimit memory{surroundings.memory_bytes, surroundings.memory_bytes};
    if (::setrlimit(RLIMIT_AS, &memory) != 0) ::_exit(124);
    const int in = ::open("/dev/null", O_RDONLY), out = ::open(out_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644),
              err = ::open(err_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (::dup2(in, 0) < 0 || ::dup2(out, 1) < 0 || ::dup2(err, 2) < 0 || ::chdir(folder.c_str()) != 0) ::_exit(126);
    ::execv(FL_BINARY, argv.data());
    ::_exit(127);
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

  [[nodiscard]] pid_t pid() const { return pid_; }
  void signal(int number) { ::kill(pid_, number); }
  // Waits until its stdout holds `count` lines. Returns false if the process ended before.
  bool wait_for_lines(std::size_t count) {
    return wait_until([&] { return count_of(read_text(out_), "\n") >= count; });
  }
  [[nodiscard]] bool has_ended() const {
    siginfo_t info{};
    ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT);
    return info.si_pid != 0;
  }
  // Waits until a condition holds. Returns false if the process ended before.
  bool wait_until(const std::function<bool()>& is_so) {
    while (!is_so()) {
      if (has_ended()) return is_so();
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    return true;
  }
  // Returns the processes that it has started and that are still running.
  [[nodiscard]] std::vector<pid_t> children() const {
    const std::string of = "/proc/" + std::to_string(pid_);
    std::ifstream list(of + "/task/" + std::to_string(pid_) + "/children");
    return {std::istream_iterator<pid_t>(list), {}};
  }
  Outcome wait() {
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = 0;
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status), read_text(out_), read_text(err_)};
  }

 private:
  std::filesystem::path out_, err_;
  pid_t pid_ = 0;
};

// A test with an empty folder, in which the binary runs.
class BinaryTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "fedbits_XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  void write(const std::string& name, const std::string& text) const { std::ofstream(folder_ / name, std::ios::binary) << text; }
  [[nodiscard]] std::string read(const std::string& name) const { return read_text(folder_ / name); }
  [[nodiscard]] bool exists(const std::string& name) const { return std::filesystem::exists(folder_ / name); }
  [[nodiscard]] Outcome fedbits(std::vector<std::string> arguments) const { return Process(folder_, std::move(arguments)).wait(); }
  // Runs `fedbits run small.toml --out out` with settings.
  [[nodiscard]] Outcome run_with(const std::vector<std::string>& settings) const {
    std::vector<std::string> arguments = {"run", "small.toml", "--out", "out"};
    for (const std::string& setting : settings) {
      arguments.emplace_back("--set");
      arguments.push_back(setting);
    }
    return fedbits(arguments);
  }
  // Writes a scenario that ends almost at once, on the data inside the binary.
  void write_small(const std::string& more = "") const {
    write("small.toml",
          "name = 'small'\nrounds = 5\n[data]\nname = 'mushrooms'\nrows = 120\n[partition]\nclients = 4\n"
          "[model]\nkind = 'logistic_regression'\nl2 = 0.01\n[evaluate]\nevery = 1\n" +
              more);
  }

  std::filesystem::path folder_;
};

}  // namespace fl::test
