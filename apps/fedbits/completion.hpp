// Texts that are made from the command line's own description, so that they cannot fall behind it: completion and the manual page.
#pragma once

#include <ostream>
#include <string>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): a library's
class App;
}

namespace fl {

struct Candidate {
  std::string word, text;  // text: one line, "" for the name of a part
};

// Returns what the last of the words after `fedbits` can be completed to: commands, options, parts, data sets. An empty list means that a
// file is expected there.
[[nodiscard]] std::vector<Candidate> complete_words(const CLI::App& app, const std::vector<std::string>& words);

// Writes the function that asks `fedbits complete` for the words, in the language of a shell: bash, zsh or fish. Throws ConfigError for
// another one.
void write_completion(const std::string& shell, std::ostream& out);

void write_manual_page(const CLI::App& app, std::ostream& out);  // roff, section 1

}  // namespace fl
