#include "scenarios/data/text.hpp"

#include <unordered_map>

#include "fl_core/config/error.hpp"
#include "scenarios/data/bytes.hpp"
#include "scenarios/data/characters.hpp"
#include "scenarios/data/sequences.hpp"

namespace fl {
namespace {

namespace fs = std::filesystem;

// The text of each role, in order of first appearance.
class RolesParser {
 public:
  RolesParser(std::string_view text, const fs::path& file) : text_(text), file_(file) {}

  std::vector<std::string> parse() {
    for (line_ = 1; !text_.empty(); ++line_) {
      const std::size_t end = std::min(text_.find('\n'), text_.size());
      std::string_view line = text_.substr(0, end);
      text_.remove_prefix(std::min(end + 1, text_.size()));
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (!line.empty()) add(line);
    }
    return std::move(texts_);
  }

 private:
  [[noreturn]] void fail(std::size_t column, const std::string& why) const {
    throw DataError(file_.string() + ":" + std::to_string(line_) + ":" + std::to_string(column + 1) + ": " + why);
  }
  void add(std::string_view line) {
    const std::size_t play = line.find('\t');
    const std::size_t role = play == std::string_view::npos ? play : line.find('\t', play + 1);
    if (role == std::string_view::npos) fail(line.size(), "the line has no three columns: play, role and speech, with tabs between");
    if (play == 0 || role == play + 1) fail(play == 0 ? 0 : role, "the name of the play or the role is empty");
    const auto [place, is_new] = number_.try_emplace(line.substr(0, role), texts_.size());
    if (is_new) texts_.emplace_back();
    std::string& text = texts_[place->second];
    if (!text.empty()) text += '\n';
    append_plain(line, role + 1, text);
  }
  void append_plain(std::string_view line, std::size_t from, std::string& to) const {
    for (std::size_t i = from; i < line.size(); ++i) {
      if (line[i] == '\t') fail(i, "the line has more than three columns");
      if (line[i] != '\\') {
        to += line[i];
        continue;
      }
      const char next = i + 1 < line.size() ? line[i + 1] : ' ';
      if (next != 'n' && next != 't' && next != '\\') fail(i, "a backslash must be followed by n, t or another one");
      to += next == 'n' ? '\n' : next == 't' ? '\t' : '\\';
      ++i;
    }
  }

  std::string_view text_;
  const fs::path& file_;
  std::size_t line_ = 0;
  std::unordered_map<std::string_view, std::size_t> number_;  // by "play TAB role"
  std::vector<std::string> texts_;
};

// Words of a text in order, lines ended by <eos>.
template <class Add>
void for_each_word(std::string_view text, const Add& add) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    for (;;) {
      line.remove_prefix(std::min(line.find_first_not_of(" \r\t"), line.size()));
      if (line.empty()) break;
      const std::size_t word = std::min(line.find_first_of(" \r\t"), line.size());
      add(line.substr(0, word));
      line.remove_prefix(word);
    }
    add(std::string_view("<eos>"));
  }
}

template <class T>
void require_rows(const Dataset<T>& data, const fs::path& file, std::size_t length) {
  if (data.num_rows == 0)
    throw DataError(file.string() + ": no " + (data.client_begin.size() > 2 ? "role" : "text") +
                    " is longer than sequence = " + std::to_string(length) + ", and a row needs one more");
}

// Rows of a text that has no partition of its own, and of the test text behind it or in a file of its own.
template <class T>
LoadedData<T> rows_of(std::span<const std::int32_t> train, const fs::path& file, std::span<const std::int32_t> test,
                      const std::optional<fs::path>& test_file, const std::vector<std::string>& names, const FileDataOptions& options) {
  const TextOptions& text = options.formats.text;
  const auto rows = [&](std::span<const std::int32_t> tokens, const Stretch& stretch, const std::string& name, const fs::path& where) {
    Dataset<T> data = cut_rows<T>(tokens, {&stretch, 1}, text, names, name, options.memory);
    require_rows(data, where, data.num_features);
    data.client_begin.clear();
    return data;
  };
  const TimeSplit parts = split_in_time({0, train.size()}, options.test_fraction);
  LoadedData<T> data;
  data.train = rows(train, parts.train, options.name, file);
  data.train_where = file.string();
  keep_first_rows(data.train, static_cast<std::size_t>(options.rows), file);
  data.is_held_out = options.test_fraction > 0;
  if (data.is_held_out) data.test = rows(train, parts.test, options.name + ".t", file);
  if (test_file) data.test = rows(test, {0, test.size()}, options.name + ".t", *test_file);
  if (data.test) data.test_where = test_file.value_or(file).string();
  return data;
}

std::optional<fs::path> file_of(const std::optional<NamedText>& text) { return text ? std::optional<fs::path>(text->file) : std::nullopt; }

// The texts of a training file and of its test file.
struct TextPair {
  TextPair(const fs::path& file, const std::optional<fs::path>& test_file, const MemoryLimit& memory)
      : train(read_text_file(file, memory)), test(test_file ? read_text_file(*test_file, memory) : "") {}
  [[nodiscard]] std::optional<NamedText> named_test(const std::optional<fs::path>& file) const {
    return file ? std::optional<NamedText>({test, *file}) : std::nullopt;
  }
  std::string train, test;
};

}  // namespace

template <class T>
LoadedData<T> read_roles(const NamedText& roles, const FileDataOptions& options) {
  const TextOptions& text = options.formats.text;
  const fs::path& file = roles.file;
  const std::vector<std::string> texts = RolesParser(roles.text, file).parse();
  std::u32string all;
  std::vector<Stretch> train, test;
  std::size_t num_dropped = 0;
  for (const std::string& role : texts) {
    const std::size_t first = all.size();
    all += decode_utf8(role, file);
    const TimeSplit parts = split_in_time({first, all.size()}, options.test_fraction);
    const bool is_long = all.size() - first >= static_cast<std::size_t>(text.min_text) && rows_in(parts.train, text) > 0;
    num_dropped += is_long ? 0 : 1;
    if (!is_long) continue;
    train.push_back(parts.train);
    test.push_back(parts.test);
  }
  const CharacterSet characters(all);
  const std::vector<std::int32_t> tokens = characters.numbers_of(all, file);
  LoadedData<T> data;
  data.num_dropped_roles = num_dropped;
  data.train = cut_rows<T>(tokens, train, text, characters.names(), options.name, options.memory);
  if (data.train.num_rows == 0)
    throw DataError(file.string() + ": none of " + std::to_string(texts.size()) + " roles has the text for one row: min_text = " +
                    std::to_string(text.min_text) + ", sequence = " + std::to_string(text.sequence) + " and one more character");
  keep_first_rows(data.train, static_cast<std::size_t>(options.rows), file);
  data.train_where = file.string();
  data.is_held_out = options.test_fraction > 0;
  if (!data.is_held_out) return data;
  data.test = cut_rows<T>(tokens, test, text, characters.names(), options.name + ".t", options.memory);
  if (data.test->num_rows == 0)
    throw DataError(file.string() + ": test_fraction = " + to_string(Value{options.test_fraction}) +
                    " of no role is longer than sequence = " + std::to_string(text.sequence));
  data.test_where = file.string();
  return data;
}

template <class T>
LoadedData<T> read_text(const NamedText& train, const std::optional<NamedText>& test, const FileDataOptions& options) {
  const std::u32string text = decode_utf8(train.text, train.file);
  const CharacterSet characters(text);
  std::vector<std::int32_t> test_tokens;
  if (test) test_tokens = characters.numbers_of(decode_utf8(test->text, test->file), test->file);
  return rows_of<T>(characters.numbers_of(text, train.file), train.file, test_tokens, file_of(test), characters.names(), options);
}

template <class T>
LoadedData<T> read_tokens(const NamedText& train, const std::optional<NamedText>& test, const FileDataOptions& options) {
  std::unordered_map<std::string_view, std::int32_t> number;
  std::vector<std::string> names;
  std::vector<std::int32_t> tokens, test_tokens;
  for_each_word(train.text, [&](std::string_view word) {
    const auto [place, is_new] = number.try_emplace(word, static_cast<std::int32_t>(names.size()));
    if (is_new) names.emplace_back(word);
    tokens.push_back(place->second);
  });
  if (test) {
    const auto unknown = number.find("<unk>");
    for_each_word(test->text, [&](std::string_view word) {
      const auto place = number.find(word);
      if (place == number.end() && unknown == number.end())
        throw DataError(test->file.string() + ": word " + std::to_string(test_tokens.size() + 1) + ", \"" + std::string(word) +
                        "\", is not in the training text, which has no <unk> either");
      test_tokens.push_back((place == number.end() ? unknown : place)->second);
    });
  }
  return rows_of<T>(tokens, train.file, test_tokens, file_of(test), names, options);
}

template <class T>
LoadedData<T> load_roles(const fs::path& file, const FileDataOptions& options) {
  return read_roles<T>({read_text_file(file, options.memory), file}, options);
}

template <class T>
LoadedData<T> load_text(const fs::path& file, const std::optional<fs::path>& test, const FileDataOptions& options) {
  const TextPair texts(file, test, options.memory);
  return read_text<T>({texts.train, file}, texts.named_test(test), options);
}

template <class T>
LoadedData<T> load_tokens(const fs::path& file, const std::optional<fs::path>& test, const FileDataOptions& options) {
  const TextPair texts(file, test, options.memory);
  return read_tokens<T>({texts.train, file}, texts.named_test(test), options);
}

template LoadedData<float> read_roles<float>(const NamedText&, const FileDataOptions&);
template LoadedData<double> read_roles<double>(const NamedText&, const FileDataOptions&);
template LoadedData<float> read_text<float>(const NamedText&, const std::optional<NamedText>&, const FileDataOptions&);
template LoadedData<double> read_text<double>(const NamedText&, const std::optional<NamedText>&, const FileDataOptions&);
template LoadedData<float> read_tokens<float>(const NamedText&, const std::optional<NamedText>&, const FileDataOptions&);
template LoadedData<double> read_tokens<double>(const NamedText&, const std::optional<NamedText>&, const FileDataOptions&);
template LoadedData<float> load_roles<float>(const fs::path&, const FileDataOptions&);
template LoadedData<double> load_roles<double>(const fs::path&, const FileDataOptions&);
template LoadedData<float> load_text<float>(const fs::path&, const std::optional<fs::path>&, const FileDataOptions&);
template LoadedData<double> load_text<double>(const fs::path&, const std::optional<fs::path>&, const FileDataOptions&);
template LoadedData<float> load_tokens<float>(const fs::path&, const std::optional<fs::path>&, const FileDataOptions&);
template LoadedData<double> load_tokens<double>(const fs::path&, const std::optional<fs::path>&, const FileDataOptions&);

}  // namespace fl
