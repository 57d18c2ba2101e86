// What the help calls the values of options: FOLDER and KEY=VALUE say more than the library's TEXT and UINT.
#pragma once

namespace CLI {  // NOLINT(readability-identifier-naming): a library's
class App;
}

namespace fl {

// Names the values of all commands that are there by now. An option with a value that has no name here keeps the library's.
void name_values(CLI::App& app);

}  // namespace fl
