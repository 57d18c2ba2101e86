#include "clients/nn/layer_text.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <optional>

#include "fl_core/config/meanings.hpp"

namespace fl::nn {

namespace {

constexpr std::size_t kDeepestLayers = 16;  // layers inside of layers; each level is read again by those around it

// Throws ConfigError for brackets that lie too deep in each other.
void check_depth(const std::string& text) {
  std::size_t depth = 0;
  for (const char c : text) {
    if (c == '[' && ++depth > kDeepestLayers)
      throw ConfigError("layer \"" + shown_layer(text) + "\": layers lie more than " + std::to_string(kDeepestLayers) +
                        " levels deep in each other, which is the limit");
    if (c == ']' && depth > 0) --depth;
  }
}

struct Argument {
  std::string name;  // "" = by position
  Value value;
};

struct Call {
  std::string layer;
  std::vector<Argument> arguments;
};

class Parser {
 public:
  Parser(const std::string& text, const DataNames& names) : text_(text), names_(names) {}

  Call parse() {
    Call call;
    call.layer = word();
    if (accept('(')) {
      while (!accept(')')) {
        if (!call.arguments.empty()) expect(',');
        call.arguments.push_back(argument());
      }
    }
    skip();
    if (at_ != text_.size()) fail("expected the end");
    return call;
  }
  [[noreturn]] void fail(const std::string& what) const {
    throw ConfigError("layer \"" + shown_layer(text_) + "\", character " + std::to_string(at_ + 1) + ": " + what);
  }

 private:
  void skip() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
  }
  bool accept(char c) {
    skip();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail(std::string("expected '") + c + "'");
  }
  std::string word() {
    skip();
    const std::size_t begin = at_;
    while (at_ < text_.size() && (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 || text_[at_] == '_')) ++at_;
    if (begin == at_) fail("expected a name");
    return text_.substr(begin, at_ - begin);
  }
  Argument argument() {
    skip();
    const std::size_t begin = at_;
    if (at_ < text_.size() && std::isalpha(static_cast<unsigned char>(text_[at_])) != 0) {
      std::string name = word();
      if (accept('=')) return {name, value()};
      at_ = begin;
    }
    return {"", value()};
  }
  Value value() {
    skip();
    if (at_ == text_.size()) fail("expected a value");
    if (text_[at_] == '[') return list();
    if (std::isalpha(static_cast<unsigned char>(text_[at_])) != 0) {
      const std::string name = word();
      if (name == "true" || name == "false") return Value{name == "true"};
      if (const auto known = names_.find(name); known != names_.end()) return Value{known->second};
      return Value{name};
    }
    return number();
  }
  Value number() {
    const char *begin = text_.data() + at_, *end = text_.data() + text_.size();
    std::int64_t whole = 0;
    double real = 0;
    const auto as_real = std::from_chars(begin, end, real);
    if (as_real.ec != std::errc{}) fail("expected a value");
    const auto as_whole = std::from_chars(begin, end, whole);
    at_ += static_cast<std::size_t>(as_real.ptr - begin);
    return as_whole.ec == std::errc{} && as_whole.ptr == as_real.ptr ? Value{whole} : Value{real};
  }
  // Layers inside brackets are kept as text: the layer that holds them reads them.
  Value list() {
    expect('[');
    Value::List layers;
    int depth = 0;
    std::size_t begin = at_;
    const auto close = [&] {
      std::string layer = text_.substr(begin, at_ - begin);
      const auto is_space = [](unsigned char c) { return std::isspace(c) != 0; };
      layer.erase(layer.begin(), std::find_if_not(layer.begin(), layer.end(), is_space));
      layer.erase(std::find_if_not(layer.rbegin(), layer.rend(), is_space).base(), layer.end());
      if (!layer.empty()) layers.push_back(Value{layer});
    };
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (depth == 0 && c == ']') {
        close();
        ++at_;
        return Value{std::move(layers)};
      }
      if (depth == 0 && c == ',') {
        close();
        begin = at_ + 1;
      }
      if (c == '(' || c == '[') ++depth;
      if (c == ')' || c == ']') --depth;
    }
    fail("expected ']'");
  }

  const std::string& text_;
  const DataNames& names_;
  std::size_t at_ = 0;
};

// "; did you mean "classes"?", where a word stands for a number that the data do not have.
std::string nearest_number(const Field& field, const Value& value, const DataNames& names) {
  const auto* word = std::get_if<std::string>(&value.data);
  if (word == nullptr || field.type != "integer") return "";
  std::vector<std::string> known;
  std::string all;
  for (const auto& [name, _] : names) {
    known.push_back(name);
    all += (all.empty() ? "" : ", ") + name;
  }
  if (*word == "vocabulary") return "; the data have no vocabulary, which text has (numbers of the data: " + all + ")";
  const std::string near = nearest_name(*word, known);
  return (near.empty() ? "" : "; did you mean \"" + near + "\"?") + (" (numbers of the data: " + all + ")");
}

// Options of the call, and which layer they are for. Words inside nested lists see the same names when they are read.
std::pair<std::string, Options> read_call(const std::string& text, const DataNames& names) {
  check_depth(text);
  Parser parser(text, names);
  const Call call = parser.parse();
  const auto refuse = [&text](const std::string& what) { throw ConfigError("layer \"" + shown_layer(text) + "\": " + what); };
  const Registry& registry = Registry::instance();
  if (!registry.contains("layer", call.layer)) {
    const std::string near = nearest_name(call.layer, registry.names("layer"));
    refuse("there is no layer \"" + call.layer + "\"" + (near.empty() ? "" : "; did you mean \"" + near + "\"?"));
  }
  Options options = registry.default_options("layer", call.layer);
  Schema schema = options.schema();
  std::vector<std::string> given;
  std::size_t position = 0;
  for (const Argument& argument : call.arguments) {
    Field* field = nullptr;
    if (!argument.name.empty())
      field = schema.find(argument.name);
    else if (position < schema.fields().size())
      field = &schema.fields()[position++];
    if (field == nullptr && argument.name.empty()) refuse("takes " + std::to_string(schema.fields().size()) + " options at most");
    if (field == nullptr) {
      std::vector<std::string> known;
      for (const Field& f : schema.fields()) known.push_back(f.name);
      const std::string near = nearest_name(argument.name, known);
      refuse("has no option \"" + argument.name + "\"" + (near.empty() ? "" : "; did you mean \"" + near + "\"?"));
    }
    if (std::find(given.begin(), given.end(), field->name) != given.end()) refuse(field->name + " is given twice");
    given.push_back(field->name);
    if (const auto why = field->assign(argument.value)) refuse(field->name + " " + *why + nearest_number(*field, argument.value, names));
  }
  for (const Field& field : schema.fields())
    if (field.is_required && std::find(given.begin(), given.end(), field.name) == given.end())
      refuse(field.name + " " + missing_text(field.doc));
  Problems problems;
  options.validate(problems);
  if (!problems.empty()) refuse(problems.front().where + " " + problems.front().message);
  return {call.layer, std::move(options)};
}

}  // namespace

std::string shown_layer(const std::string& text) {
  constexpr std::size_t kLongest = 100;  // characters that people read
  return text.size() <= kLongest ? text : text.substr(0, kLongest) + "...";
}

template <class T>
std::unique_ptr<Module<T>> make_layer(const std::string& text, const DataNames& names) {
  const auto [name, options] = read_call(text, names);
  auto layer = make_part<Module<T>>("layer", name, options, Device::cpu, kPrecisionOf<T>);
  layer->set_name(name);
  layer->know(names);
  return layer;
}
template std::unique_ptr<Module<float>> make_layer(const std::string&, const DataNames&);
template std::unique_ptr<Module<double>> make_layer(const std::string&, const DataNames&);

void check_choice_of_layer(const std::string& key, const std::string& layer, const std::vector<std::string>& known, Problems& problems) {
  if (std::find(known.begin(), known.end(), layer) != known.end()) return;
  std::string all;
  for (const std::string& name : known) all += (all.empty() ? "" : ", ") + name;
  const std::string near = nearest_name(layer, known);
  problems.push_back(
      {key, "must be one of " + all + ", is \"" + shown_layer(layer) + "\"" + (near.empty() ? "" : "; did you mean \"" + near + "\"?")});
}

void check_layers(const std::string& key, const std::vector<std::string>& layers, Problems& problems) {
  const DataNames placeholders{{"classes", 2}, {"features", 1}, {"vocabulary", 2}, {"users", 1}, {"items", 1}};
  for (const std::string& layer : layers) {
    try {
      (void)read_call(layer, placeholders);
    } catch (const ConfigError& error) {
      problems.push_back({key, error.what()});
    }
  }
}

}  // namespace fl::nn
