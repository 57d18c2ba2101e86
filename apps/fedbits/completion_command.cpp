// `fedbits completion` and `fedbits manual`: hidden commands that packages are made with.
#include <CLI/CLI.hpp>
#include <iostream>

#include "apps/fedbits/commands.hpp"
#include "apps/fedbits/completion.hpp"
#include "fl_core/error.hpp"

namespace fl {

namespace {

int write_completion(const CLI::App& app, const std::string& shell) {
  if (shell == "bash")
    write_bash_completion(app, std::cout);
  else if (shell == "zsh")
    write_zsh_completion(app, std::cout);
  else if (shell == "fish")
    write_fish_completion(app, std::cout);
  else
    throw ConfigError("completion: must be one of bash, zsh, fish; is '" + shell + "'");
  return 0;
}

}  // namespace

void add_completion_command(CLI::App& app, const Guard& guard) {
  auto shell = std::make_shared<std::string>();
  CLI::App* completion = app.add_subcommand("completion", "print completion for a shell")->group("");
  completion->add_option("SHELL", *shell, "bash, zsh or fish")->required();
  completion->footer("Example: eval \"$(fedbits completion bash)\"");
  completion->callback([&app, shell, guard] { guard([&] { return write_completion(app, *shell); }); });
  CLI::App* manual = app.add_subcommand("manual", "print the manual page")->group("");
  manual->footer("Example: fedbits manual > fedbits.1");
  manual->callback([&app, guard] {
    guard([&] {
      write_manual_page(app, std::cout);
      return 0;
    });
  });
}

}  // namespace fl
