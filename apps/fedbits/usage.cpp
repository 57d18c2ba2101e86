#include "apps/fedbits/usage.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string_view>
#include <vector>

#include "fl_core/config/error.hpp"

namespace fl {

namespace {

std::string suggestion(const std::string& word, const std::vector<std::string>& known) {
  const std::string near = nearest_name(word, known);
  return near.empty() ? "" : "; did you mean " + near + "?";
}

// The commands of builds with the network.
constexpr std::string_view kNetworkCommands[] = {"serve", "join", "certs"};

std::string unknown_command(const std::string& word, const CLI::App& app) {
  if (std::ranges::find(kNetworkCommands, word) != std::end(kNetworkCommands))
    return "fedbits: this fedbits was built without the network (FL_NET=OFF), which `fedbits " + word +
           "` needs; FEDBITS_NET=1 ./quickstart.sh or cmake -DFL_NET=ON builds it";
  std::vector<std::string> known;
  std::string all;
  for (const CLI::App* command : app.get_subcommands({})) {
    if (command->get_group().empty()) continue;  // hidden
    known.push_back(command->get_name());
    all += (all.empty() ? "" : ", ") + command->get_name();
  }
  return "fedbits: there is no command '" + word + "'" + suggestion(word, known) + " Commands: " + all;
}

std::string unknown_option(const std::string& word, const CLI::App& command) {
  const std::string option = word.substr(0, word.find('='));
  std::vector<std::string> known;
  for (const CLI::Option* one : command.get_options())
    for (const std::string& name : one->get_lnames()) known.push_back("--" + name);
  return "fedbits " + command.get_name() + ": there is no option " + option + suggestion(option, known);
}

}  // namespace

std::string unknown_word_text(const CLI::App& app) {
  const std::vector<const CLI::App*> commands = [&app] {
    std::vector<const CLI::App*> parsed;
    for (const CLI::App* command : app.get_subcommands({}))
      if (command->parsed()) parsed.push_back(command);
    return parsed;
  }();
  if (commands.empty()) {
    const std::vector<std::string> words = app.remaining();
    if (words.empty()) return "";
    return words.front().starts_with('-') ? "fedbits: there is no option " + words.front() : unknown_command(words.front(), app);
  }
  std::vector<std::string> words = commands.front()->remaining();
  if (words.empty()) words = app.remaining();
  for (const std::string& word : words)
    if (word.starts_with('-')) return unknown_option(word, *commands.front());
  return words.empty() ? "" : "fedbits " + commands.front()->get_name() + ": unexpected argument '" + words.front() + "'";
}

}  // namespace fl
