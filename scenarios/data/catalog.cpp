#include "scenarios/data/catalog.hpp"

#include <algorithm>
#include <cstdlib>

#include "fl_core/config/error.hpp"
#include "fl_core/config/key_error.hpp"
#include "fl_core/config/meanings.hpp"
#include "scenarios/data/bytes.hpp"
#include "scenarios/data/embedded.hpp"
#include "scenarios/data/find_file.hpp"
#include "scenarios/data/format_options.hpp"
#include "scenarios/data/sha256.hpp"

namespace fl {
namespace {

namespace fs = std::filesystem;

constexpr const char* kEmbeddedName = "libsvm/mushrooms";
constexpr const char* kPrefix = "libsvm/";

std::string long_name(const std::string& name) { return name.starts_with(kPrefix) ? name : kPrefix + name; }

bool names_a_file(const std::string& name) { return name.starts_with("/") || name.starts_with("./") || name.starts_with("../"); }

// The names of known data sets, those of LIBSVM without their prefix too.
std::vector<std::string> short_names() {
  std::vector<std::string> names;
  for (const DataInfo& info : known_data()) {
    names.push_back(info.name);
    if (info.name.starts_with(kPrefix)) names.push_back(info.name.substr(std::string(kPrefix).size()));
  }
  return names;
}

std::string checksum(const DataLocation& location) {
  const std::string text = location.file.empty() ? unpack_data(location.embedded, location.where()) : read_data_file(location.file);
  return sha256_of(std::as_bytes(std::span<const char>(text)));
}

// Where the files of a set lie that are there; a set is there when its first file is.
std::vector<std::optional<DataLocation>> locate(const DataCatalog& catalog, const DataInfo& info) {
  std::vector<std::optional<DataLocation>> places;
  for (const DataFile& file : info.files) places.push_back(catalog.try_find(file.path));
  return places;
}

std::string where_of(const DataInfo& info, const DataLocation& first) {
  return info.files.size() > 1 && !first.file.empty() ? first.file.parent_path().string() : first.where();
}

// Compares the files of a set that is there.
void verify_files(const std::vector<std::optional<DataLocation>>& places, DataListing& listing) {
  bool has_checksums = true, is_complete = true, is_right = true;
  const auto say = [&listing](const std::string& what) { listing.found += (listing.found.empty() ? "" : "; ") + what; };
  for (std::size_t i = 0; i < places.size(); ++i) {
    const DataFile& file = listing.info.files[i];
    if (!places[i]) {
      is_complete = false;
      say(file.path + " is missing");
      continue;
    }
    has_checksums = has_checksums && !file.sha256.empty();
    if (file.sha256.empty()) continue;
    try {
      const std::string found = checksum(*places[i]);
      if (found == file.sha256) continue;
      say(file.path + " has the checksum " + found);
    } catch (const DataError& error) {
      say(error.what());
    }
    is_right = false;
  }
  listing.state = !is_right       ? DataState::differs
                  : !is_complete  ? DataState::incomplete
                  : has_checksums ? DataState::matches
                                  : DataState::present;
}

}  // namespace

const DataInfo* find_data_info(const std::string& name) {
  for (const DataInfo& info : known_data())
    if (info.name == name || info.name == long_name(name)) return &info;
  return nullptr;
}

DataCatalog::DataCatalog(const fs::path& data_folder, const MemoryLimit& memory) : memory_(memory) {
  add_data_folders(data_folder);
  if (is_folder("data")) folders_.emplace_back("data");
}

DataCatalog DataCatalog::confined(const fs::path& data_folder, const std::vector<fs::path>& also, const MemoryLimit& memory) {
  DataCatalog catalog(memory, true);
  catalog.add_data_folders(data_folder);
  for (const fs::path& place : also) {
    if (!is_file(place) && !is_folder(place)) throw ConfigError("--also-read " + place.string() + ": there is no such file or folder");
    if (is_folder(place)) catalog.folders_.push_back(place);
    catalog.roots_.push_back(fs::canonical(place));
  }
  for (const fs::path& folder : catalog.folders_) catalog.roots_.push_back(fs::canonical(folder));
  return catalog;
}

void DataCatalog::add_data_folders(const fs::path& data_folder) {
  if (!data_folder.empty()) {
    if (!is_folder(data_folder)) throw ConfigError("--data " + data_folder.string() + ": there is no such folder");
    folders_.push_back(data_folder);
  }
  const char* environment = std::getenv("FEDBITS_DATA");
  if (environment != nullptr && *environment != '\0') {
    if (!is_folder(environment)) throw ConfigError(std::string("FEDBITS_DATA = ") + environment + ": there is no such folder");
    folders_.emplace_back(environment);
  }
}

// Returns whether a place that exists is one that this catalog may find, wherever its links lead.
bool DataCatalog::may_read(const fs::path& place) const {
  if (!is_confined_) return true;
  std::error_code error;
  const fs::path resolved = fs::canonical(place, error);
  return !error && std::ranges::any_of(roots_, [&resolved](const fs::path& root) {
    return std::mismatch(root.begin(), root.end(), resolved.begin(), resolved.end()).first == root.end();
  });
}

// Returns the plain or the packed file, when either is there and may be read.
std::optional<fs::path> DataCatalog::find_file(const fs::path& place) const {
  for (const fs::path& candidate : {place, fs::path(place.string() + ".gz")})
    if (is_file(candidate) && may_read(candidate)) return candidate;
  return std::nullopt;
}

// Returns where a path of a scenario may lead, in the order of search: beside the scenario file, in the working folder, and below the data
// folders; in a confined catalog below its folders alone.
std::vector<fs::path> DataCatalog::places_of(const std::string& path, const fs::path& folder) const {
  if (fs::path(path).is_absolute()) return {path};
  std::vector<fs::path> places;
  const auto add = [&places](const fs::path& place) {
    if (std::ranges::find(places, place.lexically_normal()) == places.end()) places.push_back(place.lexically_normal());
  };
  if (!is_confined_) {
    add(folder / path);
    add(path);
  }
  for (const fs::path& data : folders_) add(data / path);
  return places;
}

// Returns where the folder or file of a name may be. A name that begins with a slash or dots is a path.
std::vector<fs::path> DataCatalog::places_of_name(const std::string& name) const {
  if (names_a_file(name)) return is_confined_ ? places_of(name, {}) : std::vector<fs::path>{name};
  std::vector<fs::path> places;
  for (const fs::path& folder : folders_) places.push_back(folder / name);
  return places;
}

// Returns what an error about places says where some of them are there and may not be read.
std::string DataCatalog::text_of_confinement(const std::vector<fs::path>& places) const {
  if (!is_confined_) return "";
  for (const fs::path& place : places) {
    std::error_code error;
    if (!fs::exists(place, error) || may_read(place)) continue;
    return "; " + place.string() +
           " lies outside of the folders whose files a server's scenario may name here (--data, FEDBITS_DATA), or is a link that leads out "
           "of them; --also-read PATH allows another file or folder";
  }
  return "";
}

void DataCatalog::require_links_inside(const fs::path& folder) const {
  if (!is_confined_) return;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    if (!entry.is_symlink(error) || !fs::exists(entry.path(), error) || may_read(entry.path())) continue;
    throw ConfigError("the folder " + folder.string() + " is not read for a server" + text_of_confinement({entry.path()}));
  }
}

std::optional<DataLocation> DataCatalog::try_find(const std::string& name) const {
  std::vector<fs::path> places;
  if (names_a_file(name)) places = places_of_name(name);
  for (const fs::path& folder : names_a_file(name) ? std::vector<fs::path>() : folders_)
    places.insert(places.end(), {folder / name, folder / kPrefix / name});
  for (const fs::path& place : places)
    if (const auto file = find_file(place)) return DataLocation{name, *file, {}};
  if (long_name(name) == kEmbeddedName) return DataLocation{name, {}, embedded_mushrooms()};
  return std::nullopt;
}

std::optional<fs::path> DataCatalog::find_folder(const std::string& name) const {
  if (name.empty()) return std::nullopt;
  for (const fs::path& place : places_of_name(name))
    if (is_folder(place) && may_read(place) && format_of_folder(place)) return place;
  return std::nullopt;
}

DataLocation DataCatalog::find(const std::string& name) const {
  if (name.empty()) throw ConfigError("the name of the data set is empty");
  if (auto folder = find_folder(name)) return {name, *folder, {}};
  if (auto found = try_find(name)) return *found;
  std::string message = "the data set \"" + name + "\" was not found";
  const std::string confinement = text_of_confinement(places_of_name(name));
  if (names_a_file(name))
    throw ConfigError(message + (confinement.empty() ? ": there is no such file, neither plain nor with .gz" : confinement));
  message += folders_.empty() ? ": there is no data folder (--data, FEDBITS_DATA or ./data)" : "; looked in";
  for (const fs::path& folder : folders_) message += (folder == folders_.front() ? " " : ", ") + folder.string();
  const std::string hint = did_you_mean(name, short_names(), Sought::value);
  if (find_data_info(name) != nullptr)
    message += "; `fedbits data fetch " + name + " --data DIR` gets it from its publisher, then pass --data DIR";
  else
    message += hint;
  throw ConfigError(message + confinement + " (`fedbits data` shows what is there)");
}

DataLocation DataCatalog::find_path(const std::string& path, const fs::path& folder) const {
  if (path.empty()) throw ConfigError("the path of the data set is empty");
  const std::vector<fs::path> places = places_of(path, folder);
  for (const fs::path& place : places) {
    if (is_folder(place) && may_read(place) && format_of_folder(place).has_value()) return {path, place, {}};
    if (const auto file = find_file(place)) return {path, *file, {}};
  }
  if (!names_a_file(path) && (find_folder(path) || try_find(path))) return find(path);
  std::string message = "there is no data file or folder \"" + path + "\"; looked for " + text_of_places(places) + ", each also with .gz";
  const std::string hint = did_you_mean(path, short_names(), Sought::value);
  if (find_data_info(path) != nullptr)
    message += "; a known data set is written name = \"" + path + "\"";
  else
    message += hint;
  throw ConfigError(message + text_of_confinement(places) + " (`fedbits data` shows what is there)");
}

std::string DataCatalog::find_input(const std::string& key, const std::string& path, const fs::path& folder) const {
  if (path.empty()) return path;
  const std::vector<fs::path> places = places_of(path, folder);
  for (const fs::path& place : places) {
    std::error_code error;
    if (fs::exists(place, error) && may_read(place)) return place.string();
  }
  throw key_error(key, "there is no file '" + path + "'; looked for " + text_of_places(places) + text_of_confinement(places));
}

std::optional<DataLocation> DataCatalog::find_test(const DataLocation& train) const {
  if (train.file.empty()) return std::nullopt;
  fs::path base = train.file;
  if (base.extension() == ".gz") base.replace_extension();
  const auto file = find_file(base.string() + ".t");
  return file ? std::optional<DataLocation>({train.name + ".t", *file, {}}) : std::nullopt;
}

std::vector<DataListing> DataCatalog::list() const {
  std::vector<DataListing> listings;
  for (const DataInfo& info : known_data()) {
    const auto first = locate(*this, info).front();
    listings.push_back({info, first ? DataState::present : DataState::missing, first ? where_of(info, *first) : "", ""});
  }
  return listings;
}

std::vector<DataListing> DataCatalog::verify() const {
  std::vector<DataListing> listings = list();
  for (DataListing& listing : listings)
    if (listing.state == DataState::present) verify_files(locate(*this, listing.info), listing);
  return listings;
}

template <class T>
Dataset<T> read_data(const DataLocation& location, const LibsvmFormat& format) {
  if (!location.file.empty()) return read_libsvm<T>(location.file, location.name, format);
  Dataset<T> data = parse_libsvm<T>(unpack_text(location.embedded, location.where()), location.name, format);
  return data;
}

template Dataset<float> read_data<float>(const DataLocation&, const LibsvmFormat&);
template Dataset<double> read_data<double>(const DataLocation&, const LibsvmFormat&);

}  // namespace fl
