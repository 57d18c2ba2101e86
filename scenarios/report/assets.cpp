#include "scenarios/report/assets.hpp"

#if !defined(FL_REPORT_PAGE) || !defined(FL_REPORT_SCRIPTS) || !defined(FL_REPORT_VEGA)
#error "define FL_REPORT_PAGE, FL_REPORT_SCRIPTS and FL_REPORT_VEGA; see assets.hpp"
#endif

// Embeds bytes between two symbols. A list names several files, which form one part.
#define FL_EMBED_BEGIN(name) \
  ".section .rodata\n"       \
  ".global " #name           \
  "_begin\n"                 \
  ".hidden " #name "_begin\n" #name "_begin:\n"
#define FL_EMBED_FILE(path) ".incbin \"" path "\"\n"
#define FL_EMBED_LIST(path) ".include \"" path "\"\n"
#define FL_EMBED_END(name)        \
  ".global " #name                \
  "_end\n"                        \
  ".hidden " #name "_end\n" #name \
  "_end:\n"                       \
  ".byte 0\n"                     \
  ".previous\n"

__asm__(FL_EMBED_BEGIN(fl_report_page) FL_EMBED_FILE(FL_REPORT_PAGE "/page.html") FL_EMBED_END(fl_report_page));
__asm__(FL_EMBED_BEGIN(fl_report_style) FL_EMBED_FILE(FL_REPORT_PAGE "/style.css") FL_EMBED_END(fl_report_style));
__asm__(FL_EMBED_BEGIN(fl_report_scripts) FL_EMBED_LIST(FL_REPORT_SCRIPTS) FL_EMBED_END(fl_report_scripts));
__asm__(FL_EMBED_BEGIN(fl_report_vega) FL_EMBED_FILE(FL_REPORT_VEGA) FL_EMBED_END(fl_report_vega));

// The assembler defines these names.
// NOLINTBEGIN(readability-identifier-naming)
extern "C" {
__attribute__((visibility("hidden"))) extern const char fl_report_page_begin[], fl_report_page_end[];
__attribute__((visibility("hidden"))) extern const char fl_report_style_begin[], fl_report_style_end[];
__attribute__((visibility("hidden"))) extern const char fl_report_scripts_begin[], fl_report_scripts_end[];
__attribute__((visibility("hidden"))) extern const char fl_report_vega_begin[], fl_report_vega_end[];
}
// NOLINTEND(readability-identifier-naming)

namespace fl {

const ReportAssets& report_assets() {
  static const ReportAssets assets = {.page = {fl_report_page_begin, fl_report_page_end},
                                      .style = {fl_report_style_begin, fl_report_style_end},
                                      .scripts = {fl_report_scripts_begin, fl_report_scripts_end},
                                      .vega = {fl_report_vega_begin, fl_report_vega_end}};
  return assets;
}

}  // namespace fl
