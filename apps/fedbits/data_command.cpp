// `fedbits data`: lists the known data sets and their locations, describes one, and downloads one from its publisher.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <iostream>

#include "apps/fedbits/commands.hpp"
#include "apps/fedbits/data_shard.hpp"
#include "apps/fedbits/terminal.hpp"
#include "fl_core/config/error.hpp"
#include "fl_core/config/key_error.hpp"
#include "fl_core/config/meanings.hpp"
#include "fl_core/config/printable.hpp"
#include "scenarios/data/catalog.hpp"
#include "scenarios/data/fetch/fetch.hpp"

namespace fl {

namespace {

struct DataArguments {
  std::string action;
  std::vector<std::string> names;
  std::string folder, from;
  bool verify = false;
  ShardArguments shard;
};

const DataInfo& need_info(const std::string& name) {
  if (const DataInfo* info = find_data_info(name)) return *info;
  std::vector<std::string> names;
  for (const DataInfo& info : known_data()) {
    names.push_back(info.name);
    names.push_back(info.name.substr(info.name.rfind('/') + 1));
  }
  throw ConfigError("data: there is no known data set \"" + name + "\"" + did_you_mean(name, names, Sought::value) +
                    " (`fedbits data` lists them)");
}

int list(const DataArguments& arguments) {
  const DataCatalog catalog(arguments.folder);
  Table table{{{"name", Align::left}, {"rows"}, {"features"}, {"classes"}, {"state", Align::left}, {"where", Align::left}}, {}};
  bool good = true;
  std::string findings;
  for (const DataListing& entry : arguments.verify ? catalog.verify() : catalog.list()) {
    table.rows.push_back({entry.info.name, std::to_string(entry.info.rows),
                          entry.info.shape.empty() ? std::to_string(entry.info.features) : entry.info.shape,
                          std::to_string(entry.info.classes), to_string(entry.state), entry.where});
    if (!entry.found.empty()) findings += entry.info.name + ": " + entry.found + "\n";
    good = good && entry.state != DataState::differs;
  }
  print(table, std::cout);
  std::cout << findings;
  return good ? 0 : 1;
}

int show(const DataArguments& arguments) {
  for (const std::string& name : arguments.names) {
    const DataInfo& info = need_info(name);
    std::cout << info.name << "\n  " << info.description << "\n  " << info.rows << " rows of "
              << (info.shape.empty() ? std::to_string(info.features) + " features" : info.shape) << ", " << info.classes << " classes"
              << "\n  licence: " << (info.licence.empty() ? "none stated" : info.licence) << "\n  publisher: " << info.publisher << '\n';
    for (const DataFile& file : info.files)
      std::cout << "  " << file.path << "\n      sha256 " << (file.sha256.empty() ? "not known" : file.sha256)
                << (file.url.empty() ? "" : "\n      from " + file.url) << (file.member.empty() ? "" : ", " + file.member)
                << (file.download_sha256.empty() ? "" : "\n      which has sha256 " + file.download_sha256) << '\n';
  }
  return 0;
}

// Returns the folder that --data names, else FEDBITS_DATA, else ./data.
std::filesystem::path target_folder(const std::string& folder) {
  if (!folder.empty()) return folder;
  const char* environment = std::getenv("FEDBITS_DATA");
  return environment != nullptr && *environment != '\0' ? environment : "data";
}

// Reports the progress of downloads on stderr: one line that is redrawn on a terminal, otherwise one line per download.
class Reporter {
 public:
  Reporter() : style_(stderr_style()) {}

  [[nodiscard]] FetchListener listener() {
    return {[](const std::string& url) { std::cerr << url << '\n'; },
            [this](std::uint64_t done, std::uint64_t total) { draw(done, total); },
            [this](const std::filesystem::path& file, bool was_there) {
              erase();
              std::cout << file.string() << (was_there ? "  was there" : "") << std::endl;
            }};
  }
  ~Reporter() { erase(); }

 private:
  using Clock = std::chrono::steady_clock;
  void draw(std::uint64_t done, std::uint64_t total) {
    constexpr double kMegabyte = 1e6;
    const auto now = Clock::now();
    if (style_ != ProgressStyle::bar || now - drawn_at_ < std::chrono::milliseconds(100)) return;
    drawn_at_ = now;
    char text[96];
    if (total > 0)
      std::snprintf(text, sizeof text, "%.1f of %.1f MB  %.0f%%", static_cast<double>(done) / kMegabyte,
                    static_cast<double>(total) / kMegabyte, 100 * static_cast<double>(done) / static_cast<double>(total));
    else
      std::snprintf(text, sizeof text, "%.1f MB", static_cast<double>(done) / kMegabyte);
    write_sequence(std::cerr, "\r\x1b[K");
    std::cerr << "  " << text << std::flush;
    is_drawn_ = true;
  }
  void erase() {
    if (is_drawn_) {
      write_sequence(std::cerr, "\r\x1b[K");
      std::cerr << std::flush;
    }
    is_drawn_ = false;
  }

  ProgressStyle style_;
  Clock::time_point drawn_at_{};
  bool is_drawn_ = false;
};

int fetch(const DataArguments& arguments) {
  std::vector<const DataInfo*> wanted;
  for (const std::string& name : arguments.names) wanted.push_back(&need_info(name));
  Reporter reporter;
  for (const DataInfo* info : wanted)
    fetch_data(*info, {.folder = target_folder(arguments.folder), .from = arguments.from}, reporter.listener());
  return 0;
}

// Throws ConfigError for an option that only a shard has.
void check_shard_options(const CLI::App& command, const std::string& action) {
  for (const char* option : {"--clients", "--out", "--set", "--plugin", "--threads"})
    if (command.count(option) > 0 && action != "shard") throw key_error(option, "belongs to `fedbits data shard FILE`");
}

int shard(const DataArguments& arguments) {
  if (arguments.names.size() != 1) throw ConfigError("data: shard takes one scenario file, as in `fedbits data shard FILE --clients 0-4`");
  ShardArguments asked = arguments.shard;
  asked.scenario = arguments.names.front();
  asked.data = arguments.folder;
  return write_shard(asked);
}

int data(const CLI::App& command, const DataArguments& arguments) {
  check_shard_options(command, arguments.action);
  if (!arguments.from.empty() && arguments.action != "fetch")
    throw ConfigError("data: --from needs fetch, as in `fedbits data fetch NAME --from URL`");
  if (arguments.verify && !arguments.action.empty()) throw ConfigError("data: --verify cannot be combined with " + arguments.action);
  if (arguments.action.empty()) return list(arguments);
  if (arguments.action == "shard") return shard(arguments);
  if (arguments.action != "fetch" && arguments.action != "show")
    throw ConfigError("data: there is no '" + arguments.action +
                      "'; the actions are fetch, show and shard, and without one it lists the data sets");
  if (arguments.names.empty()) throw ConfigError("data: which data set? `fedbits data` lists their names");
  return arguments.action == "show" ? show(arguments) : fetch(arguments);
}

}  // namespace

void add_data_command(CLI::App& app, const Guard& guard) {
  auto arguments = std::make_shared<DataArguments>();
  CLI::App* command = app.add_subcommand("data", "list known data sets and where they were found, download them, or write clients' rows");
  command->add_option("ACTION", arguments->action,
                      "fetch: download data sets from their publishers; show: describe them; shard: write the rows of some clients of a "
                      "scenario, for `fedbits join --shard`");
  command->add_option("NAME", arguments->names, "data sets, for fetch and show; the scenario file, for shard");
  command->add_option("--data", arguments->folder, "folder with data sets (default: FEDBITS_DATA, ./data, the embedded set)");
  command->add_option(
      "--from", arguments->from,
      "fetch from copies of the publisher's files below this address (https://, or file:///FOLDER for files on this machine)");
  command->add_flag("--verify", arguments->verify, "compare each file with its checksum");
  command->add_option("--clients", arguments->shard.clients, "shard: the clients, as in 0-4,7");
  command->add_option("--out", arguments->shard.out, "shard: the file");
  command->add_option("--set", arguments->shard.settings, "shard: change a key: --set partition.alpha=0.1 (repeatable)")
      ->allow_extra_args(false);
  command->add_option("--plugin", arguments->shard.plugins, "shard: shared library with further parts");
  command->add_option("--threads", arguments->shard.threads, "shard: threads")->check(CLI::Range(1, 4096));
  command->footer(
      "Examples:\n"
      "  fedbits data --verify --data ~/datasets\n"
      "  fedbits data fetch fashion-mnist --data ~/datasets\n"
      "  fedbits data shard scenarios/library/quickstart.toml --clients 0-9 --out clients-0-9.shard");
  command->callback([arguments, command, guard] { guard([&] { return data(*command, *arguments); }); });
}

}  // namespace fl
