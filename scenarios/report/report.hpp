// The studies of a store as one HTML page that needs nothing else: data, style, scripts and Vega are inside it.
#pragma once

#include <iosfwd>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fl_core/config/device.hpp"
#include "scenarios/analysis/study.hpp"
#include "scenarios/report/split_picture.hpp"

namespace fl {

struct ReportOptions {
  std::optional<double> target{};      // of bits to target, for the first measure; without: equal_bits.hpp's default_target
  std::vector<SplitPicture> splits{};  // drawn when given
  std::size_t most_numbers = 150000;   // in all curves together: their points are made fewer when a study is large
};

// ConfigError when the binary was built without Vega; it names the package.
FL_API void require_report_assets();

struct ReportedStudy {
  const Study& study;
  ReportOptions options{};
};

// The first study is the one that the page shows first; a selector shows the others.
FL_API void write_report(std::span<const ReportedStudy> studies, std::ostream& out);

// What the page draws of a study, as JSON: every estimate with its intervals, curves on common grids, all runs.
[[nodiscard]] FL_API std::string report_data(const Study& study, const ReportOptions& options);

}  // namespace fl
