#include "fl_core/config/meanings.hpp"

#include <algorithm>
#include <cctype>

#include "fl_core/config/error.hpp"

namespace fl {
namespace {

// "Batch-Size" and "batch_size" differ in habit, not in meaning.
std::string folded_word(const std::string& word) {
  std::string result;
  for (const char c : word)
    if (c != '-' && c != '_' && c != ' ') result += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

std::vector<std::string> split_at_commas(const std::string& text) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    std::string part = text.substr(begin, end - begin);
    part.erase(0, part.find_first_not_of(' '));
    if (!part.empty()) parts.push_back(std::move(part));
    begin = end + 1;
  }
  return parts;
}

Meaning meaning_of(const FieldWord& line) {
  Meaning meaning;
  meaning.with = split_at_commas(line.with);
  meaning.note = line.note;
  std::string path = line.target;
  if (path.starts_with("[")) {
    meaning.table = path.substr(1, path.size() - 2);
    return meaning;
  }
  if (const std::size_t equals = path.find('='); equals != std::string::npos) {
    meaning.value = path.substr(equals + 1);
    path.resize(equals);
  }
  const std::size_t dot = path.rfind('.');
  meaning.table = dot == std::string::npos ? "" : path.substr(0, dot);
  meaning.key = dot == std::string::npos ? path : path.substr(dot + 1);
  return meaning;
}

bool contains(const std::vector<std::string>& names, const std::string& name) { return std::ranges::find(names, name) != names.end(); }

std::string in_quotes(const std::string& text) { return std::string("\"").append(text).append("\""); }

// "a.b=c" as a file has it: a.b = c, with quotes around what is no number.
std::string as_setting(const std::string& text) {
  const std::size_t equals = text.find('=');
  const std::string value = text.substr(equals + 1);
  const bool is_number = value.find_first_not_of("0123456789.") == std::string::npos;
  return text.substr(0, equals) + " = " + (is_number ? value : in_quotes(value));
}

std::string supplement(const Meaning& meaning) {
  std::string text;
  for (const std::string& setting : meaning.with) text += (text.empty() ? " with " : " and ") + as_setting(setting);
  return text + (meaning.note.empty() ? "" : " (" + meaning.note + ")");
}

// "[local]", or where keys stand that are in no table.
std::string place_of(const Meaning& meaning) { return meaning.table.empty() ? "above the first table" : "in [" + meaning.table + "]"; }

std::string elsewhere(const Meaning& meaning) {
  if (meaning.key.empty()) return "[" + meaning.table + "]" + supplement(meaning);
  if (meaning.key == "layer") return "the layer " + in_quotes(meaning.value) + supplement(meaning);
  const std::string what = meaning.value.empty() ? in_quotes(meaning.key) : meaning.key + " = " + in_quotes(meaning.value);
  return what + " (" + place_of(meaning) + ")" + supplement(meaning);
}

}  // namespace

std::string Meaning::name() const {
  if (!value.empty()) return value;
  return key.empty() ? table.substr(table.rfind('.') + 1) : key;
}

std::vector<Meaning> meanings_of(const std::string& word) {
  constexpr std::size_t kLongestWord = 100;
  std::vector<Meaning> found;
  if (word.empty() || word.size() > kLongestWord) return found;
  const std::string wanted = folded_word(word);
  for (const FieldWord& line : field_words())
    for (const std::string& one : split_at_commas(line.words))
      if (folded_word(one) == wanted) {
        found.push_back(meaning_of(line));
        break;
      }
  return found;
}

std::string absence_of(const std::string& word) {
  const std::string wanted = folded_word(word);
  for (const AbsentThing& thing : absent_things())
    for (const std::string& one : split_at_commas(thing.words))
      if (folded_word(one) == wanted) return thing.sentence;
  return "";
}

std::string did_you_mean(const std::string& word, const std::vector<std::string>& candidates, Sought sought) {
  if (const std::string absence = absence_of(word); !absence.empty()) return "; " + absence;
  const std::vector<Meaning> meanings = meanings_of(word);
  const auto is_sought = [sought](const Meaning& meaning) { return meaning.value.empty() == (sought == Sought::key); };
  const auto fits = [&](const Meaning& meaning) { return is_sought(meaning) && contains(candidates, meaning.name()); };
  if (const auto here = std::ranges::find_if(meanings, fits); here != meanings.end())
    return "; did you mean " + in_quotes(here->name()) + supplement(*here) + "?";
  // A word that means something else is no slip of the fingers, unless a letter is missing at its end.
  const std::string near = nearest_name(word, candidates);
  const bool is_slip = !near.empty() && (near.starts_with(word) || word.starts_with(near));
  const auto other = std::ranges::find_if(meanings, is_sought);
  if (!meanings.empty() && !is_slip) return "; did you mean " + elsewhere(other != meanings.end() ? *other : meanings.front()) + "?";
  return near.empty() ? "" : "; did you mean " + in_quotes(near) + "?";
}

std::string missing_text(const std::string& meaning) { return "is missing and has no default; its meaning: " + meaning; }

std::string meant_value(const std::string& word, const std::vector<std::string>& candidates) {
  for (const Meaning& meaning : meanings_of(word))
    if (!meaning.value.empty() && contains(candidates, meaning.value)) return meaning.value;
  return "";
}

std::string table_of_role(const std::string& role) {
  static constexpr std::pair<const char*, const char*> kTables[] = {{"compressor", "compressor.up"},
                                                                    {"feedback", "feedback.up"},
                                                                    {"model", "model"},
                                                                    {"partitioner", "partition"},
                                                                    {"local_update", "local"},
                                                                    {"local_optimizer", "local_optimizer"},
                                                                    {"participation", "participation"},
                                                                    {"aggregation", "aggregation"},
                                                                    {"delivery", "delivery"},
                                                                    {"devices", "devices"},
                                                                    {"network", "network"},
                                                                    {"availability", "availability"},
                                                                    {"asynchronous", "asynchronous"},
                                                                    {"server_optimizer", "server"},
                                                                    {"data", "data"},
                                                                    {"postprocessor", "postprocessor"}};
  for (const auto& [one, table] : kTables)
    if (role == one) return table;
  return "";
}

}  // namespace fl
