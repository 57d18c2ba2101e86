// The size of a data set in words, for plans and reports: a table that was misread shows it here.
#pragma once

#include <cstddef>
#include <string>

#include "fl_core/config/device.hpp"

namespace fl {

// Returns "NAME: 8,124 rows, 112 features, 2 classes; 1,000 test rows". An empty name, no classes and no test rows are left out.
[[nodiscard]] FL_API std::string data_text(const std::string& name, std::size_t rows, std::size_t features, std::size_t classes,
                                           std::size_t test_rows);

}  // namespace fl
