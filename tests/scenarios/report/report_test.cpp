#include "scenarios/report/report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "scenarios/file/results_version.hpp"
#include "scenarios/report/assets.hpp"
#include "tests/scenarios/analysis/synthetic_study.hpp"
#include "tests/support/browser.hpp"
#include "tests/support/synthetic_store.hpp"

namespace fl {
namespace {

using test::MadeStore;
using testing::HasSubstr;
using testing::Not;
using Json = nlohmann::json;

// Two methods at one level, three seeds, with round 0 at 8: they fall at once and stay.
void add_pair(MadeStore& made, const std::string& method, double last) {
  for (const std::uint64_t seed : {1, 2, 3}) {
    const double start = 8 + 0.01 * static_cast<double>(seed);
    std::vector<std::pair<std::uint64_t, double>> none = {{0, start}, {10, start / 2}}, other = {{0, start}, {5, start / 3}};
    none.resize(30, {10, start / 4});
    other.resize(60, {5, last * start});
    made.add({"none", "1", seed, RunStatus::done, none});
    made.add({method, "1", seed, RunStatus::done, other});
  }
}

std::string page_of(const Study& study, const ReportOptions& options = {}) {
  const ReportedStudy reported{study, options};
  std::ostringstream out;
  write_report({&reported, 1}, out);
  return out.str();
}

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++count;
  return count;
}

TEST(Report, DataHoldEstimatesCurvesAndRuns) {
  MadeStore made;
  add_pair(made, "top", 0.1);
  made.add({"bad", "1", 1, RunStatus::diverged, {{0, 8}, {5, 1e9}}});
  const Json data = Json::parse(report_data(read_study(made.store(), {.baseline = "none"}), {.target = 3.0}));
  EXPECT_EQ(data["methods"], Json({"none", "top", "bad"}));
  EXPECT_EQ(data["runs"].size(), 7u);
  const Json& measure = data["measures"].at(0);
  EXPECT_EQ(measure["name"], "f_gap");
  EXPECT_EQ(measure["target"], 3.0);
  EXPECT_EQ(measure["targetGiven"], true);
  EXPECT_EQ(measure["curves"]["round"][0]["lines"].size(), 2u);  // none for the method that diverged
  const Json& top = measure["bits"]["up"]["comparisons"].at(0);
  EXPECT_EQ(top["verdict"], "better");
  EXPECT_EQ(top["difference"]["n"], 3);
  EXPECT_NEAR(top["value"]["mean"].get<double>(), 0.802, 1e-9);
  EXPECT_EQ(measure["bits"]["up"]["comparisons"].at(1)["why"], "1/1 diverged");
  EXPECT_TRUE(measure["bits"]["up"]["comparisons"].at(1)["difference"]["mean"].is_null());
  EXPECT_EQ(measure["bits"]["up"]["reach"].at(2)["median"], "inf");
}

// Two methods at three levels with zeta^2 = 1, e, e^2 at x*: the gap of top is 0.1 e^(level * slope of the seed).
void add_levels(MadeStore& made, const std::vector<AxisLabel>& more_axes = {}, double more_slope = 0) {
  for (const std::uint64_t seed : {1, 2, 3, 4})
    for (int level = 0; level < 3; ++level)
      for (const char* method : {"none", "top"}) {
        const double slope = *method == 't' ? 0.1 + (0.05 + more_slope) * static_cast<double>(seed) : 0;
        std::vector<std::pair<std::uint64_t, double>> rounds(31, {10, 0.1 * std::exp(slope * level)});
        rounds.front() = {0, 8};
        made.add({.method = method,
                  .level = std::to_string(level),
                  .seed = seed,
                  .rounds = rounds,
                  .more_axes = more_axes,
                  .constants = {{"zeta_sq_at_optimum", std::exp(level)}}});
      }
}

// The slopes of the four seeds are 0.15, 0.2, 0.25 and 0.3.
TEST(Report, HoldsContrastsAndLeavesThemOutOfOtherStudies) {
  MadeStore made;
  add_levels(made);
  const Study study = read_study(made.store());
  EXPECT_TRUE(Json::parse(report_data(study, {}))["contrasts"].is_null());
  EXPECT_TRUE(Json::parse(report_data(study, {.contrasts = {.contrasts = {"top:other"}}}))["contrasts"].is_null());
  const Json data =
      Json::parse(report_data(study, {.contrasts = {.contrasts = {"top:none"}, .classes = {"x", "y"}, .margins = {*read_margin("1.1x")}}}));
  EXPECT_EQ(data["contrasts"]["classes"], Json({"x", "y"}));
  const Json& family = data["contrasts"]["families"][0]["up"];
  EXPECT_EQ(family["heterogeneity"], "optimum");
  EXPECT_EQ(family["levels"], Json({"0", "1", "2"}));
  EXPECT_NEAR(family["slopes"][0]["mean"].get<double>(), 0.225, 1e-7);
  EXPECT_EQ(family["slopes"][0]["verdict"], "worse");
  EXPECT_EQ(family["slopes"][0]["flip"], 0.125);
  EXPECT_NEAR(family["margins"][0]["mean"].get<double>(), std::exp(0.45), 1e-6);
  EXPECT_EQ(family["margins"][0]["result"], "not shown");
}

// Adds two feedbacks, whose slopes differ by 0.02, 0.04, 0.06 and 0.08.
void add_feedbacks(MadeStore& made) {
  add_levels(made, {{"feedback.up", "x"}}, 0.02);
  add_levels(made, {{"feedback.up", "y"}});
}

TEST(Report, HoldsDifferencesOfSlopes) {
  MadeStore made;
  add_feedbacks(made);
  const Json data =
      Json::parse(report_data(read_study(made.store()), {.contrasts = {.contrasts = {"top:none"}, .between = {"feedback.up=x:y"}}}));
  const Json& differences = data["contrasts"]["families"][0]["up"]["differences"];
  ASSERT_EQ(differences.size(), 1u);
  EXPECT_NEAR(differences[0]["mean"].get<double>(), 0.05, 1e-7);
  EXPECT_EQ(differences[0]["group"], "feedback.up=x");
  EXPECT_EQ(differences[0]["otherGroup"], "feedback.up=y");
  EXPECT_EQ(differences[0]["verdict"], "worse");
}

// For runs that measured client accuracies the report shows a band over clients and the worst client.
TEST(Report, HoldsTheBandOfClients) {
  MadeStore made;
  for (const std::uint64_t seed : {1, 2}) made.add({"none", "1", seed, RunStatus::done, {{0, 3}, {10, 1}}, true});
  add_pair(made, "top", 0.1);
  const Json data = Json::parse(report_data(read_study(made.store(), {.level_axis = "partition.alpha"}), {}));
  ASSERT_EQ(data["clients"].size(), 4u);
  const std::vector<std::vector<double>> expected{{0.125, 0.25}, {0.25, 0.5}, {0.625, 0.75}, {0.025, 0.05}};
  MadeStore alone;
  for (const std::uint64_t seed : {1, 2}) alone.add({"none", "1", seed, RunStatus::done, {{0, 3}, {10, 1}}, true});
  const Json own = Json::parse(report_data(read_study(alone.store()), {}));
  for (std::size_t column = 0; column < 4; ++column) {
    ASSERT_EQ(own["clients"][column][0]["lines"].size(), 1u);
    EXPECT_EQ(own["clients"][column][0]["lines"][0]["y"].get<std::vector<double>>(), expected[column]);
    EXPECT_EQ(data["clients"][column][0]["lines"].size(), 0u);  // a later run of the same labels and seed did not measure
  }
  std::vector<std::string> measures;
  for (const Json& measure : own["measures"]) measures.push_back(measure["name"]);
  EXPECT_THAT(measures, testing::ElementsAre("f_gap", "client_accuracy_mean", "client_accuracy_p10", "client_accuracy_worst"));
  EXPECT_EQ(own["measures"][1]["lower"], false);
}

TEST(Report, LabelsStayText) {
  FL_NEED_VEGA();
  MadeStore made;
  add_pair(made, "</script><script>alert(1)</script>", 0.1);
  const std::string page = page_of(read_study(made.store()));
  EXPECT_THAT(page, Not(HasSubstr("<script>alert")));
  EXPECT_EQ(count_of(page, "</script>"), 3u);
}

TEST(Report, ThePageNeedsNothingElse) {
  FL_NEED_VEGA();
  MadeStore made;
  add_pair(made, "top", 0.1);
  const std::string page = page_of(read_study(made.store()));
  for (const char* outside :
       {" src=", "<link rel=\"stylesheet\"", "@import", "url(http", "<!--STYLE", "<!--DATA", "<!--SCRIPTS", "<!--VEGA"})
    EXPECT_THAT(page, Not(HasSubstr(outside))) << outside;
}

TEST(Report, ASplitThatCannotBeDrawnSaysWhy) {
  MadeStore made;
  add_pair(made, "top", 0.1);  // runs without a scenario
  const Study study = read_study(made.store());
  const std::vector<SplitPicture> pictures = split_pictures(study, DataCatalog());
  ASSERT_EQ(pictures.size(), 1u);
  EXPECT_EQ(pictures[0].panels, std::vector<std::size_t>{0});
  EXPECT_NE(pictures[0].missing, "");
  EXPECT_TRUE(pictures[0].rows.empty());
  const Json data = Json::parse(report_data(study, {.splits = pictures}));
  EXPECT_EQ(data["splits"][0]["missing"], pictures[0].missing);
}

// A study of any size has a page of bounded size: its curves get fewer points.
TEST(Report, LargeStudiesGetFewerPointsPerCurve) {
  MadeStore made;
  RunStore store = RunStore::open(made.folder(), RunStore::Mode::create);
  test::fill_synthetic(store, {.levels = 2, .methods = 5, .seeds = 3, .rounds = 200});
  const Study study = read_study(store);
  const std::string all = report_data(study, {}), few = report_data(study, {.most_numbers = 1000});
  EXPECT_LT(few.size(), all.size() * 6 / 10);
  EXPECT_EQ(Json::parse(few)["measures"][0]["curves"]["round"][0]["x"].size(), 12u);
  EXPECT_EQ(Json::parse(all)["measures"].size(), 3u);
}

// ---- in a browser --------------------------------------------------------------------------------------------------------------

struct MadeSeeds {
  std::string label;
  void (*fill)(MadeStore&);
  std::vector<std::string> contrasts{}, between{};
};
void PrintTo(const MadeSeeds& sample, std::ostream* out) { *out << sample.label; }

class ReportInABrowser : public testing::TestWithParam<MadeSeeds> {};

// Every button of the toolbar is pressed twice; then each place for a chart has one, and nothing was complained about.
TEST_P(ReportInABrowser, EveryChartIsDrawn) {
  FL_NEED_VEGA();
  FL_NEED_BROWSER();
  MadeStore made;
  GetParam().fill(made);
  const std::filesystem::path file = made.folder() / "report.html";
  std::ofstream(file, std::ios::binary) << page_of(
      read_study(made.store()),
      {.contrasts = {.contrasts = GetParam().contrasts, .between = GetParam().between, .margins = {*read_margin("1.1x")}}});
  const test::Seen seen = test::open_page(file, R"(
    const root = document.documentElement, press = (button) => button.click();
    for (const round of [1, 2]) document.querySelectorAll(".toolbar button, #theme").forEach(press);
    document.querySelectorAll("details").forEach((details) => { details.open = true; });
    const figures = [...FIGURES.values()];
    const saved = [];
    download = (name, type, content) => saved.push([name, type, content]);
    const isPdf = (bytes) => {
      const text = String.fromCharCode(...bytes.slice(0, 8)) + new TextDecoder("latin1").decode(bytes.slice(-60));
      const table = Number(/startxref\n(\d+)/.exec(text)[1]);
      return text.startsWith("%PDF-1.4") && new TextDecoder("latin1").decode(bytes.slice(table, table + 4)) === "xref";
    };
    const whenSaved = (act) => saved.length === 3 * figures.length ? act() : setTimeout(() => whenSaved(act), 50);
    Promise.all(figures.flatMap((figure) => [saveSvg(figure), savePdf(figure), savePng(figure)])).then(() => whenSaved(() => {
      const of = (type) => saved.filter((one) => one[1] === type).map((one) => one[2]);
      root.dataset.saved = Number(saved.length === 3 * figures.length && of("image/svg+xml").every((svg) => svg.startsWith("<svg") && svg.includes("<path"))
        && of("application/pdf").every(isPdf) && of("image/png").every((blob) => blob.size > 2000));
    }));
    root.dataset.rows = Number(figures.every((figure) => figure.rows().length > 0 && figure.rows().every((row) => row.length === figure.columns.length)));
    setTimeout(() => {
      const plots = [...document.querySelectorAll(".plot")];
      root.dataset.plots = plots.length;
      root.dataset.empty = plots.filter((plot) => !plot.querySelector("svg path, svg line")).length;
      root.dataset.wide = Number(root.scrollWidth > root.clientWidth);
      root.dataset.legends = plots.filter((plot) => FIGURES.get(plot).methods && FIGURES.get(plot).legend !== false && !plot.querySelector(".role-legend")).length;
      const values = plots.map((plot) => plot.querySelector(".mark-symbol path")).filter((path) => path !== null);
      const event = (path) => { const box = path.getBoundingClientRect(); return {bubbles: true, clientX: box.x + box.width / 2, clientY: box.y + box.height / 2}; };
      values[0]?.dispatchEvent(new MouseEvent("mousemove", event(values[0])));
      root.dataset.hovered = Number(!TIP.hidden && TIP.textContent.includes(": "));
      root.dataset.nameless = [...document.querySelectorAll("button")].filter((button) => !(button.ariaLabel || button.textContent)).length;
    }, 1500);)");
  EXPECT_THAT(seen.dom, HasSubstr("data-ready=\"yes\""));
  EXPECT_THAT(seen.dom, Not(HasSubstr("data-plots=\"0\"")));
  for (const char* good : {"data-plots=", "data-empty=\"0\"", "data-wide=\"0\"", "data-saved=\"1\"", "data-rows=\"1\"",
                           "data-nameless=\"0\"", "data-legends=\"0\"", "data-hovered=\"1\""})
    EXPECT_THAT(seen.dom.substr(0, 800), HasSubstr(good));
  EXPECT_EQ(seen.console, "");
}

// Nothing runs but what the page was written with.
TEST(ReportPolicy, StopsOtherScripts) {
  FL_NEED_VEGA();
  FL_NEED_BROWSER();
  MadeStore made;
  add_pair(made, "top", 0.1);
  const std::filesystem::path file = made.folder() / "report.html";
  std::string page = page_of(read_study(made.store()));
  const std::size_t meta = page.find("http-equiv=\"Content-Security-Policy\"");
  ASSERT_NE(meta, std::string::npos);
  const std::string policy = page.substr(meta, page.find('>', meta) - meta);
  EXPECT_THAT(policy, HasSubstr("default-src 'none'"));
  EXPECT_THAT(policy, Not(HasSubstr("unsafe")));
  page += "<script>document.documentElement.dataset.other = 1;</script><p onclick=\"x\" style=\"color: red\">";
  std::ofstream(file, std::ios::binary) << page;
  const test::Seen seen = test::open_page(file);
  EXPECT_THAT(seen.dom, HasSubstr("data-ready=\"yes\""));
  EXPECT_THAT(seen.dom.substr(0, 600), Not(HasSubstr("data-other")));
  EXPECT_THAT(seen.console, HasSubstr("Content Security Policy"));
}

// Studies of one store are chosen on the page, each with tables and runs of its own.
TEST(Report, TheSelectorShowsAnotherStudy) {
  FL_NEED_VEGA();
  FL_NEED_BROWSER();
  MadeStore made;
  for (const int rounds : {20, 40})
    for (const std::uint64_t seed : {1, 2, 3})
      for (const std::string method : {"top", "sign"}) {
        if (rounds == 20 && seed == 3) continue;
        test::MadeRun run{method, "1", seed, RunStatus::done, {{0, 8}}};
        for (int r = 0; r < rounds; ++r) run.rounds.emplace_back(10, method == "top" ? 2 : 1 + 0.1 * static_cast<double>(seed));
        run.scenario = "results_version = " + std::to_string(kLeastResultsVersion) + "\nname = 'made'\nrounds = " + std::to_string(rounds) +
                       "\nseed = " + std::to_string(seed) + "\n";
        made.add(run);
      }
  const std::vector<Study> studies = read_studies(made.store());
  ASSERT_EQ(studies.size(), 2u);
  const std::vector<ReportedStudy> reported{{studies[0]}, {studies[1]}};
  std::ostringstream page;
  write_report(reported, page);
  const std::filesystem::path file = made.folder() / "studies.html";
  std::ofstream(file, std::ios::binary) << page.str();
  const test::Seen seen = test::open_page(file, R"(
    const root = document.documentElement, select = document.getElementById("study");
    root.dataset.first = document.getElementById("facts").textContent;
    select.value = "1";
    select.dispatchEvent(new Event("change"));
    root.dataset.second = document.getElementById("facts").textContent;
    root.dataset.listed = document.querySelectorAll("#runs tbody tr").length;)");
  EXPECT_THAT(seen.dom.substr(0, 800), HasSubstr("data-first=\"study “rounds = 40”, one of 2 in this store"));
  EXPECT_THAT(seen.dom.substr(0, 800), HasSubstr("data-second=\"study “rounds = 20”, one of 2 in this store"));
  EXPECT_THAT(seen.dom.substr(0, 800), HasSubstr("data-listed=\"4\""));
  EXPECT_EQ(seen.console, "");
}

// Published and entropy bits are axes where every round of every run has them.
TEST(Report, OffersTheBitsThatAllRunsHave) {
  const auto keys_of = [](double factor) {
    MadeStore made;
    for (const std::string method : {"none", "top"}) {
      test::MadeRun run{method, "1", 1, RunStatus::done, {{0, 8}, {10, 4}, {10, 2}}};
      run.published_bits_factor = method == "none" ? 1 : factor;
      made.add(run);
    }
    const Json bits = Json::parse(report_data(read_study(made.store()), {}))["measures"][0]["bits"];
    std::vector<std::string> keys;
    for (const auto& [key, _] : bits.items()) keys.push_back(key);
    return keys;
  };
  EXPECT_THAT(keys_of(2), testing::UnorderedElementsAre("up", "both", "published", "entropy"));
  EXPECT_THAT(keys_of(kNotMeasured), testing::UnorderedElementsAre("up", "both"));
}

INSTANTIATE_TEST_SUITE_P(
    Studies, ReportInABrowser,
    testing::Values(
        MadeSeeds{"Pairs", [](MadeStore& made) { add_pair(made, "top", 0.1); }},
        MadeSeeds{"Contrasts", add_feedbacks, {"top:none", "none:top"}, {"feedback.up=x:y"}},
        MadeSeeds{"SingleRun",
                  [](MadeStore& made) {
                    made.add({"top", "1", 1, RunStatus::done, {{0, 8}, {5, 4}}});
                  }},
        MadeSeeds{"Clients",
                  [](MadeStore& made) {
                    for (const std::uint64_t seed : {1, 2, 3})
                      for (const double rate : {1.0, 2.0})
                        made.add({rate == 1 ? "none" : "top", "1", seed, RunStatus::done, {{0, 8}, {10, 4 / rate}, {10, 2 / rate}}, true});
                  }},
        MadeSeeds{"SomeDiverged",
                  [](MadeStore& made) {
                    add_pair(made, "top", 0.1);
                    made.add({"bad", "1", 1, RunStatus::diverged, {{0, 8}, {5, INFINITY}}});
                  }},
        MadeSeeds{"ManyMethods",
                  [](MadeStore& made) {
                    for (int m = 0; m < 12; ++m) add_pair(made, "method <" + std::to_string(m) + ">", 0.1 + m);
                  }}),
    [](const auto& sample) { return sample.param.label; });

}  // namespace
}  // namespace fl
