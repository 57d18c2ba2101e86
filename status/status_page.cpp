#include "status/status_page.hpp"

#include <string_view>

#if !defined(FL_STATUS_HTML) || !defined(FL_STATUS_STYLES) || !defined(FL_STATUS_SCRIPTS)
#error "define FL_STATUS_HTML, FL_STATUS_STYLES and FL_STATUS_SCRIPTS; see cmake/FedbitsStatus.cmake"
#endif

// Embeds files between two symbols. A list names several files, which form one part.
#define FL_PAGE_PART(name, directive, path)                                                                             \
  __asm__(".section .rodata\n.global " #name "_begin\n.hidden " #name "_begin\n" #name "_begin:\n" directive " \"" path \
          "\"\n.global " #name "_end\n.hidden " #name "_end\n" #name "_end:\n.byte 0\n.previous\n")

FL_PAGE_PART(fl_status_html, ".incbin", FL_STATUS_HTML);
FL_PAGE_PART(fl_status_styles, ".include", FL_STATUS_STYLES);
FL_PAGE_PART(fl_status_scripts, ".include", FL_STATUS_SCRIPTS);

// The assembler defines these names.
// NOLINTBEGIN(readability-identifier-naming)
extern "C" {
__attribute__((visibility("hidden"))) extern const char fl_status_html_begin[], fl_status_html_end[];
__attribute__((visibility("hidden"))) extern const char fl_status_styles_begin[], fl_status_styles_end[];
__attribute__((visibility("hidden"))) extern const char fl_status_scripts_begin[], fl_status_scripts_end[];
}
// NOLINTEND(readability-identifier-naming)

namespace fl::net {

StatusRoutes page_routes() {
  const auto route = [](const char* type, std::string_view text) {
    return StatusRoute{.content_type = type, .body = [text] { return std::string(text); }};
  };
  return {{"/", route("text/html; charset=utf-8", {fl_status_html_begin, fl_status_html_end})},
          {"/status.css", route("text/css; charset=utf-8", {fl_status_styles_begin, fl_status_styles_end})},
          {"/status.js", route("text/javascript; charset=utf-8", {fl_status_scripts_begin, fl_status_scripts_end})}};
}

}  // namespace fl::net
