// Writes the studies of a store as one self-contained HTML page: data, style, scripts and Vega are inside it.
#pragma once

#include <iosfwd>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fl_core/config/device.hpp"
#include "scenarios/analysis/contrasts.hpp"
#include "scenarios/analysis/study.hpp"
#include "scenarios/report/split_picture.hpp"

namespace fl {

struct ReportOptions {
  std::optional<double> target{};      // target for bits to target, for the first measure; default: default_target of equal_bits.hpp
  std::vector<SplitPicture> splits{};  // drawn if not empty
  ContrastOptions contrasts{};         // pairs of methods whose differences are followed over the levels; empty: none
  std::size_t most_numbers = 150000;   // limit for all curves together: curves of large studies have fewer points
};

// Throws ConfigError, which names the missing package, if the binary was built without Vega.
FL_API void require_report_assets();

struct ReportedStudy {
  const Study& study;
  ReportOptions options{};
};

// Writes the page. The page opens with the first study; a selector shows the others.
FL_API void write_report(std::span<const ReportedStudy> studies, std::ostream& out);

// Returns the data of a study for the page, as JSON: every estimate with its intervals, curves on common grids, all runs.
[[nodiscard]] FL_API std::string report_data(const Study& study, const ReportOptions& options);

}  // namespace fl
