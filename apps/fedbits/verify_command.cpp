// `fedbits verify FOLDER`: checks that stores, checkpoints and page files are undamaged.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <iostream>

#include "apps/fedbits/commands.hpp"
#include "fl_core/config/error.hpp"
#include "study/results/verify.hpp"

namespace fl {

namespace {

namespace fs = std::filesystem;

// Returns the files to check in a folder and its subfolders, sorted by name. Links are not followed.
std::vector<fs::path> files_in(const fs::path& place) {
  std::error_code error;
  if (!fs::exists(place, error)) throw ConfigError("verify: " + place.string() + " does not exist");
  if (!fs::is_directory(place, error)) return {place};
  std::vector<fs::path> files;
  fs::recursive_directory_iterator at(place, error), end;
  for (; !error && at != end; at.increment(error))
    if (at->is_regular_file(error) && verifier_of(at->path()) != nullptr) files.push_back(at->path());
  if (error) throw ConfigError("verify: " + place.string() + " cannot be read: " + error.message());
  std::ranges::sort(files);
  return files;
}

int verify(const std::string& place, const std::string& pages) {
  std::size_t num_damaged = 0;
  const std::vector<fs::path> files = files_in(place);
  if (files.empty())
    throw ConfigError("verify: " + place + " holds neither results.sqlite nor a checkpoint; name the folder that was given with --out");
  for (const fs::path& file : files) {
    const Verifier verifier = verifier_of(file);
    const Verified verified = verifier != nullptr ? verifier(file, pages) : verify_store(file);
    if (!verified.summary.empty()) std::cout << file.string() << ": " << verified.summary << '\n';
    for (const std::string& damage : verified.damage) std::cout << file.string() << ": DAMAGED: " << damage << '\n';
    num_damaged += verified.damage.empty() ? 0 : 1;
  }
  std::cout << files.size() << (files.size() == 1 ? " file, " : " files, ") << num_damaged << " damaged\n";
  return num_damaged == 0 ? 0 : 1;
}

}  // namespace

void add_verify_command(CLI::App& app, const Guard& guard) {
  auto place = std::make_shared<std::string>(), pages = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("verify", "check that stored results and checkpoints are undamaged");
  command->add_option("FOLDER", *place, "folder with results.sqlite, checkpoints or page files, or one such file")->required();
  command->add_option("--state-folder", *pages, "folder of the page files, if the runs had that option (default: beside each checkpoint)");
  command->footer("Example: fedbits verify fedbits-out\nExit code: 0 nothing is damaged, 1 something is damaged, 2 bad input");
  command->callback([place, pages, guard] { guard([&] { return verify(*place, *pages); }); });
}

}  // namespace fl
