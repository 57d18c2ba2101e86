// Tests --save-model and `fedbits model` from the command line.
#include <gmock/gmock.h>

#include "tests/support/study.hpp"

namespace fl {
namespace {

using test::Outcome;
using testing::HasSubstr;

class ModelFiles : public test::StudyTest {
 protected:
  [[nodiscard]] std::size_t count(const std::string& folder, const std::string& ending) const {
    std::size_t files = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder_ / folder)) files += entry.path().extension() == ending ? 1 : 0;
    return files;
  }
};

TEST_F(ModelFiles, EveryFinishedRunHasItsOwn) {
  write_study(2, 6);
  EXPECT_EQ(sweep({"--save-model", "models"}).code, 0);
  EXPECT_EQ(count("models", ".safetensors"), 4u);
  const std::string before = exported("out");
  // Stored runs whose file is missing are repeated: same results, and now a file.
  const Outcome run = fedbits({"run", "study.toml", "--out", "out", "--save-model", "vectors", "--model-format", "npy", "--threads", "1"});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(count("vectors", ".npy"), 4u);
  EXPECT_EQ(exported("out"), before);
  const Outcome wrong = fedbits({"run", "study.toml", "--save-model", "models", "--model-format", "onnx"});
  EXPECT_EQ(wrong.code, 2);
  const Outcome idle = fedbits({"run", "study.toml", "--model-format", "npy"});
  EXPECT_EQ(idle.code, 2) << "a format of nothing";
}

TEST_F(ModelFiles, ACheckpointIsNeeded) {
  EXPECT_EQ(fedbits({"model", "none.checkpoint", "-o", "m.npy"}).code, 2);
  write("bad.checkpoint", "nothing");
  const Outcome bad = fedbits({"model", "bad.checkpoint", "-o", "m.npy"});
  EXPECT_EQ(bad.code, 2);
  EXPECT_THAT(bad.err, HasSubstr("bad.checkpoint"));
  const Outcome ending = fedbits({"model", "bad.checkpoint", "-o", "m.bin"});
  EXPECT_EQ(ending.code, 2);
  EXPECT_THAT(ending.err, HasSubstr("must end in .safetensors or .npy"));
  EXPECT_FALSE(exists("m.npy"));
}

}  // namespace
}  // namespace fl
