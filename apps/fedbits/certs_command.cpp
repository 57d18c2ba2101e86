// `fedbits certs`: creates, renews, revokes and lists the certificates that `fedbits serve --certs` and `fedbits join --certs` use.
#include <CLI/CLI.hpp>
#include <iostream>

#include "apps/fedbits/commands.hpp"
#include "apps/fedbits/terminal.hpp"
#include "fl_core/config/error.hpp"
#include "fl_core/config/key_error.hpp"
#include "net/transport/certificate_authority.hpp"

namespace fl {

namespace {

struct CertsArguments {
  std::string action, folder, name;
  std::uint32_t clients = 0, per_peer = 1;
  int days = net::AuthorityRequest{}.days;
  std::vector<std::string> server;
  bool revokes_old = false;
};

// Throws ConfigError for an option that the action does not have.
void check_options(const CLI::App& command, const CertsArguments& arguments) {
  for (const char* option : {"--clients", "--per-peer", "--server"})
    if (command.count(option) > 0 && arguments.action != "init") throw key_error(option, "belongs to `fedbits certs init`");
  if (command.count("--days") > 0 && arguments.action != "init" && arguments.action != "renew")
    throw key_error("--days", "belongs to `fedbits certs init` and `fedbits certs renew`");
  if (command.count("--revoke-old") > 0 && arguments.action != "renew") throw key_error("--revoke-old", "belongs to `fedbits certs renew`");
  if (!arguments.name.empty() && arguments.action != "revoke" && arguments.action != "renew")
    throw ConfigError("certs: " + arguments.action + " takes a folder and no name, not '" + arguments.name + "'");
}

int init(const CertsArguments& arguments) {
  net::AuthorityRequest request{
      .folder = arguments.folder, .num_clients = arguments.clients, .per_peer = arguments.per_peer, .days = arguments.days};
  if (request.num_clients == 0) throw key_error("--clients", "says how many clients the federation has; at least 1");
  if (!arguments.server.empty()) request.server = arguments.server;
  const std::vector<std::string> names = net::create_authority(request);
  std::cout << arguments.folder << ": an authority, the server's certificate for";
  for (const std::string& name : request.server) std::cout << ' ' << name;
  std::cout << ", and " << names.size() << (names.size() == 1 ? " peer's: " : " peers': ") << names.front()
            << (names.size() > 1 ? " to " + names.back() : "") << "; valid for " << request.days << " days\n";
  return 0;
}

int revoke(const CertsArguments& arguments) {
  if (arguments.name.empty()) throw ConfigError("certs: which certificate? `fedbits certs list DIR` lists their names");
  net::revoke_certificate(arguments.folder, arguments.name);
  std::cout << arguments.name << " is revoked; a server with this folder refuses it from now on\n";
  return 0;
}

int renew(const CertsArguments& arguments) {
  if (arguments.name.empty()) throw ConfigError("certs: which certificate? `fedbits certs list DIR` lists their names");
  const std::string end = net::renew_certificate(
      {.folder = arguments.folder, .name = arguments.name, .days = arguments.days, .revokes_old = arguments.revokes_old});
  std::cout << arguments.name << " has a new key and a new certificate, valid until " << end << "; the old certificate "
            << (arguments.revokes_old ? "is revoked" : "stays valid until its end") << '\n';
  return 0;
}

int list(const CertsArguments& arguments) {
  Table table{{{"name", Align::left},
               {"clients", Align::left},
               {"valid until", Align::left},
               {"days left"},
               {"state", Align::left},
               {"serial", Align::left}},
              {}};
  for (const net::CertificateInfo& info : net::list_certificates(arguments.folder))
    table.rows.push_back({info.name, info.clients.empty() ? "-" : to_text(info.clients), info.valid_until, std::to_string(info.days_left),
                          info.is_revoked   ? "revoked"
                          : info.is_expired ? "expired"
                                            : "valid",
                          info.serial});
  print(table, std::cout);
  return 0;
}

int certs(const CLI::App& command, const CertsArguments& arguments) {
  if (arguments.action != "init" && arguments.action != "renew" && arguments.action != "revoke" && arguments.action != "list")
    throw ConfigError("certs: there is no '" + arguments.action + "'; the actions are init, renew, revoke and list");
  check_options(command, arguments);
  if (arguments.action == "init") return init(arguments);
  if (arguments.action == "renew") return renew(arguments);
  return arguments.action == "revoke" ? revoke(arguments) : list(arguments);
}

}  // namespace

void add_certs_command(CLI::App& app, const Guard& guard) {
  auto arguments = std::make_shared<CertsArguments>();
  CLI::App* command = app.add_subcommand("certs", "create, renew, revoke or list the certificates of a server and its peers");
  command
      ->add_option("ACTION", arguments->action,
                   "init: create a folder with an authority, the server's certificate and the peers'; renew: replace one by "
                   "another for the same server or clients; revoke: refuse one from now on; "
                   "list: show all")
      ->required();
  command->add_option("DIR", arguments->folder, "folder of certificates; init creates it and overwrites nothing")->required();
  command->add_option("NAME", arguments->name, "certificate to renew or revoke: client-7, clients-0-9, server");
  command->add_option("--clients", arguments->clients, "number of clients of the federation");
  command->add_option("--per-peer", arguments->per_peer, "clients of one certificate")->capture_default_str();
  command->add_option("--days", arguments->days, "how long the certificates are valid")->capture_default_str();
  command->add_flag("--revoke-old", arguments->revokes_old, "renew: revoke the old certificate, which is valid until its end otherwise");
  command
      ->add_option("--server", arguments->server,
                   "names and addresses under which peers reach the server (default: localhost, 127.0.0.1, ::1)")
      ->delimiter(',');
  command->footer(
      "Examples:\n"
      "  fedbits certs init certs --clients 20 --per-peer 10\n"
      "  fedbits certs renew certs clients-0-9 --days 90\n"
      "  fedbits certs revoke certs clients-10-19");
  command->callback([arguments, command, guard] { guard([&] { return certs(*command, *arguments); }); });
}

}  // namespace fl
