// `fedbits join HOST:PORT --clients 0-4`: hosts clients of a run whose server is another process (`fedbits serve`).
#include <spdlog/spdlog.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>
#include <iostream>
#include <optional>
#include <thread>

#include "apps/fedbits/address.hpp"
#include "apps/fedbits/commands.hpp"
#include "apps/fedbits/emulate_option.hpp"
#include "apps/fedbits/event_log.hpp"
#include "apps/fedbits/run_support.hpp"
#include "fl_core/config/key_error.hpp"
#include "fl_core/state/checksum.hpp"
#include "net/peer/join_session.hpp"
#include "net/transport/tls_transport.hpp"
#include "scenarios/plugins/plugins.hpp"
#include "study/machine/folder_lock.hpp"
#include "study/machine/machine_share.hpp"
#include "study/machine/memory.hpp"

namespace fl {

namespace {

struct JoinMemory {  // of the process, and of its clients' state
  std::string most, state, state_folder;
};

struct JoinRows {  // a folder of data sets, or the file of a shard
  std::string data, shard;
  std::vector<std::string> also_read;
};

// The reports about the session: whether there are any, and the form of events.
struct JoinReports {
  bool quiet = false;
  LogForm log = LogForm::sentences;
};

struct JoinArguments {
  std::string server, clients, certs, identity, emulate, state;
  JoinMemory memory;
  JoinRows rows;
  std::vector<std::string> plugins;
  int threads = 1;
  double patience_s = 60;
  int insecure = 0, verbose = 0;
  JoinReports told;
};

void write_event(const EventLog& log, const net::JoinEvent& event) {
  using Kind = net::JoinEvent::Kind;
  const EventLog::Fields run = {{"run", to_hex(event.run)}};
  const auto with = [&run](std::initializer_list<EventLog::Fields::value_type> more) {
    EventLog::Fields fields = run;
    fields.insert(fields.end(), more);
    return fields;
  };
  const std::uint64_t round = event.round, client = event.client;
  switch (event.kind) {
    case Kind::connected: return log.info("connected", {{"server", event.text}});
    case Kind::run_begun: return log.info("run_begun", with({{"clients", event.text}}));
    case Kind::round_closed: return log.debug("round", with({{"round", round}}));
    case Kind::refused: return log.warn("refused", with({{"round", round}, {"client", client}, {"reason", event.text}}));
    case Kind::run_ended: return log.info("run_ended", run);
  }
}

// Returns the events of a session as sentences, or as lines of the log.
net::JoinEvents events_of(const EventLog& log) {
  net::JoinEvents events;
  events.goes_on = [] { return caught_signal() == 0; };
  if (log.form() == LogForm::sentences) {
    events.say = [](const std::string& text) { spdlog::info("{}", text); };
  } else {
    events.say = [&log](const std::string& text) { log.debug("message", {{"message", text}}); };
    events.tell = [&log](const net::JoinEvent& event) { write_event(log, event); };
  }
  return events;
}

// Limits the memory of this process, whatever a server's scenario needs. Returns the limit of a data set.
MemoryLimit limit_memory(const std::string& most) {
  if (most.empty()) return {};
  const std::uint64_t bytes = parse_bytes("--memory", most);
  const rlimit limit{bytes, bytes};
  if (::setrlimit(RLIMIT_DATA, &limit) != 0) throw key_error("--memory", std::string("cannot be set: ") + std::strerror(errno));
  return {.option_bytes = bytes};
}

int join(const JoinArguments& arguments) {
  keep_freed_memory();
  const EventLog log(arguments.told.log, arguments.told.quiet, arguments.verbose);
  const MemoryLimit memory = limit_memory(arguments.memory.most);
  const std::vector<Plugin> plugins = load_plugins(arguments.plugins);
  const Address address = parse_address("HOST:PORT", arguments.server);
  require_protection(address, arguments.certs, arguments.insecure);
  if (!arguments.identity.empty() && arguments.certs.empty()) throw key_error("--identity", "names a certificate in the folder of --certs");
  const std::vector<net::ClientRange> clients = net::parse_client_ranges(arguments.clients);
  const auto transport =
      arguments.certs.empty() ? net::plain_transport() : net::tls_peer_transport(arguments.certs, arguments.identity, clients);
  static_cast<void>(DataCatalog::confined(arguments.rows.data, {arguments.rows.also_read.begin(), arguments.rows.also_read.end()}));
  std::shared_ptr<const ServerData> shard;
  if (!arguments.rows.shard.empty()) shard = std::make_shared<ServerData>(ServerData::read_shard(arguments.rows.shard));
  std::optional<FolderLock> lock;
  if (!arguments.state.empty()) lock.emplace(arguments.state, FolderLock::Holder{"join.lock", "`fedbits join`", "--state"});
  catch_signals(arguments.told.quiet || log.form() != LogForm::sentences);
  const net::JoinOptions options{.host = address.host,
                                 .port = address.port,
                                 .clients = clients,
                                 .machine = {.data = arguments.rows.data,
                                             .also_read = {arguments.rows.also_read.begin(), arguments.rows.also_read.end()},
                                             .memory = memory,
                                             .threads = arguments.threads,
                                             .paging = paging_of(arguments.memory.state, arguments.memory.state_folder),
                                             .shard = shard},
                                 .patience_s = arguments.patience_s,
                                 .transport = with_emulation(arguments.emulate, transport, clients.front().first),
                                 .state = arguments.state};
  const net::JoinResult result = net::join_server(options, events_of(log));
  log.info("ended", {{"runs", result.runs}, {"rounds", result.rounds}, {"bytes_in", result.bytes_in}, {"bytes_out", result.bytes_out}});
  if (result.was_stopped) return exit_code_of(caught_signal());
  if (!arguments.told.quiet)
    std::cout << result.runs << (result.runs == 1 ? " run, " : " runs, ") << result.rounds << " rounds, " << result.bytes_in
              << " bytes in, " << result.bytes_out << " bytes out" << std::endl;
  return 0;
}

}  // namespace

void add_join_command(CLI::App& app, const Guard& guard) {
  auto arguments = std::make_shared<JoinArguments>();
  CLI::App* command = app.add_subcommand("join", "host clients of a run that `fedbits serve` plays");
  command->add_option("SERVER", arguments->server, "HOST:PORT")->required();
  command->add_option("--clients", arguments->clients, "ids that this process hosts: 0-4,7")->required();
  command->add_option("--certs", arguments->certs, "folder with ca.pem and this peer's certificate and key: TLS 1.3");
  command->add_option("--identity", arguments->identity,
                      "name of the certificate (default: the one for these clients and the fewest others)");
  command->add_flag("--insecure", arguments->insecure, "plain TCP, which anybody can read and change; twice: to other machines, too");
  add_emulate_option(*command, arguments->emulate);
  command->add_option("--data", arguments->rows.data,
                      "folder of data sets (default: $FEDBITS_DATA); the server's scenario can name files below it and no others");
  command->add_option("--also-read", arguments->rows.also_read, "file or folder outside of --data that the server's scenario may name");
  command->add_option("--shard", arguments->rows.shard,
                      "file with the rows of these clients, from `fedbits data shard`; no other row is read");
  command->add_option("--plugin", arguments->plugins, "shared library with further parts");
  command->add_option("--threads", arguments->threads, "threads; results do not depend on it")->check(CLI::Range(1, 4096));
  command->add_option(
      "--state", arguments->state,
      "folder of the clients' state, from which another `fedbits join` goes on (default: a private one, removed at the end)");
  command->add_option("--memory", arguments->memory.most,
                      "memory of this process that a server's scenario may take, as in 4G (default: the machine's)");
  add_state_memory_option(*command, arguments->memory.state);
  command->add_option("--state-folder", arguments->memory.state_folder,
                      "where state beyond --state-memory lies (default: the folder of --state)");
  command->add_option("--patience", arguments->patience_s, "seconds for which a server that is gone is tried")->check(CLI::Range(0.0, 1e6));
  add_log_option(*command, arguments->told.log);
  command->add_flag("-q,--quiet", arguments->told.quiet, "errors only");
  command->add_flag("-v,--verbose", arguments->verbose, "say more");
  command->footer("Example: fedbits join 127.0.0.1:7000 --clients 0-4 --insecure");
  command->callback([arguments, guard] { guard([&] { return join(*arguments); }); });
}

}  // namespace fl
