#include "scenarios/data/catalog.hpp"

#include <cstdlib>

#include "fl_core/error.hpp"
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

std::vector<DataInfo> make_known() {
  return {
      {"libsvm/a9a", "census income above 50,000 (UCI Adult), binary features", 32561, 123, 2,
       "f5d5ffd8d865ff41328e7ee043e4b020816914ff6843ff15b98905ddbedce906"},
      {"libsvm/a9a.t", "test set of a9a", 16281, 122, 2, "1f448a153f0320399a7e40836eb207655b0bde0f21fc941cc472193daa9f5de9"},
      {"libsvm/australian", "credit approval (Statlog), 14 mixed features", 690, 14, 2,
       "e11b85d6265a6cc8d07e3200fc04557009e6e2407331ea8d7910eddf199c2d1a"},
      {"libsvm/madelon", "artificial, 5 informative features among 500 (NIPS 2003)", 2000, 500, 2,
       "4801c452441772b47674fa8deb3724b1cb897eff49ccd8d47078367080c05b54"},
      {"libsvm/mushrooms", "poisonous or edible (UCI Mushroom), binary features; inside fedbits", 8124, 112, 2,
       "f39a4eb628dc61a7d43760815b061c9e497aa728ce1ad8bde57a09ef6043b538"},
      {"libsvm/w8a", "web pages by keywords (Platt), binary features, 3% positive", 49749, 300, 2,
       "6a9fa8fd5f524303240a5db07d4b3d4a51e8b7b4b20a914105d8e3e8c81640f2"},
      {"libsvm/w8a.t", "test set of w8a", 14951, 300, 2, "618929ecb01bebb841daec4cae4aa07b97832d29b08652452775598929547fde"},
  };
}

std::string long_name(const std::string& name) { return name.starts_with(kPrefix) ? name : kPrefix + name; }

bool names_a_file(const std::string& name) { return name.starts_with("/") || name.starts_with("./") || name.starts_with("../"); }

std::string checksum(const DataLocation& location) {
  const std::string text = location.file.empty() ? unpack_data(location.embedded, location.where()) : read_data_file(location.file);
  return sha256_of(std::as_bytes(std::span<const char>(text)));
}

}  // namespace

const std::vector<DataInfo>& known_data() {
  static const std::vector<DataInfo> known = make_known();
  return known;
}

const DataInfo* find_data_info(const std::string& name) {
  for (const DataInfo& info : known_data())
    if (info.name == long_name(name)) return &info;
  return nullptr;
}

DataCatalog::DataCatalog(const fs::path& data_folder) {
  if (!data_folder.empty()) {
    if (!is_folder(data_folder)) throw ConfigError("--data " + data_folder.string() + ": there is no such folder");
    folders_.push_back(data_folder);
  }
  const char* environment = std::getenv("FEDBITS_DATA");
  if (environment != nullptr && *environment != '\0') {
    if (!is_folder(environment)) throw ConfigError(std::string("FEDBITS_DATA = ") + environment + ": there is no such folder");
    folders_.emplace_back(environment);
  }
  if (is_folder("data")) folders_.emplace_back("data");
}

std::optional<DataLocation> DataCatalog::try_find(const std::string& name) const {
  if (names_a_file(name)) {
    const auto file = find_plain_or_packed(name);
    return file ? std::optional<DataLocation>({name, *file, {}}) : std::nullopt;
  }
  for (const fs::path& folder : folders_)
    for (const fs::path& candidate : {folder / name, folder / kPrefix / name})
      if (const auto file = find_plain_or_packed(candidate)) return DataLocation{name, *file, {}};
  if (long_name(name) == kEmbeddedName) return DataLocation{name, {}, embedded_mushrooms()};
  return std::nullopt;
}

std::optional<fs::path> DataCatalog::find_folder(const std::string& name) const {
  const auto holds_data = [](const fs::path& folder) { return is_folder(folder) && format_of_folder(folder).has_value(); };
  if (names_a_file(name)) return holds_data(name) ? std::optional<fs::path>(name) : std::nullopt;
  for (const fs::path& folder : folders_)
    if (!name.empty() && holds_data(folder / name)) return folder / name;
  return std::nullopt;
}

DataLocation DataCatalog::find(const std::string& name) const {
  if (name.empty()) throw ConfigError("the name of the data set is empty");
  if (auto folder = find_folder(name)) return {name, *folder, {}};
  if (auto found = try_find(name)) return *found;
  std::string message = "the data set \"" + name + "\" was not found";
  if (names_a_file(name)) throw ConfigError(message + ": there is no such file, neither plain nor with .gz");
  message += folders_.empty() ? ": there is no data folder (--data, FEDBITS_DATA or ./data)" : "; looked in";
  for (const fs::path& folder : folders_) message += (folder == folders_.front() ? " " : ", ") + folder.string();
  std::vector<std::string> names;
  for (const DataInfo& info : known_data()) {
    names.push_back(info.name);
    names.push_back(info.name.substr(std::string(kPrefix).size()));
  }
  const std::string near = nearest_name(name, names);
  if (find_data_info(name) != nullptr)
    message += "; fetch it from https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/ into DIR/libsvm and pass --data DIR";
  else if (!near.empty())
    message += "; did you mean \"" + near + "\"?";
  throw ConfigError(message + " (`fedbits data` shows what is there)");
}

std::optional<DataLocation> DataCatalog::find_test(const DataLocation& train) const {
  if (train.file.empty()) return std::nullopt;
  fs::path base = train.file;
  if (base.extension() == ".gz") base.replace_extension();
  const auto file = find_plain_or_packed(base.string() + ".t");
  return file ? std::optional<DataLocation>({train.name + ".t", *file, {}}) : std::nullopt;
}

std::vector<DataListing> DataCatalog::list() const {
  std::vector<DataListing> listings;
  for (const DataInfo& info : known_data()) {
    const auto location = try_find(info.name);
    listings.push_back({info, location ? DataState::present : DataState::missing, location ? location->where() : "", ""});
  }
  return listings;
}

std::vector<DataListing> DataCatalog::verify() const {
  std::vector<DataListing> listings;
  for (const DataInfo& info : known_data()) {
    DataListing listing{info, DataState::missing, "", ""};
    if (const auto location = try_find(info.name)) {
      listing.where = location->where();
      try {
        listing.found = checksum(*location);
      } catch (const DataError& error) {
        listing.found = error.what();
      }
      listing.state = listing.found == info.sha256 ? DataState::matches : DataState::differs;
    }
    listings.push_back(std::move(listing));
  }
  return listings;
}

template <class T>
Dataset<T> read_data(const DataLocation& location, const LibsvmFormat& format) {
  if (!location.file.empty()) return read_libsvm<T>(location.file, location.name, format);
  Dataset<T> data = parse_libsvm<T>(unpack_data(location.embedded, location.where()), location.name, format);
  return data;
}

template Dataset<float> read_data<float>(const DataLocation&, const LibsvmFormat&);
template Dataset<double> read_data<double>(const DataLocation&, const LibsvmFormat&);

}  // namespace fl
