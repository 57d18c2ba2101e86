// Tests measures over the network whose peers lose their connections, and measures that a server without training rows cannot take.
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "net/peer/hosted_sums.hpp"
#include "scenarios/measures/measure.hpp"
#include "tests/net/exact_run.hpp"
#include "tests/net/presence_run.hpp"
#include "tests/support/every_method.hpp"

namespace fl {
namespace {

namespace fs = std::filesystem;
using test::Fault;

ServerData known_of(const std::string& text) {
  const std::string file = (fs::temp_directory_path() / ("fedbits_trouble_" + std::to_string(::getpid()))).string();
  ServerData known = test::server_data_through_file(text, "", file);
  fs::remove(file);
  return known;
}

std::string text_with_measures() {
  std::string text = test::text_of(test::methods().at(1), "float32");
  const std::string table = "[evaluate]\n";
  const std::size_t at = text.find(table);
  EXPECT_NE(at, std::string::npos) << text;
  return text;
}

class CutMeasure : public testing::TestWithParam<Fault> {};

// Each order of sums is cut once. The order is sent again, and what has arrived of it before is not added twice.
TEST_P(CutMeasure, EndsWithTheSimulatedValues) {
  const std::string text = text_with_measures();
  const ServerData known = known_of(text);
  std::set<std::uint32_t> cut;
  const auto faults = [&cut](const net::wire::Header& header) {
    return header.has_measure_order() && cut.insert(header.measure_order().order()).second ? GetParam() : Fault::none;
  };
  const test::PresenceRun run = test::run_with_presence(text, {}, {{"0-1", faults}, {"2-6"}}, {}, {}, &known);
  EXPECT_GT(cut.size(), 4U);
  test::expect_same_run(text, test::run_simulated(text), run);
  EXPECT_TRUE(run.counts.refused.empty()) << run.counts.refused.begin()->first;
}

INSTANTIATE_TEST_SUITE_P(Faults, CutMeasure, testing::Values(Fault::cut_before, Fault::cut_between, Fault::cut_after));

// ---- measures that read training rows

int g_asked_with_rows = 0, g_asked_without_rows = 0;

struct RowReaderOptions {
  bool reads = true;
};
inline void describe(Schema& schema, RowReaderOptions& options) { schema.field("reads", options.reads, "reads training rows"); }

template <class T>
class RowReader final : public Measure<T> {
 public:
  explicit RowReader(const RowReaderOptions& options) : reads_(options.reads) {}
  [[nodiscard]] std::vector<MeasureColumn> columns() const override { return {{.name = "first_label", .definition = "a label"}}; }
  [[nodiscard]] bool reads_training_rows() const override { return reads_; }
  [[nodiscard]] std::string refusal(const MeasureProblem<T>& problem) const override {
    ++(problem.has_rows ? g_asked_with_rows : g_asked_without_rows);
    return "";
  }
  void measure(const MeasureView<T>&, MeasureRow& row) override { row.set("first_label", 1); }

 private:
  bool reads_;
};
FL_REGISTER_MEASURE(RowReader, RowReaderOptions, "row_reader", "for tests: reads training rows, or says that it does not", "");

std::string text_with_reader(bool reads) {
  std::string text = text_with_measures();
  const std::string table = "[evaluate]\n";
  return text.replace(text.find(table), table.size(),
                      table + "measures = [{kind='row_reader', reads=" + (reads ? "true" : "false") + "}]\n");
}

// The server says so before it waits for a peer, and before the measure sees a problem that has no rows.
TEST(MeasuresOfRows, AreRefusedByAServerWithoutThemBeforeAPeerComes) {
  const std::string text = text_with_reader(true);
  const ServerData known = known_of(text_with_reader(false));
  g_asked_without_rows = 0;
  const test::NetworkRun run = test::run_without_rows(text, {}, known, "", "");
  EXPECT_NE(run.error.find("reads training rows, which a server without them"), std::string::npos) << run.error;
  EXPECT_EQ(g_asked_without_rows, 0);
  EXPECT_EQ(run.counts.frames_in, 0U);
}

TEST(MeasuresOfRows, ThatReadNoneAreTaken) {
  const std::string text = text_with_reader(false);
  const test::NetworkRun run = test::run_without_rows(text, {"0-6"}, known_of(text), "", "");
  test::expect_same_run(text, test::run_simulated(text), run);
}

}  // namespace
}  // namespace fl
