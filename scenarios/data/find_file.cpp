#include "scenarios/data/find_file.hpp"

#include "fl_core/error.hpp"

namespace fl {

namespace fs = std::filesystem;

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
  std::optional<fs::path> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    fs::path name = entry.path().filename();
    if (name.extension() == ".gz") name.replace_extension();
    if (name.string().ends_with(ending) && (!found || entry.path() < *found)) found = entry.path();
  }
  return found;
}

fs::path need_ending(const fs::path& folder, const std::string& ending) {
  const auto file = find_ending(folder, ending);
  if (!file) throw DataError(folder.string() + ": the file *" + ending + " of this data set is missing");
  return *file;
}

}  // namespace fl
