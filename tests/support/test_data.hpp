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

// Declares `variable`, or skips the test when the file is not there.
#define FL_NEED_DATA(variable, name)                 \
  const auto variable = ::fl::test::data_file(name); \
  if (variable.empty() || !std::filesystem::exists(variable)) GTEST_SKIP() << "DATA MISSING: " << (name)
