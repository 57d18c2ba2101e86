// Registers measures with columns that no table can have, each for another reason.
#include "fedbits/plugin.hpp"

namespace fl {
namespace {

MeasureColumn column_named(const std::string& name) { return {.name = name, .definition = "a number"}; }

// Declares what Which says.
template <class T, int Which>
class Bad : public Measure<T> {
 public:
  explicit Bad(const NoOptions&) {}
  [[nodiscard]] std::vector<MeasureColumn> columns() const override {
    switch (Which) {
      case 0: return {column_named("twice"), column_named("twice")};
      case 1: return {column_named("with blank")};
      case 2: return {column_named("x\"; DROP TABLE runs; --")};
      case 3: return {column_named("train_loss")};
      case 4: return {column_named("seconds")};
      case 5: return {column_named(std::string(65, 'a'))};
      case 6: return {column_named("cumulative_joy")};
      case 7: return {{.name = "untold"}};
      case 8: return {{.name = "escapes", .definition = "\x1b[2J"}};
      case 9: return {column_named("=1+1")};
      case 10: return {column_named("")};
      default: return {};
    }
  }
  void measure(const MeasureView<T>&, MeasureRow&) override {}
};

// Sets a column that it has not declared, and one as a number of the wrong type.
template <class T>
class Undeclared final : public Measure<T> {
 public:
  explicit Undeclared(const NoOptions&) {}
  [[nodiscard]] std::vector<MeasureColumn> columns() const override { return {column_named("declared")}; }
  void measure(const MeasureView<T>&, MeasureRow& row) override { row.set("undeclared", 1); }
};
template <class T>
class WrongType final : public Measure<T> {
 public:
  explicit WrongType(const NoOptions&) {}
  [[nodiscard]] std::vector<MeasureColumn> columns() const override { return {column_named("a_real")}; }
  void measure(const MeasureView<T>&, MeasureRow& row) override { row.set_count("a_real", 1); }
};
// Has the same column as update_cosine of the examples.
template <class T>
class Duplicate final : public Measure<T> {
 public:
  explicit Duplicate(const NoOptions&) {}
  [[nodiscard]] std::vector<MeasureColumn> columns() const override { return {column_named("update_cosine")}; }
  void measure(const MeasureView<T>&, MeasureRow& row) override { row.set("update_cosine", 0.5); }
};

#define FL_BAD(Which)                             \
  template <class T>                              \
  class Bad##Which final : public Bad<T, Which> { \
    using Bad<T, Which>::Bad;                     \
  };                                              \
  FL_REGISTER_MEASURE(Bad##Which, NoOptions, "bad_" #Which, "not well", "")
FL_BAD(0);
FL_BAD(1);
FL_BAD(2);
FL_BAD(3);
FL_BAD(4);
FL_BAD(5);
FL_BAD(6);
FL_BAD(7);
FL_BAD(8);
FL_BAD(9);
FL_BAD(10);
FL_BAD(11);
FL_REGISTER_MEASURE(Undeclared, NoOptions, "undeclared", "sets what it does not declare", "");
FL_REGISTER_MEASURE(WrongType, NoOptions, "wrong_type", "counts where it declares a real number", "");
FL_REGISTER_MEASURE(Duplicate, NoOptions, "duplicate", "has a column of another measure", "");

}  // namespace
}  // namespace fl
