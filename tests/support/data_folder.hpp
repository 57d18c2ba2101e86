// A test with an empty folder for its data files, and a catalog that searches only this folder.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <string>

#include "fl_core/config/error.hpp"
#include "scenarios/data/load.hpp"

namespace fl::test {

class DataFolderTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "fedbits_XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  void write(const std::string& name, const std::string& bytes) const {
    std::filesystem::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
  }
  void write_packed(const std::string& name, const std::string& bytes) const {
    std::filesystem::create_directories((folder_ / name).parent_path());
    const gzFile file = gzopen((folder_ / name).c_str(), "wb");
    gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
    gzclose(file);
  }
  template <class T = double>
  [[nodiscard]] LoadedData<T> load(const FileDataOptions& options) const {
    return load_data<T>(options, DataCatalog(folder_));
  }
  // Returns the error about data that cannot be loaded, without the folder's own path.
  [[nodiscard]] std::string error_of(const FileDataOptions& options) const {
    try {
      static_cast<void>(load(options));
    } catch (const Error& error) {
      std::string text = error.what();
      for (std::size_t at = text.find(folder_.string()); at != std::string::npos; at = text.find(folder_.string()))
        text.erase(at, folder_.string().size() + 1);
      return text;
    }
    return "no error";
  }

  std::filesystem::path folder_;
};

inline std::string read_bytes(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// Returns integers as bytes, most significant byte first.
inline std::string big_endian(std::initializer_list<std::uint32_t> words) {
  std::string bytes;
  for (const std::uint32_t word : words)
    for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(word >> shift & 0xFF);
  return bytes;
}

inline std::string bytes_of(std::initializer_list<int> values) {
  std::string bytes;
  for (const int value : values) bytes += static_cast<char>(value);
  return bytes;
}

}  // namespace fl::test
