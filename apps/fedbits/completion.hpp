// Generates the completion and the manual page from the command line's own description, so that they are always up to date.
#pragma once

#include <ostream>
#include <string>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): a library's
class App;
}

namespace fl {

struct Candidate {
  std::string word, text;  // text: one line; "" for the name of a part
};

// Returns the completions of the last of the words after `fedbits`: commands, options, parts, data sets. An empty list means that a file is
// expected there.
[[nodiscard]] std::vector<Candidate> complete_words(const CLI::App& app, const std::vector<std::string>& words);

// Writes the function that calls `fedbits complete`, in the language of a shell: bash, zsh or fish. Throws ConfigError for another shell.
void write_completion(const std::string& shell, std::ostream& out);

void write_manual_page(const CLI::App& app, std::ostream& out);  // roff, section 1

}  // namespace fl
