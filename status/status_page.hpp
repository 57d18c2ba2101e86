// The page of the status, which the binary contains: HTML, style and scripts of scenarios/report/status, with the style of the report.
#pragma once

#include "status/status_server.hpp"

namespace fl::net {

inline constexpr const char* kJsonType = "application/json";
inline constexpr const char* kMetricsType = "text/plain; version=0.0.4; charset=utf-8";

// Returns the routes of the page: /, /status.css and /status.js.
[[nodiscard]] FL_API StatusRoutes page_routes();

}  // namespace fl::net
