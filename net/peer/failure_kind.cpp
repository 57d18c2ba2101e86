#include "net/peer/failure_kind.hpp"

#include <new>

#include "net/wire/frame.hpp"

namespace fl::net {

namespace {

template <class Kind>
bool is_a(const std::exception& failure) {
  return dynamic_cast<const Kind*>(&failure) != nullptr;
}

std::string sentence_of(const std::exception& failure) {
  if (is_a<OtherRows>(failure)) return "its rows are not those of the run";
  if (is_a<ProtocolError>(failure)) return "the server breaks the protocol";
  if (is_a<StoreError>(failure)) return "the state of its clients cannot be kept";
  if (is_a<DataError>(failure)) return "its data cannot be read";
  if (is_a<ConfigError>(failure)) return "the scenario does not fit its data and settings";
  if (is_a<std::bad_alloc>(failure)) return "it has no memory for the run";
  return "an error on its machine";
}

}  // namespace

std::string failure_kind(const std::exception& failure) { return sentence_of(failure) + "; its own output says more"; }

}  // namespace fl::net
