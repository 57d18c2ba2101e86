// `fedbits serve FILE --listen HOST:PORT`: runs the server of a run whose clients are other processes (`fedbits join`).
#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <thread>

#include "apps/fedbits/address.hpp"
#include "apps/fedbits/commands.hpp"
#include "apps/fedbits/emulate_option.hpp"
#include "apps/fedbits/machine.hpp"
#include "apps/fedbits/numbers.hpp"
#include "apps/fedbits/open_files.hpp"
#include "apps/fedbits/run_support.hpp"
#include "fl_core/config/error.hpp"
#include "fl_core/config/key_error.hpp"
#include "fl_core/state/checksum.hpp"
#include "net/emulated_transport.hpp"
#include "net/peer_hub.hpp"
#include "net/remote_clients.hpp"
#include "net/tls_transport.hpp"
#include "scenarios/file/sweep.hpp"
#include "scenarios/plugins/plugins.hpp"
#include "scenarios/results/run_store.hpp"
#include "scenarios/sweep/cell_runner.hpp"

namespace fl {

namespace {

struct ServeArguments {
  std::string file, listen = "127.0.0.1:0", certs, out, data, emulate;
  std::vector<std::string> settings, plugins;
  int threads = 0;
  net::Presence presence;
  bool again = false, quiet = false;
  int insecure = 0, verbose = 0;
};

void tell_news(net::PeerHub& hub) {
  for (const std::string& line : hub.news()) spdlog::warn("{}", line);
}

void tell_counts(const net::WireCounts& counts) {
  spdlog::info("sockets: {} bytes in ({} frames, {} bytes of payload), {} bytes out ({} frames, {} bytes of payload)", counts.bytes_in,
               counts.frames_in, counts.payload_bytes_in, counts.bytes_out, counts.frames_out, counts.payload_bytes_out);
  if (counts.late > 0) spdlog::warn("{} answers came after their round", counts.late);
  for (const auto& [reason, times] : counts.refused) spdlog::warn("refused {} times: {}", times, reason);
}

RunRecord serve_cell(const Cell& cell, CellRunner& runner, const std::vector<PluginUse>& plugins, RunStore& store, net::PeerHub& hub) {
  const auto show = [&hub](const RoundRow& row) {
    tell_news(hub);
    spdlog::debug("round {}", row.round);
    return caught_signal() == 0;
  };
  RunResult result = runner.run(cell, show);
  describe_machine(result.record, Device::cpu);
  result.record.plugins = plugins;
  store.append(result.record, result.rows);
  return result.record;
}

int serve(const ServeArguments& arguments) {
  choose_log_level(arguments.quiet, arguments.verbose);
  const std::vector<Plugin> plugins = load_plugins(arguments.plugins);
  const DataCatalog catalog(arguments.data);
  const std::vector<Cell> cells = read_cells(arguments.file, arguments.settings, &catalog);
  for (const Cell& cell : cells)
    if (cell.needs_tuning()) throw ConfigError("serve plays runs as they are: tune the study with `fedbits sweep` first");
  const Address address = parse_address("--listen", arguments.listen);
  require_protection(address, arguments.certs, arguments.insecure);
  const auto transport = arguments.certs.empty() ? net::plain_transport() : net::tls_server_transport(arguments.certs);
  const int threads = arguments.threads > 0 ? arguments.threads : static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  catch_signals();
  const auto goes_on = [] { return caught_signal() == 0; };

  RunStore store = RunStore::open(arguments.out.empty() ? default_folder(cells).string() : arguments.out, RunStore::Mode::create);
  store.probe_writable();
  net::PeerHub hub(
      {.host = address.host, .port = address.port, .transport = with_emulation(arguments.emulate, transport, net::kServerPlace)});
  spdlog::info("at most {} connections and files at the same time (ulimit -Hn)", raise_open_files());
  std::cout << "listening at " << address.host << ':' << hub.port() << std::endl;
  net::RemoteSource clients(hub, goes_on, arguments.presence);
  CellRunner runner(DataCatalog(arguments.data), {.threads = threads, .source = &clients});
  bool all_done = true;
  for (const Cell& cell : cells) {
    const std::string hash = to_hex(cell.hash);
    try {
      const RunRecord record = !arguments.again && has_everything(store, hash, {})
                                   ? store.record(hash)
                                   : serve_cell(cell, runner, plugins_used(cell.scenario, plugins), store, hub);
      tell_news(hub);
      if (!arguments.quiet) std::cout << closing_line(record, arguments.verbose > 0 ? Hashes::shown : Hashes::hidden) << std::endl;
      all_done = all_done && record.status == RunStatus::done;
    } catch (const net::Interrupted&) {
      break;
    }
    if (!goes_on()) break;
  }
  tell_counts(hub.counts());
  if (caught_signal() != 0) return exit_code_of(caught_signal());
  return all_done ? 0 : 1;
}

void add_presence_options(CLI::App& command, net::Presence& presence) {
  command.add_option("--min-clients", presence.min_clients,
                     "begin when this number of clients is hosted (default: all); those that nobody hosts are absent from a round");
  command
      .add_option("--deadline", presence.deadline_s,
                  "seconds of a round: a client that has not answered then is absent from it (default: none)")
      ->check(CLI::Range(0.001, 1e6));
  command.add_option("--patience", presence.patience_s, "seconds to wait for a peer that has left, before the run ends")
      ->check(CLI::Range(0.0, 1e6))
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
  command->add_option("scenario", arguments->file, "scenario file")->required();
  command->add_option("--listen", arguments->listen, "HOST:PORT; port 0 = any that is free")->capture_default_str();
  command->add_option("--certs", arguments->certs,
                      "folder of certificates (fedbits certs init): TLS 1.3, and each peer proves its clients");
  command->add_flag("--insecure", arguments->insecure, "plain TCP, which anybody can read and change; twice: for other machines, too");
  add_emulate_option(*command, arguments->emulate);
  command->add_option("--out", arguments->out, "folder of the results (default: fedbits-out/NAME)");
  command->add_option("--data", arguments->data, "folder of data sets (default: $FEDBITS_DATA)");
  command->add_option("--set", arguments->settings, "KEY=VALUE: replaces a value of the file");
  command->add_option("--plugin", arguments->plugins, "shared library with further parts");
  command->add_option("--threads", arguments->threads, "threads of the server (default: all cores); results do not depend on it");
  add_presence_options(*command, arguments->presence);
  command->add_flag("--again", arguments->again, "repeat runs that are stored");
  command->add_flag("-q,--quiet", arguments->quiet, "errors only");
  command->add_flag("-v,--verbose", arguments->verbose, "say more");
  command->footer("Example: fedbits serve scenarios/library/quickstart.toml --listen 127.0.0.1:7000 --insecure");
  command->callback([arguments, guard] { guard([&] { return serve(*arguments); }); });
}

}  // namespace fl
