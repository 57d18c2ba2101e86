// The commands of the binary. Each function adds one command with its options and description.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace CLI {  // NOLINT(readability-identifier-naming): a library's
class App;
}

namespace fl {

// Runs a command and turns its exceptions into messages and an exit code.
using Guard = std::function<void(const std::function<int()>&)>;

void add_run_command(CLI::App& app, const Guard& guard);
void add_sweep_command(CLI::App& app, const Guard& guard);
void add_plan_command(CLI::App& app, const Guard& guard);
void add_calibrate_command(CLI::App& app, const Guard& guard);
void add_suggest_command(CLI::App& app, const Guard& guard);
void add_export_command(CLI::App& app, const Guard& guard);
void add_report_command(CLI::App& app, const Guard& guard);
void add_verify_command(CLI::App& app, const Guard& guard);
void add_explain_command(CLI::App& app, const Guard& guard);
void add_model_command(CLI::App& app, const Guard& guard);
void add_list_command(CLI::App& app, const Guard& guard);
void add_data_command(CLI::App& app, const Guard& guard);
void add_check_command(CLI::App& app, const Guard& guard);
void add_serve_command(CLI::App& app, const Guard& guard);
void add_join_command(CLI::App& app, const Guard& guard);
void add_certs_command(CLI::App& app, const Guard& guard);
void add_completion_command(CLI::App& app, const Guard& guard);  // describes only the commands added before

// Returns pairs of a role's name for users and its name in the registry, for the lists of `fedbits list`.
[[nodiscard]] const std::vector<std::pair<std::string, std::string>>& listed_roles();

}  // namespace fl
