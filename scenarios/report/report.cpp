#include "scenarios/report/report.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <ostream>
#include <span>
#include <string_view>
#include <vector>

#include "fl_core/config/error.hpp"
#include "scenarios/data/sha256.hpp"
#include "scenarios/report/assets.hpp"

namespace fl {
namespace {

// Escapes text inside an HTML element, so that a label cannot become markup.
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

// Escapes JSON inside a script element, which "</script>" in a label would end.
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

// Returns 'sha256-...' of an inline script or style, with which a content security policy allows it.
std::string hash_source(std::string_view content) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const std::string hex = sha256_of(std::as_bytes(std::span(content)));
  std::string base64;
  std::uint32_t bits = 0;
  int count = 0;
  for (const char c : hex) {
    bits = bits << 4 | static_cast<std::uint32_t>(c <= '9' ? c - '0' : c - 'a' + 10);
    count += 4;
    if (count < 6) continue;
    count -= 6;
    base64 += kDigits[bits >> count & 63];
  }
  if (count > 0) base64 += kDigits[bits << (6 - count) & 63];
  while (base64.size() % 4 != 0) base64 += '=';
  return "'sha256-" + base64 + "'";
}

// Returns the page's content security policy: it allows the two inline scripts, the inline style, and embedded pictures.
std::string policy_of(const ReportAssets& assets) {
  return "default-src 'none'; script-src " + hash_source(assets.vega) + " " + hash_source(assets.scripts) + "; style-src " +
         hash_source(assets.style) + "; img-src data:; base-uri 'none'; form-action 'none'";
}

std::string title_of(std::span<const ReportedStudy> studies) {
  std::vector<std::string> names;
  for (const ReportedStudy& one : studies)
    for (const std::string& name : one.study.names)
      if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  std::string title;
  for (const std::string& name : names) title += (title.empty() ? "" : ", ") + name;
  return title;
}

// Returns {"studies": [...]}. Each study gets an equal part of the numbers that the page may hold.
std::string all_data(std::span<const ReportedStudy> studies) {
  std::string json = "{\"studies\":[";
  for (const ReportedStudy& one : studies) {
    ReportOptions options = one.options;
    options.most_numbers /= studies.size();
    json += (&one == studies.data() ? "" : ",") + report_data(one.study, options);
  }
  return json + "]}";
}

}  // namespace

void require_report_assets() {
  if (report_assets().vega.empty())
    throw ConfigError(
        "report: this fedbits was built without Vega, which draws the charts; install the package libjs-vega, configure and build again "
        "(`report --text` needs nothing)");
}

// Replaces each marker <!--NAME--> of the page by its part.
void write_report(std::span<const ReportedStudy> studies, std::ostream& out) {
  require_report_assets();
  const ReportAssets& assets = report_assets();
  const std::string title = html_text(title_of(studies)), data = script_text(all_data(studies)), policy = policy_of(assets);
  const std::array<std::pair<std::string_view, std::string_view>, 6> pieces = {{{"<!--POLICY-->", policy},
                                                                                {"<!--TITLE-->", title},
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
