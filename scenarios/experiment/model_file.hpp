// Models as files that other programs read.
//
//   .npy           x as one vector [P] (NumPy enhancement proposal 1, version 1.0)
//   .safetensors   the tensors by name, in the order of the layer table, each [rows, cols], or [rows] where cols = 1; F32 or F64, as the
//   run
//                  computed. Layout: the length of the header (8 bytes), the header (JSON, padded with spaces to a multiple of 8), the
//                  numbers. `__metadata__` has the run's hash and the round. Everything is little-endian.
//
// Both can be read back as a start (`start.kind = "file"`) or an optimum (`evaluate.optimum`), as can text with one number per line.
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

// Which format a file's name asks for. Throws ConfigError, which begins with `option`, for another ending.
[[nodiscard]] FL_API ModelFormat model_format_of(const std::filesystem::path& file, const std::string& option);
[[nodiscard]] FL_API const char* ending_of(ModelFormat format);  // ".npy"

// Where the models of finished runs go: FOLDER/HASH.ENDING. An empty folder means nowhere.
struct ModelOutput {
  std::filesystem::path folder{};
  ModelFormat format = ModelFormat::safetensors;
  [[nodiscard]] FL_API std::filesystem::path file_of(const std::string& run) const;
};

// A model with what a file says of it.
struct ModelSnapshot {
  std::string run{};        // hash of the resolved scenario
  std::uint64_t round = 0;  // the last one that was played
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

// Writes the file whole or not at all, and the folder where it is missing. Throws StoreError.
FL_API void write_model(const ModelSnapshot& model, ModelFormat format, const std::filesystem::path& file);

// Writes or reads what a checkpoint says of the layers, so that its model has names without its scenario. Reading throws ArchiveError where
// `layers` is not empty and others were written.
FL_API void persist_layers(Archive& archive, LayerTable& layers, bool& is_double);

// Reads the model of a checkpoint. Throws StoreError.
[[nodiscard]] FL_API ModelSnapshot model_of_checkpoint(const std::filesystem::path& file);

// Reads x [P] from .npy, .safetensors or text. Tensors are found by name and need the shape of the layer. Throws ConfigError, which begins
// with `key`, for a file that cannot be read or does not fit the layers.
[[nodiscard]] FL_API std::vector<double> read_parameters(const std::string& path, const LayerTable& layers, const std::string& key);
// The same of the bytes of a .safetensors file, which the path says, or of text.
[[nodiscard]] FL_API std::vector<double> parse_parameters(std::string_view bytes, const std::string& path, const LayerTable& layers,
                                                          const std::string& key);

}  // namespace fl
