// Model files that other programs can read.
//
//   .npy           x as one vector [P] (NumPy enhancement proposal 1, version 1.0)
//   .safetensors   the tensors by name, in the order of the layer table, each [rows, cols], or [rows] if cols = 1; F32 or F64, the run's
//                  precision. Layout: the length of the header (8 bytes), the header (JSON, padded with spaces to a multiple of 8), the
//                  numbers. `__metadata__` holds the run's hash and the round. Everything is little-endian.
//
// Both formats can be read back as a start (`start.kind = "file"`) or an optimum (`evaluate.optimum`), as can text with one number per
// line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "fl_core/message/layer_table.hpp"
#include "fl_core/state/archive.hpp"

namespace fl {

enum class ModelFormat { safetensors, npy };

// Returns the format for a file name. Throws ConfigError, which begins with `option`, for an unknown ending.
[[nodiscard]] FL_API ModelFormat model_format_of(const std::filesystem::path& file, const std::string& option);
[[nodiscard]] FL_API const char* ending_of(ModelFormat format);  // ".npy"

// Destination of the models of finished runs: FOLDER/HASH.ENDING. With an empty folder, models are not written.
struct ModelOutput {
  std::filesystem::path folder{};
  ModelFormat format = ModelFormat::safetensors;
  [[nodiscard]] FL_API std::filesystem::path file_of(const std::string& run) const;
};

// A model with the metadata of its file.
struct ModelSnapshot {
  std::string run{};        // hash of the resolved scenario
  std::uint64_t round = 0;  // the last round played
  LayerTable layers{};
  bool is_double = false;
  std::vector<std::byte> numbers{};  // x [P], float or double
};

template <class T>
[[nodiscard]] ModelSnapshot snapshot_of(const std::string& run, std::uint64_t round, const LayerTable& layers, std::span<const T> x) {
  const auto bytes = std::as_bytes(x);
  return {run, round, layers, sizeof(T) == sizeof(double), {bytes.begin(), bytes.end()}};
}

[[nodiscard]] FL_API std::vector<std::byte> encode_model(const ModelSnapshot& model, ModelFormat format);

// Writes the file atomically; creates the folder if it is missing. Throws StoreError.
FL_API void write_model(const ModelSnapshot& model, ModelFormat format, const std::filesystem::path& file);

// Returns why the layers are not those of a model: a gap, or more parameters than sizes can count. "" if they are.
[[nodiscard]] FL_API std::string why_misplaced(const LayerTable& layers);

// Writes or reads the layer table of a checkpoint, which gives its model names without the scenario. Reading throws ArchiveError if
// `layers` is not empty and differs from the table written.
FL_API void persist_layers(Archive& archive, LayerTable& layers, bool& is_double);

// Reads the model of a checkpoint. Throws StoreError.
[[nodiscard]] FL_API ModelSnapshot model_of_checkpoint(const std::filesystem::path& file);

// Reads x [P] from .npy, .safetensors or text. Tensors are found by name and must have the layer's shape. Throws ConfigError, which begins
// with `key`, for a file that cannot be read or does not fit the layers.
[[nodiscard]] FL_API std::vector<double> read_parameters(const std::string& path, const LayerTable& layers, const std::string& key);
// Does the same for bytes in memory: a .safetensors file if the path says so, else text.
[[nodiscard]] FL_API std::vector<double> parse_parameters(std::string_view bytes, const std::string& path, const LayerTable& layers,
                                                          const std::string& key);

}  // namespace fl
