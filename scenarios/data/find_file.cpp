#include "scenarios/data/find_file.hpp"

#include <algorithm>
#include <vector>

#include "fl_core/config/error.hpp"
#include "fl_core/config/key_error.hpp"

namespace fl {

namespace fs = std::filesystem;

namespace {

// The name of a file without .gz.
fs::path plain(fs::path file) {
  if (file.extension() == ".gz") file.replace_extension();
  return file;
}

// The name as published: copies of MNIST are also spread as train-images.idx3-ubyte.
std::string published(const fs::path& file) {
  std::string name = plain(file.filename()).string();
  if (const std::size_t dot = name.rfind(".idx"); dot != std::string::npos) name[dot] = '-';
  return name;
}

// In the order of the alphabet.
std::vector<fs::path> all_ending(const fs::path& folder, const std::string& ending) {
  std::vector<fs::path> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (published(entry.path()).ends_with(ending)) found.push_back(entry.path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace

bool is_file(const fs::path& path) {
  std::error_code status;
  return fs::is_regular_file(path, status);
}

bool is_folder(const fs::path& path) {
  std::error_code status;
  return fs::is_directory(path, status);
}

std::optional<fs::path> find_plain_or_packed(const fs::path& path) {
  if (is_file(path)) return path;
  const fs::path packed = path.string() + ".gz";
  if (is_file(packed)) return packed;
  return std::nullopt;
}

fs::path need_plain_or_packed(const fs::path& path) {
  if (const auto found = find_plain_or_packed(path)) return *found;
  throw DataError(path.string() + ": this file of the data set is missing");
}

std::optional<fs::path> find_ending(const fs::path& folder, const std::string& ending) {
  const std::vector<fs::path> found = all_ending(folder, ending);
  return found.empty() ? std::nullopt : std::optional<fs::path>(found.front());
}

fs::path need_ending(const fs::path& folder, const std::string& ending) {
  const std::vector<fs::path> found = all_ending(folder, ending);
  if (found.empty()) throw DataError(folder.string() + ": the file *" + ending + " of this data set is missing");
  const auto other = std::find_if(found.begin(), found.end(), [&](const fs::path& file) { return plain(file) != plain(found[0]); });
  if (other != found.end())
    throw DataError(folder.string() + ": both " + found[0].filename().string() + " and " + other->filename().string() +
                    " may be meant by *" + ending + "; keep one of them in this folder");
  return found.front();
}

std::string text_of_places(const std::vector<fs::path>& places) {
  std::string text;
  for (const fs::path& place : places) text += (text.empty() ? "" : ", ") + place.string();
  return text;
}

}  // namespace fl
