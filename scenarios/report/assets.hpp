// The pieces of the report's page inside the binary: our HTML, style and scripts, and Vega when it was there at build time.
//
// assets.cpp is compiled with FL_REPORT_PAGE, the folder scenarios/report/page, and two files that cmake/FedbitsReport.cmake makes:
// FL_REPORT_SCRIPTS, which names our scripts, and FL_REPORT_VEGA, all as string literals. The assembler takes the files in.
#pragma once

#include <string_view>

#include "fl_core/config/device.hpp"

namespace fl {

struct ReportAssets {
  std::string_view page;     // HTML with a marker per piece: see report.cpp
  std::string_view style;    // CSS
  std::string_view scripts;  // ours, in the order in which they are read
  std::string_view vega;     // "" when Vega was missing at build time
};

[[nodiscard]] FL_API const ReportAssets& report_assets();

}  // namespace fl
