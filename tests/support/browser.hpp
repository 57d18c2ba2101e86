// Renders a page in a headless browser without network access. Tests that need a browser are skipped if Chromium is not installed.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace fl::test {

struct Seen {
  std::string dom;      // after the scripts have run
  std::string console;  // lines that the page wrote: warnings and errors
};

inline std::string chromium() {
  for (const char* path : {"/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"})
    if (std::filesystem::exists(path)) return path;
  return {};
}

// Opens the page and runs `script` at its end. The browser's own files are written to the folder of the page.
inline Seen open_page(const std::filesystem::path& page, const std::string& script = {}) {
  const auto text_of = [](const std::filesystem::path& file) {
    std::stringstream text;
    text << std::ifstream(file, std::ios::binary).rdbuf();
    return text.str();
  };
  const std::filesystem::path copy = page.string() + ".opened.html";
  std::string text = text_of(page);
  const std::string scripts = "script-src ";  // of the page's policy, which must allow the test's script
  if (const std::size_t at = text.find(scripts); at != std::string::npos) text.insert(at + scripts.size(), "'nonce-test' ");
  std::ofstream(copy, std::ios::binary) << text << "<script nonce=\"test\">" << script << "</script>";
  const std::string base = page.string(),
                    command = "timeout 120 " + chromium() +
                              " --headless --no-sandbox --disable-gpu --disable-background-networking"
                              " --host-resolver-rules='MAP * ~NOTFOUND' --user-data-dir='" +
                              base +
                              ".profile' --window-size=500,900 --virtual-time-budget=10000 --enable-logging=stderr --dump-dom 'file://" +
                              copy.string() + "' > '" + base + ".dom' 2> '" + base + ".log'";
  Seen seen;
  EXPECT_EQ(std::system(command.c_str()), 0) << text_of(base + ".log");
  seen.dom = text_of(base + ".dom");
  std::istringstream log(text_of(base + ".log"));
  for (std::string line; std::getline(log, line);)
    if (line.find("CONSOLE") != std::string::npos) seen.console += line + "\n";
  return seen;
}

}  // namespace fl::test

#define FL_NEED_BROWSER() \
  if (::fl::test::chromium().empty()) GTEST_SKIP() << "TOOL MISSING: chromium"
#define FL_NEED_VEGA() \
  if (::fl::report_assets().vega.empty()) GTEST_SKIP() << "TOOL MISSING: libjs-vega when fedbits was built"
