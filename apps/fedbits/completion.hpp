// Texts that are made from the command line's own description, so that they cannot fall behind it: completion for three shells and the
// manual page.
#pragma once

#include <ostream>

namespace CLI {  // NOLINT(readability-identifier-naming): a library's
class App;
}

namespace fl {

void write_bash_completion(const CLI::App& app, std::ostream& out);
void write_zsh_completion(const CLI::App& app, std::ostream& out);
void write_fish_completion(const CLI::App& app, std::ostream& out);
void write_manual_page(const CLI::App& app, std::ostream& out);  // roff, section 1

}  // namespace fl
