// A folder for the files of one process, in memory where there is such a place.
#pragma once

#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "tests/fuzz/target.hpp"

namespace fl::fuzz {

class ScratchFolder {
 public:
  ScratchFolder() {
    std::error_code error;
    const std::filesystem::path memory = "/dev/shm";
    const bool is_there = std::filesystem::is_directory(memory, error);
    std::string name = ((is_there ? memory : std::filesystem::temp_directory_path()) / "fedbits_fuzz_XXXXXX").string();
    require(::mkdtemp(name.data()) != nullptr, "no folder for temporary files");
    path_ = name;
  }
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  // Returns an empty folder of that name.
  [[nodiscard]] std::filesystem::path fresh(const std::string& name) const {
    std::filesystem::remove_all(path_ / name);
    std::filesystem::create_directory(path_ / name);
    return path_ / name;
  }
  // Writes a file and returns its path.
  [[nodiscard]] std::filesystem::path write(const std::string& name, std::string_view bytes) const {
    std::ofstream(path_ / name, std::ios::binary) << bytes;
    return path_ / name;
  }

 private:
  std::filesystem::path path_;
};

}  // namespace fl::fuzz
