#include "scenarios/file/time_sections.hpp"

#include <string>

#include "scenarios/file/section_fields.hpp"

namespace fl {

namespace {

// A table that scenarios may leave out, whose name is its role.
Section timed_section(const std::string& role, Part& part, const std::string& unwritten_kind, const std::string& doc) {
  Section section{.path = role, .doc = doc, .role = role, .part = &part};
  section.unwritten_kind = unwritten_kind;
  return section;
}

}  // namespace

Section devices_section(Part& part, ServerTiming& server) {
  Section section = timed_section("devices", part, "none",
                                  "How fast the clients compute. With this table or [network] a run has a clock of simulated time.");
  optional_number(section.keys, "server_flops", server.flops, "floating-point operations per second of the server; unset: it needs no time")
      .above(0)
      .unit("1/s");
  optional_number(section.keys, "server_bandwidth", server.bandwidth, "bytes per second of the server's memory; unset: it needs no time")
      .above(0)
      .unit("byte/s");
  section.validate = [&part, &server](Problems& problems) {
    if (part.kind != "none") return;
    const std::string why = "has no effect without kind, because computing then takes no time; give the clients devices, or drop the key";
    if (server.flops) problems.push_back({"server_flops", why});
    if (server.bandwidth) problems.push_back({"server_bandwidth", why});
  };
  return section;
}

Section network_section(Part& part, ServerTiming& server) {
  Section section = timed_section("network", part, "none", "How fast the clients' links are, both ways, and how late messages arrive.");
  const std::string fair = ", which share it max-min fairly; unset: it is not shared";
  const auto rate = [&](const char* key, std::optional<double>& value, const std::string& doc) {
    optional_number(section.keys, key, value, doc + fair).above(0).unit("bit/s");
  };
  rate("server_down", server.down, "rate of the server's link to all clients together");
  rate("server_up", server.up, "rate of the server's link from all clients together");
  section.validate = [&part, &server](Problems& problems) {
    if (part.kind != "none") return;
    const std::string why = "has no effect without kind, because messages then take no time; give the clients links, or drop the key";
    if (server.down) problems.push_back({"server_down", why});
    if (server.up) problems.push_back({"server_up", why});
  };
  return section;
}

Section availability_section(Part& part) {
  return timed_section("availability", part, "always", "When clients can be reached, in simulated time.");
}

Section delivery_section(Part& part) {
  return timed_section("delivery", part, "all",
                       "When a round stops waiting for the clients' messages, and whose messages count. Policies other than \"all\" need "
                       "times of arrival: those of [network] and [devices], or of a run over a network.");
}

Section asynchronous_section(Part& part) {
  return timed_section(
      "asynchronous", part, "none",
      "A server that steps along messages as they arrive, in simulated time: it needs [network] or [devices]. `rounds` are "
      "then its steps, and [participation] says how many clients are at work at the same time.");
}

}  // namespace fl
