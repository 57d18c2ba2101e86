#include "scenarios/report/report.hpp"

#include <array>
#include <ostream>
#include <string_view>

#include "fl_core/error.hpp"
#include "scenarios/report/assets.hpp"

namespace fl {
namespace {

// Text inside an HTML element: a label must not become markup.
std::string html_text(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    if (c == '<')
      safe += "&lt;";
    else if (c == '&')
      safe += "&amp;";
    else
      safe += c;
  }
  return safe;
}

// JSON inside a script element: "</script>" in a label would end it.
std::string script_text(std::string_view json) {
  std::string safe;
  safe.reserve(json.size());
  for (const char c : json) {
    if (c == '<')
      safe += "\\u003c";
    else
      safe += c;
  }
  return safe;
}

std::string title_of(const Study& study) {
  std::string title;
  for (const std::string& name : study.names) title += (title.empty() ? "" : ", ") + name;
  return title;
}

}  // namespace

void require_report_assets() {
  if (report_assets().vega.empty())
    throw ConfigError(
        "report: this fedbits was built without Vega, which draws the charts; install the package libjs-vega, configure and build again "
        "(`report --text` needs nothing)");
}

// The page holds markers <!--NAME-->; each is replaced by its piece.
void write_report(const Study& study, const ReportOptions& options, std::ostream& out) {
  require_report_assets();
  const ReportAssets& assets = report_assets();
  const std::string title = html_text(title_of(study)), data = script_text(report_data(study, options));
  const std::array<std::pair<std::string_view, std::string_view>, 5> pieces = {{{"<!--TITLE-->", title},
                                                                                {"<!--STYLE-->", assets.style},
                                                                                {"<!--DATA-->", data},
                                                                                {"<!--VEGA-->", assets.vega},
                                                                                {"<!--SCRIPTS-->", assets.scripts}}};
  std::string_view rest = assets.page;
  while (!rest.empty()) {
    std::size_t first = rest.size();
    const std::pair<std::string_view, std::string_view>* next = nullptr;
    for (const auto& piece : pieces)
      if (const std::size_t at = rest.find(piece.first); at < first) {
        first = at;
        next = &piece;
      }
    out << rest.substr(0, first);
    if (next == nullptr) return;
    out << next->second;
    rest.remove_prefix(first + next->first.size());
  }
}

}  // namespace fl
