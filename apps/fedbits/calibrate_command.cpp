// `fedbits calibrate`: measures the rates of this machine once, and writes them as the table [devices] of a scenario.
#include <CLI/CLI.hpp>
#include <cmath>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>

#include "apps/fedbits/commands.hpp"
#include "apps/fedbits/run_support.hpp"
#include "study/machine/machine_rates.hpp"
#include "study/output/output_file.hpp"

namespace fl {

namespace {

struct CalibrateArguments {
  double seconds = 2;
  std::string output;
};

// Returns a rate with three digits: more would not be the same the next time.
std::string rounded(double rate) {
  std::ostringstream text;
  text.precision(3);
  text << rate;
  return text.str();
}

std::string table_of(const MachineRates& rates) {
  return "# One thread of this machine, as `fedbits calibrate` measured it. A phone or a sensor is slower: divide both rates.\n"
         "[devices]\n"
         "kind = \"constant\"\n"
         "flops = " +
         rounded(rates.flops) + "      # operations per second\nbandwidth = " + rounded(rates.bandwidth) +
         "  # bytes per second, from and to memory\n";
}

int calibrate(const CalibrateArguments& arguments) {
  catch_signals(false);
  const std::string table = table_of(measure_rates(arguments.seconds));
  std::cout << table;
  if (arguments.output.empty()) return 0;
  OutputFile file(arguments.output);
  file.stream() << table;
  file.close();
  file.rename();
  return 0;
}

}  // namespace

void add_calibrate_command(CLI::App& app, const Guard& guard) {
  auto arguments = std::make_shared<CalibrateArguments>();
  CLI::App* command = app.add_subcommand("calibrate", "measure this machine's rates, for [devices] of a scenario with simulated time");
  command->add_option("--seconds", arguments->seconds, "how long the two measurements take together")
      ->capture_default_str()
      ->check(CLI::Range(0.001, 3600.0));
  command->add_option("-o,--output", arguments->output, "also write the table to this file");
  command->footer("Examples:\n  fedbits calibrate\n  fedbits calibrate --seconds 10 -o devices.toml");
  command->callback([arguments, guard] { guard([&] { return calibrate(*arguments); }); });
}

}  // namespace fl
