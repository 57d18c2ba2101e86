#include "apps/fedbits/usage.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <string_view>
#include <vector>

#include "fl_core/config/error.hpp"
#include "fl_core/config/meanings.hpp"

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

// Returns the key of a scenario that a word for an option means: "local.learning_rate" for "lr", or "".
std::string key_meant_by(const std::string& word) {
  if (word.find('.') != std::string::npos) return word;
  for (const Meaning& meaning : meanings_of(word))
    if (meaning.value.empty() && !meaning.key.empty()) return meaning.table.empty() ? meaning.key : meaning.table + "." + meaning.key;
  return "";
}

// Returns how to say what an unknown option probably means: an option of another name, or a key of the scenario.
std::string other_way(const std::string& option, const std::string& value, const CLI::App& command) {
  static const std::map<std::string, std::string> kOtherNames = {{"output", "out"},      {"folder", "out"},       {"results", "out"},
                                                                 {"gpu", "device cuda"}, {"cuda", "device cuda"}, {"dataset-path", "data"},
                                                                 {"data-dir", "data"}};
  const std::string word =
      option.substr(option.find_first_not_of('-') == std::string::npos ? option.size() : option.find_first_not_of('-'));
  const auto other = kOtherNames.find(word);
  if (other != kOtherNames.end() && command.get_option_no_throw("--" + other->second.substr(0, other->second.find(' '))) != nullptr)
    return "; did you mean --" + other->second + "?";
  const std::string key = command.get_option_no_throw("--set") == nullptr ? "" : key_meant_by(word);
  if (!key.empty()) return "; it is a key of the scenario: --set " + key + "=" + (value.empty() ? "VALUE" : value);
  const std::string absence = absence_of(word);
  return absence.empty() ? "" : "; " + absence;
}

std::string unknown_option(const std::string& word, const std::string& next, const CLI::App& command) {
  const std::string option = word.substr(0, word.find('='));
  const std::string value = option != word ? word.substr(option.size() + 1) : next.starts_with('-') ? "" : next;
  if (const std::string other = other_way(option, value, command); !other.empty())
    return "fedbits " + command.get_name() + ": there is no option " + option + other;
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
  for (std::size_t i = 0; i < words.size(); ++i)
    if (words[i].starts_with('-')) return unknown_option(words[i], i + 1 < words.size() ? words[i + 1] : "", *commands.front());
  return words.empty() ? "" : "fedbits " + commands.front()->get_name() + ": unexpected argument '" + words.front() + "'";
}

}  // namespace fl
