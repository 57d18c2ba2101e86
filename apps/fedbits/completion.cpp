#include "apps/fedbits/completion.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "apps/fedbits/commands.hpp"
#include "fl_core/registry.hpp"
#include "scenarios/data/catalog.hpp"

namespace fl {
namespace {

struct Flag {
  std::vector<std::string> names;  // "--out", "-q"
  std::string value, text;         // value: what it takes, "" for a flag
};
struct Positional {
  std::string name, text;
};
struct Command {
  std::string name, text, footer;
  std::vector<Flag> flags;
  std::vector<Positional> positionals;
};

// "INT" of "INT:INT in [1 - 4096]".
std::string type_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  return type.substr(0, type.find(':'));
}

Command describe(const CLI::App& app) {
  Command command{app.get_name(), app.get_description(), app.get_footer(), {}, {}};
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;
    if (option->get_positional()) {
      command.positionals.push_back({option->get_name(true), option->get_description()});
      continue;
    }
    Flag flag{{}, option->get_items_expected_max() == 0 ? "" : type_of(*option), option->get_description()};
    for (const std::string& name : option->get_snames()) flag.names.push_back("-" + name);
    for (const std::string& name : option->get_lnames()) flag.names.push_back("--" + name);
    command.flags.push_back(std::move(flag));
  }
  return command;
}

// Hidden commands, those without a group, are for scripts.
std::vector<Command> commands_of(const CLI::App& app) {
  std::vector<Command> commands;
  for (const CLI::App* sub : app.get_subcommands({}))
    if (!sub->get_group().empty()) commands.push_back(describe(*sub));
  return commands;
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) text.replace(at, from.size(), to);
  return text;
}

std::string words_of(const Command& command) {
  std::string words;
  for (const Flag& flag : command.flags)
    for (const std::string& name : flag.names) words += (words.empty() ? "" : " ") + name;
  return words;
}

std::string names_of(const std::vector<Command>& commands) {
  std::string names;
  for (const Command& command : commands) names += (names.empty() ? "" : " ") + command.name;
  return names;
}

std::string quoted(const std::string& text) { return "'" + replaced(text, "'", "'\\''") + "'"; }

// ---- names of parts and data sets --------------------------------------------------------------------------------------------

std::string joined_words(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

std::string names_of_lists() {
  std::vector<std::string> words;
  for (const auto& [title, _] : listed_roles()) words.push_back(title);
  words.emplace_back("reference");
  return joined_words(words);
}

std::string names_of_parts(const std::string& role) { return joined_words(Registry::instance().names(role)); }

std::string names_of_all_parts() {
  std::set<std::string> names;
  for (const auto& [_, role] : listed_roles())
    for (const std::string& name : Registry::instance().names(role)) names.insert(name);
  return joined_words({names.begin(), names.end()});
}

// Known data sets, those of LIBSVM by their short names too.
std::string names_of_data() {
  std::set<std::string> names;
  for (const DataInfo& info : known_data()) {
    names.insert(info.name);
    if (info.name.starts_with("libsvm/")) names.insert(info.name.substr(std::string("libsvm/").size()));
  }
  return joined_words({names.begin(), names.end()});
}

constexpr const char* kDataActions = "fetch show";

// The names that a command takes at the cursor, as a case of bash.
void write_bash_names(std::ostream& out) {
  out << "  case ${COMP_WORDS[1]}:$COMP_CWORD in\n"
         "    list:2) names=\""
      << names_of_lists()
      << "\" ;;\n"
         "    list:3)\n"
         "      case ${COMP_WORDS[2]} in\n";
  for (const auto& [title, role] : listed_roles()) out << "        " << title << ") names=\"" << names_of_parts(role) << "\" ;;\n";
  out << "      esac ;;\n"
         "    data:2) names=\""
      << kDataActions
      << "\" ;;\n"
         "    data:*) names=\""
      << names_of_data()
      << "\" ;;\n"
         "    check:*) names=\""
      << names_of_all_parts() << "\" ;;\n  esac\n";
}

// The positional arguments of a command as _arguments of zsh describes them; the command itself is the first.
void write_zsh_names(const std::string& command, std::ostream& out) {
  if (command == "list")
    out << "        '1:command:' '2:list:(" << names_of_lists() << ")' \"3:part:($names)\"\n";
  else if (command == "data")
    out << "        '1:command:' '2:action:(" << kDataActions << ")' '*:data set:(" << names_of_data() << ")'\n";
  else if (command == "check")
    out << "        '1:command:' '*:part:(" << names_of_all_parts() << ")'\n";
  else
    out << "        '*:file:_files'\n";
}

void write_fish_names(std::ostream& out) {
  const auto offer = [&out](const std::string& when, const std::string& names) {
    out << "complete -c fedbits -n '" << when << "' -f -a '" << names << "'\n";
  };
  const std::string seen = "__fish_seen_subcommand_from ", in_list = seen + "list; and ";
  offer(in_list + "not " + seen + names_of_lists(), names_of_lists());
  for (const auto& [title, role] : listed_roles()) offer(in_list + seen + title, names_of_parts(role));
  const std::string in_data = seen + "data; and not " + seen + "list; and ";
  offer(in_data + "not " + seen + kDataActions, kDataActions);
  offer(in_data + seen + kDataActions, names_of_data());
  offer(seen + "check", names_of_all_parts());
}

// ---- the manual page ---------------------------------------------------------------------------------------------------------

// A line that begins with a point or a quote would be a request.
std::string roff(const std::string& text) {
  std::string safe = replaced(replaced(text, "\\", "\\e"), "-", "\\-");
  safe = replaced(safe, "\n.", "\n\\&.");
  return safe.starts_with('.') || safe.starts_with('\'') ? "\\&" + safe : safe;
}

void write_example(const std::string& footer, std::ostream& out) {
  if (!footer.empty()) out << ".PP\n.nf\n" << roff(footer) << "\n.fi\n";
}

void write_command(const Command& command, std::ostream& out) {
  out << ".SS " << command.name;
  for (const Positional& positional : command.positionals) out << " " << positional.name;
  out << "\n" << roff(command.text) << ".\n";
  for (const Positional& positional : command.positionals) out << ".TP\n.I " << positional.name << "\n" << roff(positional.text) << "\n";
  for (const Flag& flag : command.flags) {
    out << ".TP\n.B ";
    for (std::size_t i = 0; i < flag.names.size(); ++i) out << (i > 0 ? ", " : "") << roff(flag.names[i]);
    out << (flag.value.empty() ? "" : " " + flag.value) << "\n" << roff(flag.text) << "\n";
  }
  write_example(command.footer, out);
}

}  // namespace

void write_bash_completion(const CLI::App& app, std::ostream& out) {
  const std::vector<Command> commands = commands_of(app);
  out << "# bash completion of fedbits, made by `fedbits completion bash`\n"
         "_fedbits() {\n"
         "  local word=${COMP_WORDS[COMP_CWORD]} words names=\n"
         "  if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
         "    words=\""
      << names_of(commands) << " " << words_of(describe(app))
      << "\"\n"
         "  else\n"
         "    case ${COMP_WORDS[1]} in\n";
  for (const Command& command : commands) out << "      " << command.name << ") words=\"" << words_of(command) << "\" ;;\n";
  out << "    esac\n"
         "  fi\n"
         "  [ \"$COMP_CWORD\" -ne 1 ] || names=$words\n";
  write_bash_names(out);
  out << "  COMPREPLY=()\n"
         "  # Files, unless an option, a command or a name is being typed.\n"
         "  case $word in\n"
         "    -*) mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$word\") ;;\n"
         "    *) [ -z \"$names\" ] || mapfile -t COMPREPLY < <(compgen -W \"$names\" -- \"$word\") ;;\n"
         "  esac\n"
         "}\n"
         "complete -o default -F _fedbits fedbits\n";
}

void write_zsh_completion(const CLI::App& app, std::ostream& out) {
  // In a specification of _arguments, brackets and colons end the text.
  const auto text = [](const std::string& t) { return replaced(replaced(replaced(t, "[", "("), "]", ")"), ":", ";"); };
  const std::vector<Command> commands = commands_of(app);
  out << "#compdef fedbits\n"
         "# zsh completion of fedbits, made by `fedbits completion zsh`\n"
         "_fedbits() {\n"
         "  local -a commands=(\n";
  for (const Command& command : commands) out << "    " << quoted(command.name + ":" + text(command.text)) << "\n";
  out << "  )\n"
         "  if (( CURRENT == 2 )); then\n"
         "    _describe command commands\n"
         "    return\n"
         "  fi\n"
         "  case $words[2] in\n";
  for (const Command& command : commands) {
    out << "    " << command.name << ")\n";
    if (command.name == "list") {
      out << "      local -a names=()\n      case $words[3] in\n";
      for (const auto& [title, role] : listed_roles()) out << "        " << title << ") names=(" << names_of_parts(role) << ") ;;\n";
      out << "      esac\n";
    }
    out << "      _arguments \\\n";
    for (const Flag& flag : command.flags)
      for (const std::string& name : flag.names)
        out << "        " << quoted("*" + name + "[" + text(flag.text) + "]" + (flag.value.empty() ? "" : ":" + name + ":_files"))
            << " \\\n";
    write_zsh_names(command.name, out);
    out << "      ;;\n";
  }
  out << "  esac\n"
         "}\n"
         "_fedbits \"$@\"\n";
}

void write_fish_completion(const CLI::App& app, std::ostream& out) {
  const std::vector<Command> commands = commands_of(app);
  out << "# fish completion of fedbits, made by `fedbits completion fish`\n";
  for (const Command& command : commands)
    out << "complete -c fedbits -n __fish_use_subcommand -f -a " << command.name << " -d " << quoted(command.text) << "\n";
  for (const Command& command : commands)
    for (const Flag& flag : command.flags) {
      out << "complete -c fedbits -n '__fish_seen_subcommand_from " << command.name << "'";
      for (const std::string& name : flag.names) out << (name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1));
      out << (flag.value.empty() ? "" : " -r") << " -d " << quoted(flag.text) << "\n";
    }
  write_fish_names(out);
}

void write_manual_page(const CLI::App& app, std::ostream& out) {
  out << ".\\\" made by `fedbits manual`\n.TH FEDBITS 1 \"\" \"fedbits " FL_VERSION "\" \"User Commands\"\n"
      << ".SH NAME\nfedbits \\- federated\\-learning simulator that counts every bit\n"
      << ".SH SYNOPSIS\n.B fedbits\n.I COMMAND\n.RI [ OPTIONS ]\n"
      << ".SH DESCRIPTION\n"
      << roff(app.get_description())
      << "\nA scenario file says what is simulated; results are kept in one SQLite file and exported as CSV or JSON.\n"
      << ".SH COMMANDS\n";
  for (const Command& command : commands_of(app)) write_command(command, out);
  out << ".SH EXIT STATUS\n"
         ".TP\n0\ndone\n"
         ".TP\n1\na run failed or diverged, a check failed, or writing failed later\n"
         ".TP\n2\nbad input, or output that is unwritable at the start\n"
         ".TP\n130, 143\ninterrupted, terminated\n"
         ".SH ENVIRONMENT\n"
         ".TP\n.B FEDBITS_DATA\nfolder with data sets, where \\-\\-data is not given\n"
         ".SH FILES\n"
         ".TP\n.I fedbits\\-out/results.sqlite\nthe store of results, unless \\-\\-out names another folder\n"
         ".SH EXAMPLES\n.nf\n"
      << roff(app.get_footer()) << "\n.fi\n";
}

}  // namespace fl
