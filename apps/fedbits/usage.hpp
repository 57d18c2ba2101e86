// Explains a command line that cannot be parsed: the wrong word, the allowed words, and the nearest name.
#pragma once

#include <string>

namespace CLI {  // NOLINT(readability-identifier-naming): a library's
class App;
}

namespace fl {

// Returns "fedbits sweep: there is no option --thread; did you mean --threads?"; "" if the words after the command are known, or if there
// is no word. Call after a failed parse.
[[nodiscard]] std::string unknown_word_text(const CLI::App& app);

}  // namespace fl
