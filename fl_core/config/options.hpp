// Options of a part: a plain struct with defaults, and one function that names its fields.
//
//   struct TopKOptions {
//     std::int64_t k = 0;
//     double ratio = 0.01;
//   };
//   inline void describe(Schema& s, TopKOptions& o) {
//     s.field("k", o.k, "entries kept per segment; 0 takes the ratio").at_least(0);
//     s.field("ratio", o.ratio, "fraction of entries kept").above(0).at_most(1);
//   }
//   inline void validate(const TopKOptions& o, Problems& problems) { ... }    // optional: conditions between fields
//
// The same description reads a scenario file, checks values, lists defaults (`fedbits list`) and writes docs/scenario-reference.md.
// A field's type is bool, std::int64_t, double, std::string, Expression, Choice (an enum), or a vector of double, int64 or string;
// fl_core/config/part_field.hpp has fields that are parts themselves.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <typeinfo>
#include <utility>
#include <variant>
#include <vector>

#include "fl_core/config/error.hpp"
#include "fl_core/config/expression.hpp"

namespace fl {

// A configuration value, free of any file format.
struct Value {
  using List = std::vector<Value>;
  using Table = std::vector<std::pair<std::string, Value>>;  // a part that an option names, with its options
  std::variant<std::monostate, bool, std::int64_t, double, std::string, List, Table> data;
};
[[nodiscard]] FL_API std::string to_string(const Value& value);  // Returns the value in TOML syntax.

// One field of an options struct. It sets, shows and checks the field.
class FL_API Field {
 public:
  using Setter = std::function<std::optional<std::string>(const Value&)>;  // returns the reason if the value is rejected
  using Getter = std::function<Value()>;

  Field(std::string name, std::string type, std::string doc, Setter set, Getter get);

  Field& at_least(double bound);
  Field& above(double bound);
  Field& at_most(double bound);
  Field& below(double bound);
  Field& required();
  Field& unit(std::string unit);
  // Says that scenarios were written before the field existed: this default is left out of resolved texts, so that theirs keep their hash.
  Field& added_later(Value default_value);

  // Sets the field, or returns the reason for a rejected value: "must be above 0, is -1".
  [[nodiscard]] std::optional<std::string> assign(const Value& value);
  [[nodiscard]] Value value() const { return get_(); }
  // Returns false while the value lies outside its own bounds: a default such as k = 0 with k >= 1 means "not given".
  [[nodiscard]] bool is_set() const { return !check_bounds(get_()); }
  // Returns whether the value belongs in the resolved text of a scenario.
  [[nodiscard]] bool is_written() const;
  [[nodiscard]] std::string constraint() const;  // "> 0, <= 1", or ""

  std::string name, type, doc, unit_text;
  std::vector<std::string> choices;  // for enums
  bool takes_tables = false;         // the value is a part with its own options, or a list of such parts
  bool is_required = false;
  std::optional<Value> unwritten{};  // the value that is left out of resolved texts (added_later)

 private:
  [[nodiscard]] std::optional<std::string> check_bounds(const Value& value) const;
  Setter set_;
  Getter get_;
  std::optional<double> at_least_, above_, at_most_, below_;
};

// The fields of one options struct, in the order of their declaration.
class FL_API Schema {
 public:
  Field& field(std::string name, bool& value, std::string doc);
  Field& field(std::string name, std::int64_t& value, std::string doc);
  Field& field(std::string name, double& value, std::string doc);
  Field& field(std::string name, std::string& value, std::string doc);
  Field& field(std::string name, Expression& value, std::string doc);
  Field& field(std::string name, std::vector<double>& value, std::string doc);
  Field& field(std::string name, std::vector<std::int64_t>& value, std::string doc);
  Field& field(std::string name, std::vector<std::string>& value, std::string doc);

  // Adds an enum field. `names` pairs each enumerator with its name in scenario files.
  template <class E>
  Field& choice(std::string name, E& value, std::vector<std::pair<E, std::string>> names, std::string doc);

  Field& add(Field field);  // a field of another kind, with its own setter and getter

  [[nodiscard]] std::vector<Field>& fields() { return fields_; }
  [[nodiscard]] Field* find(const std::string& name);

 private:
  std::vector<Field> fields_;
};

using Problems = std::vector<Problem>;

// An options struct of any type, with its description. A registry hands it to the scenario reader.
class FL_API Options {
 public:
  Options() = default;
  template <class O>
  [[nodiscard]] static Options of(O defaults = {});

  [[nodiscard]] Schema schema();            // holds pointers into this object
  void validate(Problems& problems) const;  // checks conditions between fields
  template <class O>
  [[nodiscard]] const O& as() const;  // throws Error if it holds another type
  [[nodiscard]] bool empty() const { return self_ == nullptr; }

 private:
  struct Concept {
    virtual ~Concept() = default;
    virtual std::unique_ptr<Concept> clone() const = 0;
    virtual void describe_to(Schema& schema) = 0;
    virtual void validate_to(Problems& problems) const = 0;
    virtual const void* address(const std::type_info& type) const = 0;
  };
  template <class O>
  struct Holder;
  std::unique_ptr<Concept> self_;

 public:
  Options(const Options& other) : self_(other.self_ ? other.self_->clone() : nullptr) {}
  Options& operator=(const Options& other) {
    self_ = other.self_ ? other.self_->clone() : nullptr;
    return *this;
  }
  Options(Options&&) noexcept = default;
  Options& operator=(Options&&) noexcept = default;
  ~Options() = default;
};

// Options of a part that has none.
struct NoOptions {};
inline void describe(Schema&, NoOptions&) {}

// ---- implementation ---------------------------------------------------------------------------------------------------------

template <class O>
concept HasValidate = requires(const O& options, Problems& problems) {
  validate(options, problems);
};

template <class O>
void validate_if_declared(const O& options, Problems& problems) {
  if constexpr (HasValidate<O>) validate(options, problems);
}

template <class O>
struct Options::Holder final : Options::Concept {
  explicit Holder(O value) : options(std::move(value)) {}
  std::unique_ptr<Concept> clone() const override { return std::make_unique<Holder>(options); }
  void describe_to(Schema& schema) override { describe(schema, options); }
  void validate_to(Problems& problems) const override { validate_if_declared(options, problems); }
  const void* address(const std::type_info& type) const override { return type == typeid(O) ? &options : nullptr; }
  O options;
};

template <class O>
concept HasDescribe = requires(Schema& schema, O& options) {
  describe(schema, options);
};

template <class O>
Options Options::of(O defaults) {
  static_assert(HasDescribe<O>,
                "a part's options need a function beside their struct that names the fields: "
                "inline void describe(Schema& schema, MyOptions& options) { schema.field(\"name\", options.name, \"what it is\"); }. "
                "It stands in the namespace of the struct. A part without options takes fl::NoOptions");
  Options result;
  if constexpr (HasDescribe<O>) result.self_ = std::make_unique<Holder<O>>(std::move(defaults));
  return result;
}

template <class O>
const O& Options::as() const {
  const void* p = self_ ? self_->address(typeid(O)) : nullptr;
  if (p == nullptr) throw Error("options of another type were asked for");
  return *static_cast<const O*>(p);
}

template <class E>
Field& Schema::choice(std::string name, E& value, std::vector<std::pair<E, std::string>> names, std::string doc) {
  std::vector<std::string> choices;
  for (const auto& [_, text] : names) choices.push_back(text);
  auto set = [&value, names, choices](const Value& v) -> std::optional<std::string> {
    const auto* text = std::get_if<std::string>(&v.data);
    if (text == nullptr) return "must be a string";
    for (const auto& [e, candidate] : names) {
      if (candidate == *text) {
        value = e;
        return std::nullopt;
      }
    }
    std::string all;
    for (const auto& c : choices) all += (all.empty() ? "" : ", ") + c;
    const std::string near = nearest_name(*text, choices);
    return "must be one of " + all + (near.empty() ? "" : "; did you mean \"" + near + "\"?");
  };
  auto get = [&value, names]() -> Value {
    for (const auto& [e, candidate] : names)
      if (e == value) return Value{candidate};
    return Value{std::string{}};
  };
  Field& f = add(Field(std::move(name), "choice", std::move(doc), std::move(set), std::move(get)));
  f.choices = std::move(choices);
  return f;
}

}  // namespace fl
