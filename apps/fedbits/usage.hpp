// What a person is told whose command line cannot be read: which word, what is allowed, and the nearest name.
#pragma once

#include <string>

namespace CLI {  // NOLINT(readability-identifier-naming): a library's
class App;
}

namespace fl {

// "fedbits sweep: there is no option --thread; did you mean --threads?"; "" where the words after the command are known, or there is no
// word. After a parse that failed.
[[nodiscard]] std::string unknown_word_text(const CLI::App& app);

}  // namespace fl
