#include "checks/check.hpp"

namespace fl::checks {

std::vector<Check> checks_of(const std::string& role) {
  if (role == "model") return model_checks();
  if (role == "partitioner") return partitioner_checks();
  if (role == "delivery") return delivery_checks();
  if (role == "devices") return device_checks();
  if (role == "network") return network_checks();
  if (role == "availability") return availability_checks();
  if (role == "measure") return measure_checks();
  if (role == "postprocessor") return postprocessor_checks();
  if (role == "local_optimizer") return optimizer_checks();
  if (role != "compressor") return {};
  std::vector<Check> checks = compressor_checks();
  checks.insert(checks.end(), contract_checks().begin(), contract_checks().end());
  return checks;
}

}  // namespace fl::checks
