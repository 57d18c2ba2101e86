// Reads models from files that a scenario names: .npy, .safetensors, or text.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

#include "fl_core/config/key_error.hpp"
#include "fl_core/config/options.hpp"
#include "fl_core/config/text_lines.hpp"
#include "scenarios/data/bytes.hpp"
#include "scenarios/data/npy.hpp"
#include "scenarios/experiment/model_file.hpp"

namespace fl {
namespace {

using HeaderJson = nlohmann::json;

// The file that a key names, for error messages.
struct Source {
  const std::string& path;
  const std::string& key;
  [[noreturn]] void fail(const std::string& why) const { throw key_error(key, "'" + path + "' " + why); }
};

void require_count(const Source& source, std::size_t count, std::size_t P) {
  if (count != P) source.fail("holds " + std::to_string(count) + " numbers, the model has " + std::to_string(P) + " parameters");
}

std::vector<double> from_text(const Source& source, std::string_view bytes, std::size_t P) {
  std::istringstream file{std::string(bytes)};
  std::vector<double> x;
  for (double value = 0; file >> value;) x.push_back(value);
  if (!file.eof()) source.fail("holds something that is not a number after " + std::to_string(x.size()) + " numbers");
  require_count(source, x.size(), P);
  return x;
}

std::vector<double> from_npy(const Source& source, std::size_t P) {
  try {
    std::vector<double> x = read_npy_numbers(source.path);
    require_count(source, x.size(), P);
    return x;
  } catch (const DataError& error) {
    throw key_error(source.key, error.what());
  }
}

std::string text_of(const std::vector<std::size_t>& shape) {
  std::string text = "[";
  for (const std::size_t size : shape) text += (text.size() > 1 ? ", " : "") + std::to_string(size);
  return text + "]";
}

template <class Stored>
void copy_numbers(const char* from, std::size_t count, double* to) {
  for (std::size_t j = 0; j < count; ++j) {
    Stored value;
    std::memcpy(&value, from + j * sizeof value, sizeof value);
    to[j] = static_cast<double>(value);
  }
}

// Copies one tensor into its place in x. Its shape may have more dimensions than the layer's with the same total sizes, as convolutions
// have in other programs.
void take_tensor(const Source& source, const Layer& layer, const HeaderJson& tensor, std::string_view numbers, double* to) {
  const auto dtype = tensor.at("dtype").get<std::string>();
  const auto shape = tensor.at("shape").get<std::vector<std::size_t>>();
  const auto offsets = tensor.at("data_offsets").get<std::vector<std::size_t>>();
  if (dtype != "F32" && dtype != "F64") source.fail("has tensor '" + layer.name + "' of type " + dtype + "; F32 and F64 can be read");
  const std::size_t entry = dtype == "F64" ? sizeof(double) : sizeof(float);
  std::size_t size = 1;
  for (const std::size_t side : shape) size *= side;
  if (size != layer.size() || shape.empty() || shape[0] != layer.rows)
    source.fail("has tensor '" + layer.name + "' of shape " + text_of(shape) + "; the model's is " + text_of({layer.rows, layer.cols}));
  if (offsets.size() != 2 || offsets[0] > offsets[1] || offsets[1] > numbers.size() || offsets[1] - offsets[0] != size * entry)
    source.fail("is damaged: the bytes of tensor '" + layer.name + "' do not lie within it");
  if (dtype == "F64")
    copy_numbers<double>(numbers.data() + offsets[0], size, to);
  else
    copy_numbers<float>(numbers.data() + offsets[0], size, to);
}

// Throws unless the tensors' bytes are contiguous, as the format requires: other offsets indicate damage.
void require_tiles(const Source& source, const HeaderJson& header, std::size_t num_bytes) {
  std::vector<std::pair<std::size_t, std::size_t>> places;
  for (const auto& [name, tensor] : header.items()) {
    if (name == "__metadata__") continue;
    const auto offsets = tensor.at("data_offsets").get<std::vector<std::size_t>>();
    if (offsets.size() != 2) source.fail("is damaged: the bytes of tensor '" + name + "' have no beginning and end");
    places.emplace_back(offsets[0], offsets[1]);
  }
  std::ranges::sort(places);
  std::size_t at = 0;
  for (const auto& [begin, end] : places) {
    if (begin != at || end < begin)
      source.fail("is damaged: a tensor begins at byte " + std::to_string(begin) + " of the numbers, not at " + std::to_string(at));
    at = end;
  }
  if (at != num_bytes)
    source.fail("is damaged: it has " + std::to_string(num_bytes) + " bytes of numbers, its tensors " + std::to_string(at));
}

std::vector<double> from_safetensors(const Source& source, std::string_view bytes, const LayerTable& layers) {
  std::uint64_t size = 0;
  if (bytes.size() < sizeof size) source.fail("is too short for a file of tensors");
  std::memcpy(&size, bytes.data(), sizeof size);
  if (size > bytes.size() - sizeof size) source.fail("ends within its header");
  const std::string_view numbers = bytes.substr(sizeof size + size);
  std::vector<double> x(layers.size());
  try {
    const HeaderJson header = HeaderJson::parse(bytes.substr(sizeof size, size));
    std::vector<std::string> names;
    for (const auto& [name, _] : header.items())
      if (name != "__metadata__") names.push_back(name);
    for (const Layer& layer : layers.layers) {
      if (!header.contains(layer.name)) {
        const std::string near = nearest_name(layer.name, names);
        source.fail("has no tensor '" + layer.name + "', which the model has" + (near.empty() ? "" : "; '" + near + "' is the nearest"));
      }
      take_tensor(source, layer, header.at(layer.name), numbers, x.data() + layer.begin);
    }
    if (names.size() != layers.layers.size())
      source.fail("has " + std::to_string(names.size()) + " tensors, the model has " + std::to_string(layers.layers.size()));
    require_tiles(source, header, numbers.size());
  } catch (const HeaderJson::exception& error) {
    source.fail(std::string("has a header that cannot be read: ") + error.what());
  }
  return x;
}

bool is_safetensors(const std::string& path) { return path.ends_with(".safetensors"); }
bool begins_as_npy(std::string_view bytes) { return bytes.starts_with("\x93NUMPY"); }

// Returns the largest plausible size of a file with P parameters: 8-byte numbers after a header, or text with generous width.
std::uint64_t most_bytes(const std::string& path, std::size_t P) {
  constexpr std::uint64_t kHeader = std::uint64_t{1} << 24, kText = 64;
  return kHeader + (is_safetensors(path) ? sizeof(double) : kText) * std::uint64_t{P};
}

std::vector<double> require_finite(const Source& source, std::vector<double> x) {
  const auto bad = std::ranges::find_if(x, [](double value) { return !std::isfinite(value); });
  if (bad != x.end()) source.fail("holds a number that is not finite, at place " + std::to_string(bad - x.begin()) + " (from 0)");
  return x;
}

}  // namespace

std::vector<double> parse_parameters(std::string_view bytes, const std::string& path, const LayerTable& layers, const std::string& key) {
  const Source source{path, key};
  return require_finite(source, is_safetensors(path) ? from_safetensors(source, bytes, layers) : from_text(source, bytes, layers.size()));
}

std::vector<double> read_parameters(const std::string& path, const LayerTable& layers, const std::string& key) {
  const std::string bytes = read_text_file(key, path, most_bytes(path, layers.size()),
                                           "the model has " + std::to_string(layers.size()) + " parameters, so this is another model's");
  const Source source{path, key};
  if (!is_safetensors(path) && begins_as_npy(bytes)) return require_finite(source, from_npy(source, layers.size()));
  return parse_parameters(bytes, path, layers, key);
}

}  // namespace fl
