// Names the values of options in the help: FOLDER and KEY=VALUE instead of the library's TEXT and UINT.
#pragma once

namespace CLI {  // NOLINT(readability-identifier-naming): a library's
class App;
}

namespace fl {

// Sets the value names of all commands added so far. An option whose value has no name here keeps the library's name.
void name_values(CLI::App& app);

}  // namespace fl
