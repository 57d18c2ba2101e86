// fedbits: the command line. Exit codes: 0 done; 1 a run failed or diverged, or writing failed later; 2 bad input or output that is not
// writable at the start; 128 plus the signal that has asked it to stop: 130 interrupted, 143 terminated.
#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <exception>
#include <iostream>
#include <new>

#include "apps/fedbits/commands.hpp"
#include "apps/fedbits/run_support.hpp"
#include "apps/fedbits/usage.hpp"
#include "apps/fedbits/value_names.hpp"
#include "fl_core/config/error.hpp"
#include "fl_core/config/printable.hpp"
#include "fl_core/config/stopping.hpp"
#include "scenarios/results/run_store.hpp"
#include "study/machine/version_text.hpp"
#include "study/output/output_file.hpp"

namespace {

int report(const std::string& message, int code) {
  std::cerr << "fedbits: " << message << '\n';
  return code;
}

int guarded(const std::function<int()>& command) {
  try {
    return command();
  } catch (const fl::ConfigError& error) {
    for (const fl::Problem& problem : error.problems())
      std::cerr << (problem.where.empty() ? "fedbits: " : problem.where + ": ") << problem.message << '\n';
    return 2;
  } catch (const fl::Stopped& stopped) {
    return report(stopped.what(), fl::exit_code_of(fl::caught_signal()));
  } catch (const fl::DataError& error) {
    return report(error.what(), 2);
  } catch (const fl::NotStoredError& error) {
    return report(error.what(), 1);
  } catch (const fl::StoreError& error) {
    return report(error.what(), 2);
  } catch (const fl::DeviceError& error) {
    return report(error.what(), 2);
  } catch (const std::bad_alloc&) {
    return report("out of memory; fewer clients, a smaller model, or --block 1 need less", 1);
  } catch (const std::exception& error) {
    return report(error.what(), 1);
  }
}

// Flushes standard output. A closed reader or a full disk is detected here at the latest.
int flushed(int code) {
  if (std::cout.flush()) return code;
  return report("cannot write to standard output: the disk may be full, or its reader has gone", code == 0 ? 1 : code);
}

void add_commands(CLI::App& app, const fl::Guard& run) {
  fl::add_run_command(app, run);
  fl::add_sweep_command(app, run);
  fl::add_plan_command(app, run);
  fl::add_calibrate_command(app, run);
  fl::add_suggest_command(app, run);
  fl::add_export_command(app, run);
  fl::add_report_command(app, run);
  fl::add_verify_command(app, run);
  fl::add_explain_command(app, run);
  fl::add_model_command(app, run);
  fl::add_list_command(app, run);
  fl::add_data_command(app, run);
  fl::add_check_command(app, run);
#ifdef FL_WITH_NET
  fl::add_serve_command(app, run);
  fl::add_join_command(app, run);
  fl::add_certs_command(app, run);
#endif
  fl::add_completion_command(app, run);
}

// Opens /dev/null for standard input, output and error where they are closed, so that no file or socket of a run gets their numbers and is
// written to as if it were the terminal.
void open_standard_streams() {
  for (const int stream : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (::fcntl(stream, F_GETFD) < 0 && errno == EBADF)
      static_cast<void>(::open("/dev/null", stream == STDIN_FILENO ? O_RDONLY : O_WRONLY));
}

}  // namespace

int main(int argc, char** argv) {
  open_standard_streams();
  fl::make_output_printable();
  fl::remove_unfinished_files_on_signals();
  CLI::App app{"fedbits simulates federated learning and counts every bit."};
  app.require_subcommand(1);
  app.set_version_flag("--version", fl::version_text());
  app.footer(
      "Examples:\n"
      "  fedbits run scenarios/library/quickstart.toml\n"
      "  fedbits run study.toml --set partition.alpha=0.1 --set rounds=50 --out results\n"
      "  fedbits plan study.toml\n"
      "  fedbits suggest study.toml --ratio 0.01\n"
      "  fedbits sweep study.toml --out results --resume\n"
      "  fedbits report results -o report.html\n"
      "  fedbits export results --rounds rounds.csv --runs runs.csv\n"
      "  fedbits verify results\n"
      "  fedbits explain 3f2a --out results\n"
      "  fedbits list compressors");

  int code = 0;
  const auto run = [&code](const std::function<int()>& command) { code = guarded(command); };
  add_commands(app, run);
  fl::name_values(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const bool is_wrong = error.get_exit_code() != 0;
    if (const std::string unknown = is_wrong ? fl::unknown_word_text(app) : ""; !unknown.empty()) {
      std::cerr << unknown << "\nRun with --help for more information.\n";
      return 2;
    }
    return flushed(app.exit(error) == 0 ? 0 : 2);
  }
  return flushed(code);
}
