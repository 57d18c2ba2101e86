// Declarations that are shared by the files that define Python types.
#pragma once

#include <string>

#include "compressors/contract.hpp"
#include "fl_core/message/layer_table.hpp"
#include "python/src/values.hpp"

namespace fl::python {

[[nodiscard]] ScopeKind scope_of(const std::string& scope);
[[nodiscard]] nb::dict as_dict(const Contract& contract);

void bind_feedback(nb::module_& module);
void bind_parts(nb::module_& module);

}  // namespace fl::python
