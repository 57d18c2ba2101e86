#include "apps/fedbits/study_watch.hpp"

#include <spdlog/spdlog.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "apps/fedbits/run_support.hpp"
#include "fl_core/config/key_error.hpp"

namespace fl {

void add_status_option(CLI::App& command, std::string& address) {
  command.add_option("--status", address,
                     "[HOST:]PORT: show the state to browsers at / and to Prometheus at /metrics while it runs; port 0 = any");
}

Address status_address(const std::string& text) {
  const bool is_port = !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
  Address address = parse_address("--status", is_port ? "127.0.0.1:" + text : text);
  if (address.host == "localhost") address.host = "127.0.0.1";
  if (address.host != "127.0.0.1" && address.host != "::1")
    spdlog::warn("--status: everybody who reaches {} can read the state; it is sent without encryption, and nobody is asked for a password",
                 address.host);
  return address;
}

std::string status_url(const Address& address, std::uint16_t port) {
  const bool is_v6 = address.host.find(':') != std::string::npos;
  return "http://" + (is_v6 ? "[" + address.host + "]" : address.host) + ":" + std::to_string(port) + "/";
}

int watched(StudyWatch& watch, const std::function<int()>& command) {
  try {
    const int code = command();
    const bool is_interrupted = caught_signal() != 0;
    watch.close(is_interrupted ? "interrupted"
                : code == 0    ? "done"
                               : "failed",
                code == 0 || is_interrupted ? "" : "some runs have no result");
    return code;
  } catch (const std::exception& error) {
    watch.close("failed", error.what());
    throw;
  }
}

}  // namespace fl
