// `fedbits manual`: prints the manual page, generated from the command line's own description.
#include <CLI/CLI.hpp>
#include <string>

#include "apps/fedbits/command_line.hpp"
#include "apps/fedbits/completion.hpp"

namespace fl {
namespace {

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) text.replace(at, from.size(), to);
  return text;
}

// Escapes text for roff. A line that begins with a point or a quote would be a request.
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
         ".TP\n.B FEDBITS_DATA\nfolder with data sets, if \\-\\-data is not given\n"
         ".SH FILES\n"
         ".TP\n.I fedbits\\-out/results.sqlite\nthe store of results, unless \\-\\-out names another folder\n"
         ".SH EXAMPLES\n.nf\n"
      << roff(app.get_footer()) << "\n.fi\n";
}

}  // namespace fl
