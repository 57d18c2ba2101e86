// Opens the page of the status in a headless browser: on a screen, dark, narrow, on paper, and when the server goes away.
#include "status/status_page.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <mutex>

#include "status/serve_status.hpp"
#include "status/status_server.hpp"
#include "status/study_status.hpp"
#include "tests/net/http_client.hpp"
#include "tests/net/picture.hpp"
#include "tests/support/binary.hpp"
#include "tests/support/browser.hpp"

namespace fl {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr test::Colour kPaper{0xff, 0xff, 0xff}, kDarkPaper{0x14, 0x17, 0x1b}, kBlue{0x00, 0x72, 0xb2}, kDarkBlue{0x56, 0xb4, 0xe9};

// A run of 60 rounds in the middle, with three peers.
net::ServeStatus served() {
  net::ServeStatus status("quickstart", 2, 200, 0);
  status.begin({.run = "0123456789abcdef", .title = "quickstart 1/2  <i>top-1%</i>", .seed = 1, .rounds = 100, .clients = 20}, 0);
  for (std::uint64_t round = 0; round <= 60; ++round) {
    RoundRow row;
    row.round = round;
    row.clients = 20;
    row.bits_up = round > 0 ? 20000 : 0;
    row.bits_down = round > 0 ? 64000 : 0;
    row.train_loss = 0.69 * std::exp(-0.07 * static_cast<double>(round));
    row.test_accuracy = 1 - 0.5 * std::exp(-0.1 * static_cast<double>(round));
    status.add(row, 10 + static_cast<double>(round));
  }
  net::WireCounts counts;
  counts.bytes_in = 1234567;
  counts.bytes_out = 7654321;
  counts.frames_in = 1200;
  counts.frames_out = 130;
  counts.refused = {{"the answer was there already", 2}};
  status.see(
      {{.id = 1, .address = "127.0.0.1:40001", .clients = "0-9", .is_ready = true, .last_round = 60},
       {.id = 2, .address = "127.0.0.1:40002", .clients = "10-18", .is_ready = true, .last_round = 60, .refusals = 2},
       {.id = 3, .address = "127.0.0.1:40003", .clients = "19", .last_round = 12, .has_left = true, .why = "it closed the connection"}},
      counts);
  return status;
}

// A sweep of 120 runs with four workers; some have no result.
net::StudyStatus studied() {
  namespace event = net::study_event;
  net::StudyStatus status(0);
  net::StudyShown study{.command = "sweep", .name = "compressors", .folder = "results", .workers = 4};
  for (std::size_t cell = 0; cell < 120; ++cell) {
    study.titles.push_back("compressors " + std::to_string(cell + 1) + "/120  alpha=0.1  top-1%");
    study.states.push_back(cell < 10 ? net::CellState::done : net::CellState::pending);
    study.rounds.push_back(100);
  }
  status.apply(event::begun(study), 1);
  for (std::size_t cell = 10; cell < 74; ++cell) {
    status.apply(event::began(cell, cell % 4), 1);
    status.apply(event::reached(cell, 10 + cell % 80, 0.25, 0.875), 1);
    RunRecord record;
    record.rounds = 100;
    record.bits_up = 1000000;
    record.train_loss = 0.125;
    record.test_accuracy = 0.9375;
    record.seconds = 2.5;
    record.status = cell == 33 ? RunStatus::failed : cell == 47 ? RunStatus::diverged : RunStatus::done;
    if (cell == 33) record.message = "out of memory: <b>fewer workers</b>";
    if (cell < 70) status.apply(event::ended(cell, record), 60);
  }
  return status;
}

class StatusPage : public test::BinaryTest {
 protected:
  // Serves a state, and a script that the page runs behind its own.
  void serve(const std::string& json, const std::string& cells, const std::string& script) {
    net::StatusRoutes routes = net::page_routes();
    std::string html = routes.at("/").body();
    html.replace(html.find("</body>"), 0, "<script src=\"test.js\"></script>");
    routes["/"].body = [html] { return html; };
    routes["/test.js"] = {"text/javascript", [script] { return script; }};
    routes["/status.json"] = {net::kJsonType, [json] { return json; }, true};
    if (!cells.empty()) routes["/cells.json"] = {net::kJsonType, [cells] { return cells; }};
    server_ = std::make_unique<net::StatusServer>(net::StatusOptions{}, std::move(routes));
    server_->start();
  }
  // Opens the page with an option of the browser, and returns its document, or what it wrote to its log if `what` is not --dump-dom.
  test::Seen open(const std::string& what, const std::string& more = "--window-size=1100,1500") {
    const std::string base = (folder_ / ("visit" + std::to_string(++visits_))).string();
    const std::string command = "timeout 120 " + test::chromium() +
                                " --headless --no-sandbox --disable-gpu --disable-background-networking --hide-scrollbars"
                                " --host-resolver-rules='MAP * ~NOTFOUND, EXCLUDE 127.0.0.1' --virtual-time-budget=4000"
                                " --enable-logging=stderr --user-data-dir='" +
                                base + ".profile' " + more + " " + what + " 'http://127.0.0.1:" + std::to_string(server_->port()) +
                                "/' > '" + base + ".dom' 2> '" + base + ".log'";
    EXPECT_EQ(std::system(command.c_str()), 0) << test::read_text(base + ".log");
    test::Seen seen{.dom = test::read_text(base + ".dom"), .console = {}};
    std::istringstream log(test::read_text(base + ".log"));
    for (std::string line; std::getline(log, line);)
      if (line.find("CONSOLE") != std::string::npos) seen.console += line + "\n";
    EXPECT_EQ(seen.console, "");
    return seen;
  }
  test::Picture photograph(const std::string& name, const std::string& more = "--window-size=1100,1500") {
    const std::filesystem::path file = folder_ / (name + ".png");
    open("--screenshot='" + file.string() + "'", more);
    keep(file);
    return test::read_png(file);
  }
  // Pictures are kept for people if FEDBITS_PICTURES names a folder.
  static void keep(const std::filesystem::path& file) {
    if (const char* folder = std::getenv("FEDBITS_PICTURES"); folder != nullptr)
      std::filesystem::copy_file(file, std::filesystem::path(folder) / file.filename(), std::filesystem::copy_options::overwrite_existing);
  }
  std::string paper(const std::string& name) {
    const std::filesystem::path file = folder_ / (name + ".pdf");
    open("--no-pdf-header-footer --print-to-pdf='" + file.string() + "'");
    keep(file);
    const std::string text = (folder_ / "paper.txt").string();
    if (std::system(("pdftotext -layout '" + file.string() + "' '" + text + "' 2> /dev/null").c_str()) != 0) return "";
    return test::read_text(text);
  }

  std::unique_ptr<net::StatusServer> server_;
  int visits_ = 0;
};

TEST_F(StatusPage, ShowsAServer) {
  FL_NEED_BROWSER();
  serve(served().json(75), "", "document.addEventListener('DOMContentLoaded', () => {});");
  const test::Seen seen = open("--dump-dom");
  EXPECT_THAT(seen.dom, HasSubstr("data-ready=\"yes\""));
  EXPECT_THAT(seen.dom, HasSubstr("<title>quickstart · playing · fedbits status</title>"));
  EXPECT_THAT(seen.dom, HasSubstr("Round 60 of 100 is closed."));
  EXPECT_EQ(test::count_of(seen.dom, "<path class=\"curve "), 4u);
  EXPECT_EQ(test::count_of(seen.dom, "d=\"M"), 4u) << "each curve has points";
  EXPECT_THAT(seen.dom, HasSubstr("quickstart 1/2  &lt;i&gt;top-1%&lt;/i&gt;")) << "labels stay text";
  EXPECT_THAT(seen.dom, HasSubstr("it closed the connection"));
  EXPECT_THAT(seen.dom, HasSubstr("the answer was there already"));
  EXPECT_THAT(seen.dom, HasSubstr("1.2 Mbit"));
  EXPECT_THAT(seen.dom, HasSubstr("2 min 20 s"));
  EXPECT_THAT(seen.dom, HasSubstr("aria-live=\"polite\""));
}

// The table beside a chart, the arrow keys, and the theme's switch.
TEST_F(StatusPage, ChartsAreReadWithoutAPointer) {
  FL_NEED_BROWSER();
  serve(served().json(75), "",
        "const wait = setInterval(() => { if (!document.documentElement.dataset.ready) return; clearInterval(wait);"
        " document.querySelector('details').open = true;"
        " const chart = document.querySelector('svg.live[role=img]'); chart.focus();"
        " for (const key of ['Home', 'ArrowRight', 'ArrowRight']) chart.dispatchEvent(new KeyboardEvent('keydown', {key}));"
        " document.getElementById('theme').click(); }, 50);");
  const test::Seen seen = open("--dump-dom");
  EXPECT_THAT(seen.dom, HasSubstr("Round 2: 0.5999."));
  EXPECT_EQ(test::count_of(seen.dom, "<th scope=\"row\">60</th>"), 1u);
  EXPECT_THAT(seen.dom, HasSubstr("data-theme=\"dark\""));
  EXPECT_THAT(seen.dom, HasSubstr("aria-pressed=\"true\">Light theme"));
}

TEST_F(StatusPage, PicturesOfAServer) {
  FL_NEED_BROWSER();
  serve(served().json(75), "", "");
  const test::Picture light = photograph("serve");
  EXPECT_EQ(light.at(2, 2), kPaper);
  EXPECT_GT(light.count(kBlue), 150u) << "the curve of the bits down";
  const test::Picture narrow = photograph("serve-narrow", "--window-size=400,2600");
  EXPECT_GT(narrow.count(kBlue), 100u);
  const std::string printed = paper("serve-paper");
  if (!printed.empty()) {
    EXPECT_THAT(printed, HasSubstr("Round 60 of 100 is closed."));
    EXPECT_THAT(printed, HasSubstr("Test accuracy"));
    EXPECT_THAT(printed, Not(HasSubstr("Dark theme")));
  }
  serve(served().json(75), "", "document.getElementById('theme').click();");
  const test::Picture dark = photograph("serve-dark");
  EXPECT_EQ(dark.at(2, 2), kDarkPaper);
  EXPECT_GT(dark.count(kDarkBlue), 150u);
  EXPECT_EQ(dark.count(kBlue), 0u);
}

TEST_F(StatusPage, ShowsASweep) {
  FL_NEED_BROWSER();
  const net::StudyStatus status = studied();
  serve(status.json(60), status.titles_json(),
        "const wait = setInterval(() => { if (!document.documentElement.dataset.ready) return; clearInterval(wait);"
        " document.querySelector('details').open = true; setTimeout(() => {"
        " const grid = document.querySelector('svg.squares'); for (const key of ['Home', 'End']) grid.dispatchEvent(new "
        "KeyboardEvent('keydown', {key}));"
        " }, 500); }, 50);");
  const test::Seen seen = open("--dump-dom");
  EXPECT_THAT(seen.dom, HasSubstr("70 of 120 runs have ended, 4 are running."));
  EXPECT_EQ(test::count_of(seen.dom, "href=\"#shape-d\" class=\"d\""), 68u);
  EXPECT_EQ(test::count_of(seen.dom, "href=\"#shape-f\" class=\"f\""), 1u);
  EXPECT_EQ(test::count_of(seen.dom, "href=\"#shape-p\" class=\"p\""), 46u);
  EXPECT_THAT(seen.dom, HasSubstr("compressors 120/120  alpha=0.1  top-1%: pending"));
  EXPECT_THAT(seen.dom, HasSubstr("out of memory: &lt;b&gt;fewer workers&lt;/b&gt;"));
  EXPECT_EQ(test::count_of(seen.dom, "class=\"state-pending\">pending</td>"), 46u);
}

TEST_F(StatusPage, PicturesOfASweep) {
  FL_NEED_BROWSER();
  const net::StudyStatus status = studied();
  serve(status.json(60), status.titles_json(), "");
  EXPECT_EQ(photograph("sweep").at(2, 2), kPaper);
  const std::string printed = paper("sweep-paper");
  if (!printed.empty()) {
    EXPECT_THAT(printed, HasSubstr("70 of 120 runs have ended"));
  }
  serve(status.json(60), status.titles_json(), "document.getElementById('theme').click();");
  EXPECT_EQ(photograph("sweep-dark", "--window-size=700,1800").at(2, 2), kDarkPaper);
}

TEST_F(StatusPage, SaysHowItEnded) {
  FL_NEED_BROWSER();
  net::ServeStatus status = served();
  status.close({"failed", "client 19 has left in round 61"}, 80);
  serve(status.json(80), "", "");
  const test::Seen seen = open("--dump-dom");
  EXPECT_THAT(seen.dom, HasSubstr("It has failed. client 19 has left in round 61 The figures below are the last ones."));
  EXPECT_THAT(seen.dom, HasSubstr("data-outcome=\"failed\""));
  EXPECT_THAT(seen.dom, HasSubstr("role=\"alert\" hidden=\"\""));
}

// A server that answers once and then no more: the page says so, and its figures stay.
TEST_F(StatusPage, SaysThatNobodyAnswers) {
  FL_NEED_BROWSER();
  serve(served().json(75), "",
        "const real = window.fetch; let asked = 0; window.fetch = (...all) => ++asked > 1 ? Promise.reject(new Error('gone')) : "
        "real(...all);");
  const test::Seen seen = open("--dump-dom");
  EXPECT_THAT(seen.dom, testing::ContainsRegex("role=\"alert\">The server has not answered since [^<]+The page tries again"));
  EXPECT_THAT(seen.dom, HasSubstr("data-phase=\"lost\""));
  EXPECT_THAT(seen.dom, HasSubstr("1.2 Mbit"));
}

}  // namespace
}  // namespace fl
