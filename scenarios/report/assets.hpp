// Embeds the parts of the report's page in the binary: HTML, style and scripts, and Vega if it was available at build time.
//
// assets.cpp is compiled with FL_REPORT_PAGE, the folder scenarios/report/page, and two files that cmake/FedbitsReport.cmake generates:
// FL_REPORT_SCRIPTS, which names the scripts, and FL_REPORT_VEGA, all as string literals. The assembler includes the files.
#pragma once

#include <string_view>

#include "fl_core/config/device.hpp"

namespace fl {

struct ReportAssets {
  std::string_view page;     // HTML with a marker per part: see report.cpp
  std::string_view style;    // CSS
  std::string_view scripts;  // the report's own scripts, in loading order
  std::string_view vega;     // "" if Vega was missing at build time
};

[[nodiscard]] FL_API const ReportAssets& report_assets();

}  // namespace fl
