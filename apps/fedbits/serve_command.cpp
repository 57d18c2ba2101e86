// `fedbits serve FILE --listen HOST:PORT`: runs the server of a run whose clients are other processes (`fedbits join`).
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <optional>

#include "apps/fedbits/address.hpp"
#include "apps/fedbits/commands.hpp"
#include "apps/fedbits/emulate_option.hpp"
#include "apps/fedbits/event_log.hpp"
#include "apps/fedbits/open_files.hpp"
#include "apps/fedbits/run_support.hpp"
#include "apps/fedbits/serve_watch.hpp"
#include "apps/fedbits/study_watch.hpp"
#include "fl_core/config/error.hpp"
#include "fl_core/config/key_error.hpp"
#include "fl_core/config/stopping.hpp"
#include "fl_core/memory/usable_cores.hpp"
#include "fl_core/state/checksum.hpp"
#include "net/server/peer_hub.hpp"
#include "net/server/remote_clients.hpp"
#include "net/transport/emulated_transport.hpp"
#include "net/transport/tls_transport.hpp"
#include "scenarios/experiment/server_data.hpp"
#include "scenarios/file/sweep.hpp"
#include "scenarios/plugins/plugins.hpp"
#include "scenarios/results/run_store.hpp"
#include "scenarios/sweep/cell_runner.hpp"
#include "study/machine/machine.hpp"
#include "study/machine/memory.hpp"
#include "study/output/numbers.hpp"
#include "study/results/store_folders.hpp"

namespace fl {

namespace {

// The data that the server reads: a folder of data sets, or a file without training rows.
struct ServedDataArguments {
  std::string folder, server_file;
};

struct ServeArguments {
  std::string file, listen = "127.0.0.1:0", certs, out, emulate;
  ServedDataArguments data;
  std::vector<std::string> settings, plugins;
  CheckpointArguments checkpoints;
  int threads = 0;
  net::Presence presence;
  bool again = false;
  int insecure = 0, verbose = 0;
  // The reports while runs are played: the address of --status, and the form of events.
  struct Told {
    bool quiet = false;
    std::string status;
    LogForm log = LogForm::sentences;
  } told;
};

// Returns the checkpoint plan of a run. Its checkpoint is small, because the clients' state is with the peers.
CheckpointPlan checkpoint_of(const std::string& hash, const std::string& out, const CheckpointArguments& arguments) {
  return {.file = checkpoint_folder(out) / (hash + ".checkpoint"),
          .every_rounds = arguments.rounds,
          .every_seconds = 60 * arguments.minutes,
          .resume = arguments.resume,
          .pages = {}};
}

// Prints the news of peers as sentences. As events they are told by the watch.
void tell_news(net::PeerHub& hub, const EventLog& log) {
  for (const std::string& line : hub.news())
    if (log.form() == LogForm::sentences) spdlog::warn("{}", line);
}

std::string text_of(const std::string& direction, std::uint64_t bytes, std::uint64_t frames, std::uint64_t payload) {
  return std::to_string(bytes) + " bytes " + direction + " (" + std::to_string(frames) + " frames, " + std::to_string(payload) +
         " bytes of payload)";
}

void tell_counts(const net::WireCounts& counts, const EventLog& log) {
  log.info("sockets",
           {{"bytes_in", counts.bytes_in},
            {"frames_in", counts.frames_in},
            {"payload_bytes_in", counts.payload_bytes_in},
            {"bytes_out", counts.bytes_out},
            {"frames_out", counts.frames_out},
            {"payload_bytes_out", counts.payload_bytes_out},
            {"late", counts.late}},
           "sockets: " + text_of("in", counts.bytes_in, counts.frames_in, counts.payload_bytes_in) + ", " +
               text_of("out", counts.bytes_out, counts.frames_out, counts.payload_bytes_out));
  if (log.form() != LogForm::sentences) return;
  if (counts.late > 0) spdlog::warn("{} answers came after their round", counts.late);
  for (const auto& [reason, times] : counts.refused) spdlog::warn("refused {} times: {}", times, reason);
}

// The objects that play the runs and report on them.
struct ServeRoom {
  const std::vector<Plugin>& plugins;
  CellRunner& runner;
  RunStore& store;
  net::PeerHub& hub;
  const EventLog& log;
  ServeWatch& watch;
  const std::string& out;
};

RunRecord serve_cell(const Cell& cell, const CheckpointPlan& checkpoint, const ServeRoom& room) {
  const auto show = [&](const RoundRow& row) {
    tell_news(room.hub, room.log);
    room.watch.add(cell, row);
    return caught_signal() == 0;
  };
  RunResult result = room.runner.run(cell, show, checkpoint);
  describe_machine(result.record, Device::cpu);
  result.record.plugins = plugins_used(cell.scenario, room.plugins);
  room.store.append(result.record, result.rows);
  if (is_finished(result.record.status)) remove_checkpoint(checkpoint);
  return result.record;
}

// Plays the cells whose results are not stored. Returns whether all runs are done.
bool serve_cells(const std::vector<Cell>& cells, const ServeArguments& arguments, const ServeRoom& room) {
  bool all_done = true;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::string hash = to_hex(cells[i].hash);
    const CheckpointPlan checkpoint = checkpoint_of(hash, room.out, arguments.checkpoints);
    try {
      const bool is_stored = !arguments.again && has_whole(room.store, hash, [](const std::string& text) { spdlog::warn("{}", text); });
      if (is_stored) remove_checkpoint(checkpoint);  // left by a process that was killed before it removed the file
      if (!is_stored) room.watch.begin(cells[i], i + 1, cells.size());
      const RunRecord record = is_stored ? room.store.record(hash) : serve_cell(cells[i], checkpoint, room);
      room.watch.end(record, is_stored);
      tell_news(room.hub, room.log);
      if (!arguments.told.quiet) std::cout << closing_line(record, arguments.verbose > 0 ? Hashes::shown : Hashes::hidden) << std::endl;
      all_done = all_done && record.status == RunStatus::done;
    } catch (const Stopped&) {
      break;
    } catch (const std::exception& error) {
      room.hub.set_farewell(std::string("its run has ended with an error: ") + error.what());
      throw;
    }
    if (caught_signal() != 0) break;
  }
  return all_done;
}

int serve(const ServeArguments& arguments) {
  keep_freed_memory();
  const EventLog log(arguments.told.log, arguments.told.quiet, arguments.verbose);
  const std::vector<Plugin> plugins = load_plugins(arguments.plugins);
  const DataCatalog catalog(arguments.data.folder);
  std::optional<ServerData> server_data;
  if (!arguments.data.server_file.empty()) server_data = ServerData::read(arguments.data.server_file);
  const std::vector<Cell> cells = read_cells(arguments.file, arguments.settings, server_data ? nullptr : &catalog);
  for (const Cell& cell : cells)
    if (cell.needs_tuning()) throw ConfigError("serve plays runs as they are: tune the study with `fedbits sweep` first");
  const Address address = parse_address("--listen", arguments.listen);
  require_protection(address, arguments.certs, arguments.insecure);
  const auto transport = arguments.certs.empty() ? net::plain_transport() : net::tls_server_transport(arguments.certs);
  const int threads = arguments.threads > 0 ? arguments.threads : usable_cores();
  catch_signals(arguments.told.quiet || log.form() != LogForm::sentences);
  const auto goes_on = [] { return caught_signal() == 0; };

  const std::string out = arguments.out.empty() ? default_folder(cells).string() : arguments.out;
  RunStore store = RunStore::open(out, RunStore::Mode::create);
  store.probe_writable();
  if (!arguments.checkpoints.resume && !arguments.again) refuse_begun_runs(store, cells, out);
  refuse_other_plan(store, cells);
  net::PeerHub hub({.host = address.host,
                    .port = address.port,
                    .transport = with_emulation(arguments.emulate, transport, net::kServerPlace),
                    .ready_limit = std::chrono::milliseconds(static_cast<std::int64_t>(1000 * arguments.presence.ready_limit_s))});
  spdlog::info("at most {} connections and files at the same time (ulimit -Hn)", raise_open_files());
  std::cout << "listening at " << address.host << ':' << hub.port() << std::endl;
  log.info("listening", {{"address", address.host + ":" + std::to_string(hub.port())}});
  ServeWatch watch(hub, cells, arguments.told.status, log);
  net::RemoteSource clients(hub, goes_on, arguments.presence);
  CellRunner runner(DataCatalog(arguments.data.folder),
                    {.threads = threads, .source = &clients, .server_data = server_data ? &*server_data : nullptr});
  bool all_done = true;
  try {
    all_done = serve_cells(cells, arguments, {plugins, runner, store, hub, log, watch, out});
  } catch (const std::exception& error) {
    watch.close("failed", error.what());
    throw;
  }
  tell_counts(hub.counts(), log);
  watch.close(caught_signal() != 0 ? "interrupted" : all_done ? "done" : "failed", all_done ? "" : "some runs have no result");
  if (caught_signal() != 0) {
    hub.set_farewell("it is stopped; `fedbits serve --resume` and `fedbits join --state` go on from its last checkpoint");
    return exit_code_of(caught_signal());
  }
  return all_done ? 0 : 1;
}

void add_presence_options(CLI::App& command, net::Presence& presence) {
  command.add_option("--min-clients", presence.min_clients,
                     "begin when this number of clients is hosted (default: all); those that nobody hosts are absent from a round");
  command
      .add_option("--deadline", presence.deadline_s,
                  "seconds of a round: a client that has not answered then is absent from it (default: none)")
      ->check(CLI::Range(0.001, 1e6));
  command
      .add_option("--patience", presence.patience_s,
                  "seconds to wait for a peer that has left, or that --resume needs, before the run ends")
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str();
  command
      .add_option("--ready-limit", presence.ready_limit_s,
                  "seconds in which a peer that was told of a run has to be ready for it; then it has to connect again")
      ->check(CLI::Range(0.001, 1e6))
      ->capture_default_str();
  command
      .add_option("--over-select", presence.over_select,
                  "ask this multiple of a round's clients, and go on when the round has its number of messages")
      ->check(CLI::Range(1.0, 1e6))
      ->capture_default_str();
}

}  // namespace

void add_serve_command(CLI::App& app, const Guard& guard) {
  auto arguments = std::make_shared<ServeArguments>();
  CLI::App* command = app.add_subcommand("serve", "play a scenario with clients in other processes, which `fedbits join`");
  command->add_option("FILE", arguments->file, "scenario file (TOML)")->required();
  command->add_option("--listen", arguments->listen, "HOST:PORT; port 0 = any that is free")->capture_default_str();
  command->add_option("--certs", arguments->certs,
                      "folder of certificates (fedbits certs init): TLS 1.3, and each peer proves its clients");
  command->add_flag("--insecure", arguments->insecure, "plain TCP, which anybody can read and change; twice: for other machines, too");
  add_emulate_option(*command, arguments->emulate);
  command->add_option("--out", arguments->out, "folder of the results (default: fedbits-out/NAME)");
  command->add_option("--data", arguments->data.folder, "folder of data sets (default: $FEDBITS_DATA)");
  command->add_option("--server-data", arguments->data.server_file,
                      "file of `fedbits plan --server-data` to read instead of data sets: the clients alone have training rows");
  command->add_option("--set", arguments->settings, "KEY=VALUE: replaces a value of the file");
  command->add_option("--plugin", arguments->plugins, "shared library with further parts");
  command->add_option("--threads", arguments->threads,
                      "threads of the server (default: the cores that this process may use); results do not depend on it");
  add_presence_options(*command, arguments->presence);
  command->add_flag("--resume", arguments->checkpoints.resume,
                    "continue: finished runs are kept, begun ones continue from their checkpoints");
  command->add_flag("--again", arguments->again, "repeat runs that are stored")->excludes("--resume");
  command->add_option("--checkpoint-rounds", arguments->checkpoints.rounds, "write a checkpoint every N rounds");
  command->add_option("--checkpoint-minutes", arguments->checkpoints.minutes, "write a checkpoint every N minutes; 0 = never")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 1e6));
  add_status_option(*command, arguments->told.status);
  add_log_option(*command, arguments->told.log);
  command->add_flag("-q,--quiet", arguments->told.quiet, "errors only");
  command->add_flag("-v,--verbose", arguments->verbose, "say more");
  command->footer("Example: fedbits serve scenarios/library/quickstart.toml --listen 127.0.0.1:7000 --insecure");
  command->callback([arguments, guard] { guard([&] { return serve(*arguments); }); });
}

}  // namespace fl
