// `fedbits completion`, `fedbits complete` and `fedbits manual`: hidden commands for shells and packages.
#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "apps/fedbits/commands.hpp"
#include "apps/fedbits/completion.hpp"

namespace fl {

namespace {

int print_candidates(const CLI::App& app, const std::vector<std::string>& words) {
  for (const Candidate& candidate : complete_words(app, words))
    std::cout << candidate.word << (candidate.text.empty() ? "" : "\t" + candidate.text) << '\n';
  return 0;
}

}  // namespace

void add_completion_command(CLI::App& app, const Guard& guard) {
  auto shell = std::make_shared<std::string>();
  CLI::App* completion = app.add_subcommand("completion", "print completion for a shell")->group("");
  completion->add_option("SHELL", *shell, "bash, zsh or fish")->required();
  completion->footer("Example: eval \"$(fedbits completion bash)\"");
  completion->callback([shell, guard] {
    guard([&] {
      write_completion(*shell, std::cout);
      return 0;
    });
  });
  auto words = std::make_shared<std::vector<std::string>>();
  CLI::App* complete = app.add_subcommand("complete", "print what the last word can be completed to, for a shell")->group("");
  complete->add_option("WORD", *words, "the words after fedbits, up to the cursor");
  complete->footer("Example: fedbits complete -- list comp");
  complete->callback([&app, words, guard] { guard([&] { return print_candidates(app, *words); }); });
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
