#include "apps/fedbits/completion.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <set>

#include "apps/fedbits/command_line.hpp"
#include "apps/fedbits/commands.hpp"
#include "fl_core/config/error.hpp"
#include "fl_core/config/registry.hpp"
#include "scenarios/data/catalog.hpp"

namespace fl {
namespace {

using Names = std::vector<std::string>;

// Each shell function calls the program, so that it knows the parts and the data sets of the installed version. A line of the answer is a
// word, a tab and its description; an empty answer means that a file is expected.
const std::map<std::string, std::string> kShells = {{"bash", R"(# bash completion of fedbits, made by `fedbits completion bash`
_fedbits() {
  local IFS=$'\n'
  mapfile -t COMPREPLY < <(fedbits complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null | cut -f1)
}
complete -o default -F _fedbits fedbits
)"},
                                                    {"zsh", R"(#compdef fedbits
# zsh completion of fedbits, made by `fedbits completion zsh`
_fedbits() {
  local -a found
  found=("${(@f)$(fedbits complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  found=("${(@)${(@)found//:/\\:}/$'\t'/:}")  # _describe takes word:description
  if [[ -n $found[1] ]]; then
    _describe fedbits found
  else
    _files
  fi
}
_fedbits "$@"
)"},
                                                    {"fish", R"(# fish completion of fedbits, made by `fedbits completion fish`
function __fedbits_words
  fedbits complete -- (commandline -opc)[2..] (commandline -ct) 2>/dev/null
end
complete -c fedbits -n '__fedbits_words | string length -q' -f -a '(__fedbits_words)'
)"}};

Names names_of_lists() {
  Names names;
  for (const auto& [title, _] : listed_roles()) names.push_back(title);
  names.emplace_back("reference");
  return names;
}

// Returns the parts of a list of `fedbits list`; empty if no such list exists.
Names names_of_parts(const std::string& list) {
  for (const auto& [title, role] : listed_roles())
    if (title == list) return Registry::instance().names(role);
  return {};
}

Names names_of_all_parts() {
  std::set<std::string> names;
  for (const auto& [_, role] : listed_roles())
    for (const std::string& name : Registry::instance().names(role)) names.insert(name);
  return {names.begin(), names.end()};
}

// Returns the known data sets, and for those of LIBSVM also their short names.
Names names_of_data() {
  std::set<std::string> names;
  for (const DataInfo& info : known_data()) {
    names.insert(info.name);
    if (info.name.starts_with("libsvm/")) names.insert(info.name.substr(std::string("libsvm/").size()));
  }
  return {names.begin(), names.end()};
}

// Returns the names that a command accepts after these arguments.
Names names_after(const std::string& command, const Names& arguments) {
  if (command == "list") return arguments.empty() ? names_of_lists() : arguments.size() == 1 ? names_of_parts(arguments[0]) : Names{};
  if (command == "data" && arguments.empty()) return {"fetch", "shard", "show"};
  if (command == "data") return arguments.front() == "shard" ? Names{} : names_of_data();
  if (command == "certs") return arguments.empty() ? Names{"init", "list", "renew", "revoke"} : Names{};
  if (command == "check") return names_of_all_parts();
  return {};
}

const Flag* find_flag(const Command& command, const std::string& word) {
  for (const Flag& flag : command.flags)
    if (std::ranges::find(flag.names, word) != flag.names.end()) return &flag;
  return nullptr;
}

std::vector<Candidate> flags_of(const Command& command) {
  std::vector<Candidate> candidates;
  for (const Flag& flag : command.flags)
    for (const std::string& name : flag.names) candidates.push_back({name, flag.text});
  return candidates;
}

std::vector<Candidate> commands_and_flags(const CLI::App& app) {
  std::vector<Candidate> candidates;
  for (const Command& command : commands_of(app)) candidates.push_back({command.name, command.text});
  for (const Candidate& flag : flags_of(describe_command(app))) candidates.push_back(flag);
  return candidates;
}

// Returns all candidates after the words of a command; the last word is the beginning of a word.
std::vector<Candidate> after_command(const Command& command, const Names& words) {
  if (words.back().starts_with("-")) return flags_of(command);
  Names arguments;
  bool is_value = false;  // whether the word is the value of the option before it
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    const Flag* flag = find_flag(command, words[i]);
    if (flag == nullptr && !is_value && !words[i].starts_with("-")) arguments.push_back(words[i]);
    is_value = flag != nullptr && !flag->value.empty();
  }
  if (is_value) return {};
  std::vector<Candidate> candidates;
  for (const std::string& name : names_after(command.name, arguments)) candidates.push_back({name, ""});
  return candidates;
}

std::vector<Candidate> all_candidates(const CLI::App& app, const Names& words) {
  if (words.size() <= 1) return commands_and_flags(app);
  for (const Command& command : commands_of(app))
    if (command.name == words[0]) return after_command(command, {words.begin() + 1, words.end()});
  return {};
}

}  // namespace

std::vector<Candidate> complete_words(const CLI::App& app, const std::vector<std::string>& words) {
  std::vector<Candidate> candidates = all_candidates(app, words);
  const std::string beginning = words.empty() ? "" : words.back();
  std::erase_if(candidates, [&](const Candidate& candidate) { return !candidate.word.starts_with(beginning); });
  return candidates;
}

void write_completion(const std::string& shell, std::ostream& out) {
  const auto found = kShells.find(shell);
  if (found == kShells.end()) throw ConfigError("completion: must be one of bash, zsh, fish; is '" + shell + "'");
  out << found->second;
}

}  // namespace fl
