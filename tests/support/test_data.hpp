// Real data in tests: FEDBITS_DATA names the unpacked folder. A test whose data is missing skips with a text that CI looks for.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace fl::test {

inline std::filesystem::path data_file(const std::string& name) {
  const char* root = std::getenv("FEDBITS_DATA");
  return root == nullptr ? std::filesystem::path{} : std::filesystem::path(root) / name;
}

}  // namespace fl::test

// Declares `path`, or skips the test when the file is not there.
#define FL_NEED_DATA(path, name)                                  \
  const std::filesystem::path path = ::fl::test::data_file(name); \
  if (path.empty() || !std::filesystem::exists(path)) GTEST_SKIP() << "DATA MISSING: " << (name)
