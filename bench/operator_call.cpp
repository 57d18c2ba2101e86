// An operator of the core behind C functions, as a shared library: one process then times the same call on the same vectors from C++ and
// from Python. python_ratios.py loads it.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "compressors/codec/finite.hpp"
#include "compressors/conversation.hpp"
#include "fl_core/config/error.hpp"
#include "fl_core/config/registry.hpp"
#include "fl_core/memory/workspace.hpp"
#include "fl_core/ops/norms.hpp"

namespace {

using namespace fl;

// One client with an operator, whose messages use the memory of the one before.
class Call {
 public:
  Call(const Options& options, const char* kind, std::size_t bucket, std::size_t parameters)
      : op_(make_part<Compressor<float>>("compressor", kind, options, Device::cpu, kPrecisionOf<float>)) {
    LayerTable table;
    table.layers.push_back({"all", 0, parameters, 1});
    scope_ = op_->adapt(make_scope(table, bucket == 0 ? ScopeKind::model : ScopeKind::bucket, static_cast<std::int64_t>(bucket), {}));
    if (op_->num_phases() > 1) throw ConfigError("an operator of several phases needs the mean of all clients");
    remembered_.resize(op_->client_state_size(scope_));
    shared_.resize(op_->cohort_state_size(scope_));
  }

  // Compresses p = error + x and keeps p - C(p).
  void compress(const float* x, float* error, std::uint32_t round) {
    Conversation<float> conversation(*op_, scope_, 42, shared_);
    conversation.open(round);
    Affine<float> input;
    input.add(1.0f, rows_view<const float>(error, 1, scope_.P)).add(1.0f, rows_view(x, 1, scope_.P));
    const std::uint32_t clients[] = {0};
    const BatchView<float> own = rows_view(remembered_.data(), 1, remembered_.size());
    Payload<float>* messages[] = {&message_};
    conversation.send(Exec{.workspace = &workspace_},
                      {.clients = clients,
                       .input = input,
                       .state = {StateRule::residual, rows_view(error, 1, scope_.P)},
                       .remembered = own,
                       .remember = own},
                      messages);
  }
  [[nodiscard]] bool message_is_finite() const { return codec::is_finite(message_.on_wire(), scope_); }
  [[nodiscard]] std::size_t parameters() const { return scope_.P; }

 private:
  std::unique_ptr<Compressor<float>> op_;
  Scope scope_;
  Workspace workspace_;
  Payload<float> message_;
  std::vector<float> remembered_, shared_;
};

// Sets one option from text such as "ratio=0.01" or "scaled=false".
void assign(Options& options, const std::string& text) {
  const std::size_t equals = text.find('=');
  const std::string name = text.substr(0, equals), value = text.substr(equals + 1);
  Schema schema = options.schema();
  Field* field = schema.find(name);
  if (field == nullptr) throw ConfigError("there is no option '" + name + "'");
  const bool is_logical = value == "true" || value == "false";
  if (const auto refused = field->assign(is_logical ? Value{value == "true"} : Value{std::stod(value)}))
    throw ConfigError(name + ": " + *refused);
}

}  // namespace

// `option`: one option as name=value, or empty. `bucket`: elements, 0 = the whole vector. Throws, and so ends the process, if they do not
// fit.
extern "C" __attribute__((visibility("default"))) void* operator_open(const char* kind, const char* option, std::size_t bucket,
                                                                      std::size_t parameters) {
  Options options = Registry::instance().default_options("compressor", kind);
  if (std::strlen(option) > 0) assign(options, option);
  return new Call(options, kind, bucket, parameters);
}

// Compresses x [P] with the error [P] of the client, which is overwritten. `checks`: 0 = none; 1 = the message has to be finite; 2 = the
// vector too, which is read before anything moves. Returns whether all that was checked is finite.
extern "C" __attribute__((visibility("default"))) int operator_compress(void* call, const float* x, float* error, std::uint32_t round,
                                                                        int checks) {
  auto& one = *static_cast<Call*>(call);
  if (checks > 1 && !is_finite(x, one.parameters())) return 0;
  one.compress(x, error, round);
  return checks == 0 || one.message_is_finite() ? 1 : 0;
}
