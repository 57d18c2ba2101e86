#include "scenarios/experiment/model_file.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "fl_core/config/error.hpp"
#include "fl_core/state/checkpoint.hpp"
#include "fl_core/state/file_turn.hpp"

namespace fl {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

static_assert(std::endian::native == std::endian::little, "the files hold little-endian numbers");

constexpr std::size_t kAlignment = 8;  // of the numbers in .safetensors
constexpr std::size_t kNpyAlignment = 64;

void append(std::vector<std::byte>& out, const void* data, std::size_t size) {
  const auto* from = static_cast<const std::byte*>(data);
  out.insert(out.end(), from, from + size);
}

std::string padded_to(std::string text, std::size_t before, std::size_t alignment) {
  while ((before + text.size()) % alignment != 0) text += ' ';
  return text;
}

std::vector<std::size_t> shape_of(const Layer& layer) {
  if (layer.cols == 1) return {layer.rows};
  return {layer.rows, layer.cols};
}

std::vector<std::byte> as_safetensors(const ModelSnapshot& model) {
  const std::size_t entry = model.is_double ? sizeof(double) : sizeof(float);
  Json header;
  header["__metadata__"] = {{"run", model.run}, {"round", std::to_string(model.round)}, {"format", "fedbits"}};
  for (const Layer& layer : model.layers.layers)
    header[layer.name] = {{"dtype", model.is_double ? "F64" : "F32"},
                          {"shape", shape_of(layer)},
                          {"data_offsets", {layer.begin * entry, (layer.begin + layer.size()) * entry}}};
  const std::string text = padded_to(header.dump(), 0, kAlignment);
  const std::uint64_t size = text.size();
  std::vector<std::byte> out;
  out.reserve(sizeof size + text.size() + model.numbers.size());
  append(out, &size, sizeof size);
  append(out, text.data(), text.size());
  append(out, model.numbers.data(), model.numbers.size());
  return out;
}

std::vector<std::byte> as_npy(const ModelSnapshot& model) {
  constexpr std::array<char, 8> kStart = {'\x93', 'N', 'U', 'M', 'P', 'Y', 1, 0};
  const std::size_t P = model.numbers.size() / (model.is_double ? sizeof(double) : sizeof(float));
  std::string text = std::string("{'descr': '") + (model.is_double ? "<f8" : "<f4") + "', 'fortran_order': False, 'shape': (" +
                     std::to_string(P) + ",), }";
  text = padded_to(std::move(text), kStart.size() + sizeof(std::uint16_t) + 1, kNpyAlignment) + '\n';
  const auto size = static_cast<std::uint16_t>(text.size());
  std::vector<std::byte> out;
  append(out, kStart.data(), kStart.size());
  append(out, &size, sizeof size);
  append(out, text.data(), text.size());
  append(out, model.numbers.data(), model.numbers.size());
  return out;
}

}  // namespace

const char* ending_of(ModelFormat format) { return format == ModelFormat::npy ? ".npy" : ".safetensors"; }

ModelFormat model_format_of(const fs::path& file, const std::string& option) {
  for (const ModelFormat format : {ModelFormat::safetensors, ModelFormat::npy})
    if (file.extension() == ending_of(format)) return format;
  throw ConfigError(option + ": " + file.string() + " must end in .safetensors or .npy");
}

fs::path ModelOutput::file_of(const std::string& run) const { return folder / (run + ending_of(format)); }

std::vector<std::byte> encode_model(const ModelSnapshot& model, ModelFormat format) {
  return format == ModelFormat::npy ? as_npy(model) : as_safetensors(model);
}

void write_model(const ModelSnapshot& model, ModelFormat format, const fs::path& file) {
  const auto fail = [&file](const std::string& step, const std::string& reason) {
    throw StoreError("cannot write the model " + file.string() + ": " + step + ": " + reason);
  };
  std::error_code error;
  if (file.has_parent_path()) fs::create_directories(file.parent_path(), error);
  if (error) fail("make the folder", error.message());
  const std::vector<std::byte> bytes = encode_model(model, format);
  const fs::path temporary = file.string() + ".tmp";
  const FileTurn turn(temporary);  // other processes may write the model of the same run
  {
    std::ofstream out(temporary, std::ios::binary);
    out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    out.flush();
    if (!out) fail("write", std::strerror(errno));
  }
  fs::rename(temporary, file, error);
  if (error) fail("rename", error.message());
}

std::string why_misplaced(const LayerTable& layers) {
  constexpr std::size_t kMost = std::size_t{1} << 48;  // parameters; products and sums below this do not overflow
  std::size_t begin = 0;
  for (const Layer& layer : layers.layers) {
    const bool is_small = layer.rows < kMost && (layer.rows == 0 || layer.cols < kMost / layer.rows);
    if (!is_small || layer.begin != begin || begin + layer.size() > kMost)
      return "'" + layer.name + "' cannot lie at " + std::to_string(layer.begin) + " with " + std::to_string(layer.rows) + " x " +
             std::to_string(layer.cols) + " parameters";
    begin += layer.size();
  }
  return "";
}

namespace {

void require_without_gaps(const LayerTable& table) {
  if (const std::string why = why_misplaced(table); !why.empty()) throw ArchiveError("in 'layers': " + why);
}

template <class T>
void read_numbers(Archive& archive, ModelSnapshot& model) {
  std::vector<T> numbers;
  archive.list(numbers);
  if (numbers.size() != model.layers.size()) throw ArchiveError("in 'model': it has another size than its layers");
  const auto bytes = std::as_bytes(std::span<const T>(numbers));
  model.numbers.assign(bytes.begin(), bytes.end());
}

}  // namespace

void persist_layers(Archive& archive, LayerTable& layers, bool& is_double) {
  const LayerTable expected = layers;
  const bool expected_double = is_double;
  archive.section("layers");
  archive.value(is_double);
  archive.list_of(layers.layers, [&archive](Layer& layer) {
    archive.text(layer.name);
    archive.value(layer.begin);
    archive.value(layer.rows);
    archive.value(layer.cols);
    archive.value(layer.running_rate);
  });
  const auto is_same = [](const Layer& a, const Layer& b) {
    return a.name == b.name && a.begin == b.begin && a.rows == b.rows && a.cols == b.cols;
  };
  if (archive.is_reading()) require_without_gaps(layers);
  if (expected.layers.empty()) return;
  if (is_double != expected_double || !std::ranges::equal(layers.layers, expected.layers, is_same))
    throw ArchiveError("in 'layers': they are not those of this run's model");
}

ModelSnapshot model_of_checkpoint(const fs::path& file) {
  ModelSnapshot model;
  CheckpointHeader header;
  peek_checkpoint(file, header, [&](Archive& archive) {
    persist_layers(archive, model.layers, model.is_double);
    archive.section("model");
    if (model.is_double)
      read_numbers<double>(archive, model);
    else
      read_numbers<float>(archive, model);
  });
  model.run = header.run;
  model.round = header.round;
  return model;
}

}  // namespace fl
