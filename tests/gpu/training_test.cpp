// Compares clients that train on the GPU with clients that train on the CPU: the models are equal up to rounding, and repetitions give the
// same bytes. Skipped without a GPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "clients/cuda/layer.hpp"
#include "clients/learning/device_evaluation.hpp"
#include "fl_core/memory/buffer.hpp"
#include "fl_core/memory/workspace.hpp"
#include "tests/gpu/first_difference.hpp"
#include "tests/gpu/gpu_there.hpp"
#include "tests/support/run_scenario.hpp"
#include "tests/support/sanitized.hpp"
#include "tests/support/test_data.hpp"
#if defined(FL_CUDA_EMULATOR)
#include "tests/emulator/block.hpp"
#endif

namespace fl {
namespace {

using test::same_words;
using test::Where;

struct Study {
  std::string label, problem, model, local, more;
};
void PrintTo(const Study& study, std::ostream* out) { *out << study.label; }

const std::string kBlobs =
    "[data]\nkind = 'synthetic'\nclients = 5\nfeatures = 13\nclasses = 4\n[partition]\nkind = 'natural'\nclients = 5\n";
const std::string kTwoBlobs =
    "[data]\nkind = 'synthetic'\nclients = 4\nfeatures = 37\nclasses = 2\n[partition]\nkind = 'natural'\nclients = 4\n";
const std::string kManyBlobs =
    "[data]\nkind = 'synthetic'\nclients = 3\nfeatures = 70\nclasses = 19\n[partition]\nkind = 'natural'\nclients = 3\n";
const std::string kMushrooms = "[data]\nname = 'mushrooms'\nrows = 700\n[partition]\nkind = 'quantity_skew'\nbeta = 0.5\nclients = 6\n";
const std::string kImages = "[data]\nname = 'fashion-mnist'\nrows = 300\n[partition]\nkind = 'shuffled'\nclients = 3\n";
const std::string kFewImages = "[data]\nname = 'fashion-mnist'\nrows = 60\n[partition]\nkind = 'quantity_skew'\nbeta = 0.5\nclients = 3\n";
const std::string kChangedImages =
    "[data]\nname = 'cifar10'\nrows = 60\n[data.augment]\ncrop = 3\nflip = true\n[partition]\nkind = 'shuffled'\nclients = 3\n";
const std::string kManyRows = "[data]\nname = 'mushrooms'\nrows = 1200\n[partition]\nkind = 'shuffled'\nclients = 2\n";
// Files of MadeData.
const std::string kWords =
    "[data]\npath = 'MADE/words.txt'\nformat = 'text'\nsequence = 5\nstride = 3\n[partition]\nkind = 'shuffled'\nclients = 3\n";
const std::string kWordsAtEachPosition =
    "[data]\npath = 'MADE/words.txt'\nformat = 'text'\nsequence = 5\nlabel_positions = 'every'\n[partition]\nkind = 'quantity_skew'\nbeta "
    "= 0.5\nclients = "
    "3\n";
const std::string kNumbers = "[data]\npath = 'MADE/numbers.csv'\nlabels = 'target'\n[partition]\nkind = 'shuffled'\nclients = 3\n";
const std::string kRatings = "[data]\npath = 'MADE/ratings.csv'\nlabels = 'target'\n[partition]\nkind = 'shuffled'\nclients = 3\n";
const std::string kMlp = "kind = 'neural_network'\nlayers = ['dense(7)', 'relu', 'dense(5)', 'tanh', 'dense(classes)']";
const std::string kEf14 = "[compressor.up]\nkind = 'top_k'\nratio = 0.2\n[feedback.up]\nkind = 'ef14'\n";

std::vector<Study> studies() {
  return {
      {"SoftmaxRegression", kBlobs, "kind = 'logistic_regression'\nl2 = 0.01", "kind = 'gradient'\nlearning_rate = 0.5", ""},
      {"SoftmaxRegressionOnMinibatches", kBlobs, "kind = 'logistic_regression'\nl2 = 0.001",
       "kind = 'gradient'\nbatch = 5\nlearning_rate = 0.5", kEf14},
      {"BinaryOnSparseRows", kMushrooms, "kind = 'logistic_regression'\nl2 = 0.01\nnonconvex = 0.1",
       "kind = 'sgd'\nbatch = 9\nepochs = 1\nlearning_rate = 0.3", kEf14},
      {"WithoutBias", kMushrooms, "kind = 'logistic_regression'\nbias = false\nl2 = 0.1", "kind = 'gradient'\nlearning_rate = 0.3", ""},
      {"StepsOfSoftmaxRegression", kBlobs, "kind = 'logistic_regression'\nl2 = 0.01",
       "kind = 'sgd'\nbatch = 6\nsteps = 5\nlearning_rate = 0.2\nmomentum = 0.8\nproximal_mu = 0.1\nweight_decay = 0.01\nstragglers = 0.5",
       kEf14},
      {"StepsOfLogisticRegression", kTwoBlobs, "kind = 'logistic_regression'\nnonconvex = 0.1",
       "kind = 'sgd'\nbatch = 41\nepochs = 1\nlearning_rate = 0.2", kEf14},
      {"StepsWithManyClasses", kManyBlobs, "kind = 'logistic_regression'\nbias = false",
       "kind = 'sgd'\nbatch = 7\nsteps = 3\nlearning_rate = 0.2", ""},
      {"RegressionOfImages", kImages, "kind = 'logistic_regression'", "kind = 'sgd'\nbatch = 33\nsteps = 2\nlearning_rate = 0.1", kEf14},
      {"Perceptron", kBlobs, kMlp, "kind = 'sgd'\nbatch = 6\nsteps = 3\nlearning_rate = 0.2", kEf14},
      {"PerceptronWithEverything", kBlobs, kMlp,
       "kind = 'sgd'\nbatch = 6\nsteps = 4\nlearning_rate = 0.1\nmomentum = 0.8\nproximal_mu = 0.1\nweight_decay = 0.01\nstragglers = "
       "0.5",
       "[server]\naverage = 'normalised'\n[participation]\nkind = 'uniform'\nclients = 3\n"},
      // epsilon keeps small gradients from turning their rounding into steps.
      {"AdamW", kBlobs, kMlp,
       "kind = 'sgd'\nbatch = 6\nsteps = 4\nlearning_rate = 0.02\nproximal_mu = 0.1\nweight_decay = 0.01\nstragglers = 0.5",
       "[local_optimizer]\nkind = 'adamw'\nepsilon = 0.1\nno_decay = ['1.dense.bias']\n"},
      {"AdamWOfARegression", kTwoBlobs, "kind = 'logistic_regression'\nl2 = 0.01",
       "kind = 'sgd'\nbatch = 7\nsteps = 3\nlearning_rate = 0.05", "[local_optimizer]\nkind = 'adamw'\nepsilon = 0.1\n"},
      {"AdamWThatClientsKeep", kMushrooms, kMlp, "kind = 'sgd'\nbatch = 9\nepochs = 1\nlearning_rate = 0.01",
       "[local_optimizer]\nkind = 'adamw'\nepsilon = 0.1\nstate = 'client'\n[participation]\nkind = 'uniform'\nclients = 3\n"},
      {"AdamWBesideBatchNorm", "[data]\nname = 'mushrooms'\nrows = 150\n[partition]\nkind = 'quantity_skew'\nbeta = 0.5\nclients = 4\n",
       "kind = 'neural_network'\nlayers = ['dense(7)', 'batch_norm', 'relu', 'dense(4)', 'batch_norm(momentum=0.3)', 'dense(classes)']",
       "kind = 'sgd'\nbatch = 7\nepochs = 1\nlearning_rate = 0.01\nweight_decay = 0.01",
       "[local_optimizer]\nkind = 'adamw'\nepsilon = 0.1\nweight_decay = 0.1\nstate = 'client'\n"},
      {"MomentumThatClientsKeep", kBlobs, kMlp, "kind = 'sgd'\nbatch = 6\nsteps = 2\nlearning_rate = 0.1",
       "[local_optimizer]\nkind = 'sgd'\nmomentum = 0.8\nstate = 'client'\n"},
      {"MomentumOfTheOptimizer", kBlobs, "kind = 'logistic_regression'", "kind = 'sgd'\nbatch = 6\nsteps = 3\nlearning_rate = 0.1",
       "[server]\naverage = 'normalised'\n[local_optimizer]\nkind = 'sgd'\nmomentum = 0.8\n"},
      {"LeNet5", kImages, "kind = 'lenet5'", "kind = 'sgd'\nbatch = 3\nsteps = 1\nlearning_rate = 0.1", kEf14},
      {"ConvolutionsOfEveryKind", kImages,
       "kind = 'neural_network'\nlayers = ['conv2d(3, 3, stride=2)', 'gelu', 'max_pool(3, stride=2)', 'conv2d(4, 2, padding=1, "
       "bias=false)', "
       "'tanh', 'relu', 'dropout(0.3)', 'mean_pool(2, stride=1)', 'flatten', 'dropout(0.5)', 'dense(classes)']",
       "kind = 'sgd'\nbatch = 5\nsteps = 3\nlearning_rate = 0.1\nmomentum = 0.5", kEf14},
      {"ALossAfterAnActivation", kBlobs, "kind = 'neural_network'\nlayers = ['dense(7)', 'dropout(0.2)', 'relu', 'dense(classes)', 'tanh']",
       "kind = 'sgd'\nbatch = 6\nsteps = 3\nlearning_rate = 0.2", ""},
      {"DropoutOverEpochs", "[data]\nname = 'mushrooms'\nrows = 200\n[partition]\nkind = 'quantity_skew'\nbeta = 0.5\nclients = 6\n",
       "kind = 'neural_network'\nlayers = ['dropout(0.1)', 'dense(7)', 'dropout(0.2)', 'relu', 'dense(classes)']",
       "kind = 'sgd'\nbatch = 7\nepochs = 1\nlearning_rate = 0.2", ""},
      {"Images", kImages, "kind = 'mlp'\nhidden = [11]", "kind = 'sgd'\nbatch = 10\nsteps = 2\nlearning_rate = 0.1", kEf14},
      {"GroupNorm", kFewImages,
       "kind = 'neural_network'\nlayers = ['group_norm', 'mean_pool(4)', 'conv2d(4, 3)', 'group_norm(2)', 'relu', 'flatten', 'dense(6)', "
       "'group_norm(3)', 'dense(classes)']",
       "kind = 'sgd'\nbatch = 3\nsteps = 2\nlearning_rate = 0.1\nmomentum = 0.5", ""},
      {"BatchNormOfUnequalMinibatches",
       "[data]\nname = 'mushrooms'\nrows = 150\n[partition]\nkind = 'quantity_skew'\nbeta = 0.5\nclients = 4\n",
       "kind = 'neural_network'\nl2 = 0.01\nlayers = ['dense(7)', 'batch_norm', 'relu', 'dense(4)', 'batch_norm(momentum=0.3)', "
       "'dense(classes)']",
       "kind = 'sgd'\nbatch = 7\nepochs = 1\nlearning_rate = 0.05\nmomentum = 0.5\nproximal_mu = 0.1\nweight_decay = 0.01", ""},
      {"BatchNormOfImages", kFewImages,
       "kind = 'neural_network'\nlayers = ['mean_pool(4)', 'conv2d(3, 3)', 'batch_norm', 'relu', 'flatten', 'dense(classes)']",
       "kind = 'sgd'\nbatch = 4\nsteps = 2\nlearning_rate = 0.1", kEf14},
      {"BatchNormOverAllRows", kManyRows,
       "kind = 'neural_network'\nl2 = 0.01\nlayers = ['dense(3)', 'batch_norm', 'tanh', 'dense(classes)']",
       "kind = 'gradient'\nlearning_rate = 0.1", ""},
      {"BatchNormWithStatisticsOfClients",
       "[data]\nname = 'mushrooms'\nrows = 150\n[partition]\nkind = 'quantity_skew'\nbeta = 0.5\nclients = 4\n",
       "kind = 'neural_network'\nlayers = ['dense(7)', 'batch_norm', 'relu', 'dense(4)', 'batch_norm(momentum=0.3)', 'dense(classes)']",
       "kind = 'sgd'\nbatch = 7\nepochs = 1\nlearning_rate = 0.05",
       "[server]\nstatistics = 'local'\n[participation]\nkind = 'uniform'\nclients = 3\n"},
      {"BatchNormOverAllRowsWithStatisticsOfClients", kManyRows,
       "kind = 'neural_network'\nlayers = ['dense(3)', 'batch_norm', 'tanh', 'dense(classes)']", "kind = 'gradient'\nlearning_rate = 0.1",
       "[server]\nstatistics = 'local'\n"},
      {"TensorsThatStayWithClients",
       "[data]\nname = 'mushrooms'\nrows = 150\n[partition]\nkind = 'quantity_skew'\nbeta = 0.5\nclients = 4\n",
       "kind = 'neural_network'\nkeep = ['1.dense.*', '6.dense.weight', '*.running_mean']\nl2 = 0.01\nlayers = ['dense(7)', 'batch_norm', "
       "'relu', "
       "'dense(4)', 'tanh', 'dense(classes)']",
       "kind = 'sgd'\nbatch = 7\nepochs = 1\nlearning_rate = 0.05\nmomentum = 0.5\nweight_decay = 0.01",
       "[participation]\nkind = 'uniform'\nclients = 3\n"},
      {"TensorsThatStayWithClientsPulledBack", kManyRows,
       "kind = 'neural_network'\nkeep = ['1.*']\nlayers = ['dense(3)', 'tanh', 'dense(classes)']",
       "kind = 'sgd'\nbatch = 7\nsteps = 3\nlearning_rate = 0.05\nproximal_mu = 0.1", ""},
      {"GradientsAtModelsOfClients", kManyRows,
       "kind = 'neural_network'\nkeep = ['4.*', '*.running_variance']\nlayers = ['dense(3)', 'batch_norm', 'tanh', 'dense(classes)']",
       "kind = 'gradient'\nlearning_rate = 0.1", ""},
      {"ARegressionWithABiasOfEachClient", kManyRows, "kind = 'logistic_regression'\nkeep = ['bias']",
       "kind = 'sgd'\nbatch = 7\nsteps = 3\nlearning_rate = 0.05", ""},
      {"BatchNormOfALargeMinibatch", kManyRows, "kind = 'neural_network'\nlayers = ['dense(3)', 'batch_norm', 'tanh', 'dense(classes)']",
       "kind = 'sgd'\nbatch = 550\nsteps = 2\nlearning_rate = 0.1", ""},
      {"DropoutOfALargeMinibatch", kManyRows,
       "kind = 'neural_network'\nlayers = ['dropout(0.3)', 'dense(3)', 'tanh', 'dropout(0.2)', 'dense(classes)']",
       "kind = 'sgd'\nbatch = 550\nsteps = 2\nlearning_rate = 0.1", ""},
      {"Branches", kFewImages,
       "kind = 'neural_network'\nlayers = ['mean_pool(4)', 'conv2d(2, 3, padding=1)', 'residual([conv2d(2, 3, padding=1), tanh, "
       "dropout(0.2), group_norm])', 'relu', 'residual([relu, conv2d(3, 3, padding=1, stride=2)], shortcut=[conv2d(3, 1, stride=2), "
       "dropout(0.3)])', 'concat([flatten], [residual([tanh]), mean_pool(0), flatten])', 'dense(classes)']",
       "kind = 'sgd'\nbatch = 3\nsteps = 2\nlearning_rate = 0.1", kEf14},
      {"ResNet18", "[data]\nname = 'fashion-mnist'\nrows = 20\n[partition]\nkind = 'shuffled'\nclients = 2\n",
       "kind = 'resnet18'\nwidth = 2", "kind = 'sgd'\nbatch = 2\nsteps = 1\nlearning_rate = 0.1", ""},
      {"ChangedImages", kChangedImages, "kind = 'neural_network'\nlayers = ['mean_pool(4)', 'dropout(0.1)', 'dense(classes)']",
       "kind = 'sgd'\nbatch = 5\nsteps = 2\nlearning_rate = 0.1", kEf14},
      {"CharLstm", kWords, "kind = 'char_lstm'\nembedding = 3\nunits = 5\nlayers = 2",
       "kind = 'sgd'\nbatch = 4\nsteps = 2\nlearning_rate = 0.5", kEf14},
      // All is sent: both biases of a gate move by the same amounts, and which of them Top-k sends is decided by rounding.
      {"LstmOfTwoBiases", kWords,
       "kind = 'neural_network'\nlayers = ['embedding(vocabulary, 3)', 'lstm(5, forget_bias=0.5)', 'lstm(4, last=true)', "
       "'dense(classes)']",
       "kind = 'sgd'\nbatch = 4\nsteps = 2\nlearning_rate = 0.5", ""},
      {"LabelsAtEveryPosition", kWordsAtEachPosition, "kind = 'char_lstm'\nembedding = 3\nunits = 5\nlayers = 2",
       "kind = 'sgd'\nbatch = 4\nepochs = 1\nlearning_rate = 0.5", ""},
      {"LeastSquares", kNumbers, "kind = 'linear_regression'\nl2 = 0.01", "kind = 'gradient'\nlearning_rate = 0.1", kEf14},
      {"SquaredErrorOfANetwork", kNumbers, "kind = 'neural_network'\nlayers = ['dense(5)', 'tanh', 'dense(2)']\nloss = 'squared_error'",
       "kind = 'sgd'\nbatch = 4\nsteps = 2\nlearning_rate = 0.1", ""},
      {"Ncf", kRatings, "kind = 'ncf'\nfactors = 2\nembedding = 3\nhidden = [4]\nnegatives = 2",
       "kind = 'sgd'\nbatch = 4\nsteps = 3\nlearning_rate = 0.5", kEf14},
      {"LogisticLossOfANetwork", kMushrooms, "kind = 'neural_network'\nlayers = ['dense(5)', 'relu', 'dense(1)']\nloss = 'logistic'",
       "kind = 'sgd'\nbatch = 9\nsteps = 2\nlearning_rate = 0.1", ""},
  };
}

// A folder of data files, for as long as the tests run.
class MadeData {
 public:
  MadeData() {
    std::string name = (std::filesystem::temp_directory_path() / "fedbits_XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("no folder for test data");
    folder_ = name;
    std::ofstream(folder_ / "words.txt")
        << "the cat sat on the mat and the bat sat on the cat, so the rat ran at the mat that the hat was at";
    std::ofstream numbers(folder_ / "numbers.csv");
    numbers << "a,b,c,t\n";
    for (int row = 0; row < 40; ++row)
      numbers << row % 7 - 3 << ',' << 0.25 * (row % 5) << ',' << (row * 11 % 13) / 8.0 << ',' << (row * 5 % 9) / 4.0 - 1 << '\n';
    std::ofstream ratings(folder_ / "ratings.csv");
    ratings << "userId,movieId,rating,timestamp\n";
    for (int row = 0; row < 36; ++row) ratings << row % 6 + 1 << ',' << row * 5 % 11 + 1 << ',' << row % 5 + 1 << ',' << row << '\n';
  }
  ~MadeData() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  MadeData(const MadeData&) = delete;
  MadeData& operator=(const MadeData&) = delete;
  // The text with the folder's path.
  [[nodiscard]] std::string placed(std::string text) const {
    const std::string word = "MADE";
    if (const std::size_t at = text.find(word); at != std::string::npos) text.replace(at, word.size(), folder_.string());
    return text;
  }

 private:
  std::filesystem::path folder_;
};

std::string with_made_data(const std::string& text) {
  static const MadeData data;
  return data.placed(text);
}

std::string text_of(const Study& study, const std::string& precision) {
  return with_made_data("name = 'training'\nrounds = 4\nprecision = '" + precision + "'\n" + study.problem + "[model]\n" + study.model +
                        "\n[evaluate]\nevery = 4\noptimum = false\n[local]\n" + study.local + "\n" + study.more);
}

template <class T>
std::vector<T> model_on(Device device, const std::string& text, std::uint32_t rounds, std::uint32_t block = 0) {
  test::OneRun<T> run(text, {.threads = 2, .block = block, .device = device});
  EXPECT_TRUE(run.problem().model().as_form().has_value()) << "trains on the CPU whatever the device";
  run.play(1, rounds);
  return run.model();
}

Where of_study(const std::string& label, const std::string& precision, int rounds) {
  return {.what = "study " + label, .precision = precision, .more = std::to_string(rounds) + (rounds == 1 ? " round" : " rounds")};
}

// Compares the models of both devices, which differ by rounding.
template <class T>
void expect_near_models(const Where& where, const std::string& text, std::uint32_t rounds, double bound) {
  EXPECT_TRUE(near_vectors(where, "model", model_on<T>(Device::cpu, text, rounds), model_on<T>(Device::cuda, text, rounds), bound));
}

class GpuTraining : public testing::TestWithParam<Study> {
 protected:
  void SetUp() override {
    if (test::no_gpu()) GTEST_SKIP() << test::kGpuMissing;
    const std::string label = GetParam().label;
    const bool is_short = label == "PerceptronWithEverything" || label == "ConvolutionsOfEveryKind";
    if (test::kSanitized && !is_short) GTEST_SKIP() << "under the sanitizers a few kinds of clients";
  }
};

// Skips the test where the study's data are not there.
#define FL_NEED_DATA_OF(study)                                      \
  if ((study).problem.find("fashion-mnist") != std::string::npos) { \
    FL_NEED_DATA(images, "fashion-mnist");                          \
  }                                                                 \
  if ((study).problem.find("cifar10") != std::string::npos) {       \
    FL_NEED_DATA(images, "cifar10");                                \
  }

TEST_P(GpuTraining, TakesTheCpusSteps) {
  FL_NEED_DATA_OF(GetParam())
  const std::string single = text_of(GetParam(), "float32"), twice = text_of(GetParam(), "float64");
  expect_near_models<float>(of_study(GetParam().label, "float32", 1), single, 1, 1e-5);
  expect_near_models<double>(of_study(GetParam().label, "float64", 4), twice, 4, 1e-11);
}

TEST_P(GpuTraining, BlocksChangeNothing) {
  FL_NEED_DATA_OF(GetParam())
  const std::string text = text_of(GetParam(), "float32");
  const std::vector<float> whole = model_on<float>(Device::cuda, text, 3);
  const Where where = of_study(GetParam().label, "float32", 3);
  if (!test::kSanitized) {
    EXPECT_TRUE(same_words(where.between("the first time", "the second time"), "model", whole, model_on<float>(Device::cuda, text, 3)));
  }
  EXPECT_TRUE(same_words(where.between("in one block", "in blocks of 2"), "model", whole, model_on<float>(Device::cuda, text, 3, 2)));
#if defined(FL_CUDA_EMULATOR)
  emulator::set_order(emulator::Order::descending);
  EXPECT_TRUE(same_words(where.between("with ascending threads", "with descending threads"), "model", whole,
                         model_on<float>(Device::cuda, text, 3)));
  emulator::set_order(emulator::Order::ascending);
#endif
}

// The model after a step with rounded products, against that of full ones.
double effect_of(const std::string& products, const Study& study) {
  const std::string text = text_of(study, "float32");
  return test::relative_error(model_on<float>(Device::cuda, "matrix_products = '" + products + "'\n" + text, 1),
                              model_on<float>(Device::cuda, text, 1));
}

// Three fraction bits fewer are eight times the error. Activations are smooth: relu near zero would answer with more.
TEST(GpuRoundedProducts, AreOffByTheirRoundingAndNoMore) {
  if (test::no_gpu()) GTEST_SKIP() << test::kGpuMissing;
  if (test::kSanitized) GTEST_SKIP() << "under the sanitizers the smaller test of blocks";
  FL_NEED_DATA(path, "fashion-mnist");
  const std::string steps = "kind = 'sgd'\nbatch = 67\nsteps = 1\nlearning_rate = 1.0";
  const Study wide{"", kBlobs, "kind = 'neural_network'\nlayers = ['dense(150)', 'tanh', 'dense(70)', 'tanh', 'dense(classes)']", steps,
                   ""};
  const Study images{"", kImages,
                     "kind = 'neural_network'\nlayers = ['conv2d(40, 5, stride=4)', 'tanh', 'conv2d(9, 3, padding=1)', 'tanh', 'flatten', "
                     "'dense(classes)']",
                     "kind = 'sgd'\nbatch = 5\nsteps = 1\nlearning_rate = 1.0", ""};
  for (const Study& study : {wide, images}) {
    const double tf32 = effect_of("tf32", study), bf16 = effect_of("bf16", study);
    EXPECT_GT(tf32, 1e-6);
    EXPECT_LT(tf32, 2e-4);
    EXPECT_GT(bf16, 4 * tf32);
    EXPECT_LT(bf16, 2e-3);
  }
}

TEST(GpuRoundedProducts, AreTheSameWhateverTheBlock) {
  if (test::no_gpu()) GTEST_SKIP() << test::kGpuMissing;
  const Study study{"", kBlobs, kMlp, "kind = 'sgd'\nbatch = 6\nsteps = 2\nlearning_rate = 0.2", ""};
  for (const std::string products : {"tf32", "bf16"}) {
    const std::string text = "matrix_products = '" + products + "'\n" + text_of(study, "float32");
    const std::vector<float> whole = model_on<float>(Device::cuda, text, 2);
    const Where where = of_study("of products in " + products, "float32", 2);
    EXPECT_TRUE(same_words(where.between("in one block", "in blocks of 2"), "model", whole, model_on<float>(Device::cuda, text, 2, 2)));
#if defined(FL_CUDA_EMULATOR)
    emulator::set_order(emulator::Order::descending);
    EXPECT_TRUE(same_words(where.between("with ascending threads", "with descending threads"), "model", whole,
                           model_on<float>(Device::cuda, text, 2)));
    emulator::set_order(emulator::Order::ascending);
#endif
  }
}

TEST(GpuRoundedProducts, NeedClientsOnAGpuAndFloat32) {
  const Study study{"", kBlobs, kMlp, "kind = 'sgd'\nbatch = 6\nsteps = 2\nlearning_rate = 0.2", ""};
  const auto message = [&](Device device, const std::string& precision) {
    try {
      (void)test::OneRun<float>("matrix_products = 'tf32'\n" + text_of(study, precision), {.threads = 1, .device = device});
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_THAT(message(Device::cpu, "float32"), testing::HasSubstr("is for clients that train on a GPU"));
  EXPECT_THAT(message(Device::cuda, "float64"), testing::HasSubstr("matrix_products: rounds float32"));
}

// Where the regulariser is nothing at all, gradients still lie in memory before the step is taken: the same bytes.
TEST(GpuSteps, AreTheSameTakenWhereGradientsAreFound) {
  if (test::no_gpu()) GTEST_SKIP() << test::kGpuMissing;
  const std::string steps = "kind = 'sgd'\nbatch = 4\nsteps = 3\nlearning_rate = 0.2\n";
  std::vector<Study> all{
      {"", kBlobs, kMlp, steps + "momentum = 0.8\nproximal_mu = 0.1\nweight_decay = 0.01\nstragglers = 0.5", ""},
      {"", kBlobs, "kind = 'neural_network'\nlayers = ['dense(6)', 'group_norm(2)', 'tanh', 'dense(classes)']", steps, ""},
      {"", kWords, "kind = 'char_lstm'\nembedding = 3\nunits = 5\nlayers = 2", steps, ""},
      {"", kRatings, "kind = 'ncf'\nfactors = 2\nembedding = 3\nhidden = [4]\nnegatives = 2", steps, ""}};
  if (test::kSanitized) all.resize(1);
  if (const auto images = test::data_file("fashion-mnist"); !images.empty() && std::filesystem::exists(images))
    all.push_back({"", kFewImages,
                   "kind = 'neural_network'\nlayers = ['mean_pool(4)', 'conv2d(2, 3)', 'relu', 'residual([tanh, conv2d(2, 3, padding=1), "
                   "dropout(0.2)])', 'concat([flatten], [residual([tanh]), mean_pool(0), flatten])', 'dense(classes)']",
                   steps + "momentum = 0.5", ""});
  for (const Study& study : all) {
    Study in_memory = study;
    in_memory.model += "\nl2 = 1e-300";
    const Where where = of_study(study.model, "float32", 2).between("with gradients in memory", "with gradients that are not stored");
    EXPECT_TRUE(same_words(where, "model", model_on<float>(Device::cuda, text_of(in_memory, "float32"), 2),
                           model_on<float>(Device::cuda, text_of(study, "float32"), 2)));
  }
}

// Work is cut into waves of other sizes until the best is known, and then repeated from what was recorded.
TEST(GpuTrainingOverManyRounds, WavesAndRecordedStepsChangeNothing) {
  if (test::no_gpu()) GTEST_SKIP() << test::kGpuMissing;
  if (test::kSanitized) GTEST_SKIP() << "under the sanitizers a few rounds";
  const Study study{"", kBlobs, kMlp, "kind = 'sgd'\nbatch = 6\nsteps = 2\nlearning_rate = 0.2\nmomentum = 0.5", kEf14};
  const std::string text = text_of(study, "float64");
  const std::vector<double> whole = model_on<double>(Device::cuda, text, 16);
  const Where where = of_study("of a perceptron", "float64", 16);
  EXPECT_TRUE(same_words(where.between("in one block", "in blocks of 2"), "model", whole, model_on<double>(Device::cuda, text, 16, 2)));
  EXPECT_TRUE(near_vectors(where, "model", model_on<double>(Device::cpu, text, 16), whole, 1e-9));
}

INSTANTIATE_TEST_SUITE_P(Studies, GpuTraining, testing::ValuesIn(studies()), [](const auto& study) { return study.param.label; });

// Losses, accuracies, gradients and what follows from them at the same model.
void expect_same_measures(const std::string& data, const std::string& model) {
  const Where where{.what = "measures of " + model, .precision = "float64"};
  const std::string text = with_made_data("name = 'measures'\nrounds = 1\nprecision = 'float64'\n" + data +
                                          "[partition]\nkind = 'quantity_skew'\nbeta = 0.5\nclients = 4\n[model]\n" + model +
                                          "\n[local]\nkind = 'sgd'\nbatch = 5\nsteps = 2\nlearning_rate = 0.1\n");
  test::OneRun<double> here(text, {.threads = 2}), there(text, {.threads = 2, .device = Device::cuda});
  here.play(1, 1);
  const std::vector<double> x = here.model();
  Evaluator<double>&a = here->evaluator(), &b = there->evaluator();
  EXPECT_TRUE(near_value(where, "train_loss", a.train_loss(x), b.train_loss(x), 1e-11 * std::fabs(a.train_loss(x))));
  const Accuracy by_cpu = a.test(x), by_gpu = b.test(x);
  EXPECT_TRUE(near_value(where, "test_loss", by_cpu.loss, by_gpu.loss, 1e-11 * std::fabs(by_cpu.loss)));
  if (here.problem().train().num_classes > 0) {
    constexpr double kRounding = 1e-15;
    EXPECT_TRUE(near_value(where, "test_accuracy", by_cpu.accuracy, by_gpu.accuracy, kRounding));
    EXPECT_TRUE(near_value(where, "client_accuracy_mean", a.client_accuracy(x).mean, b.client_accuracy(x).mean, kRounding));
  }
  const GradientStatistics g = a.gradient(x), h = b.gradient(x);
  EXPECT_TRUE(near_value(where, "norm_sq of the gradient", g.norm_sq, h.norm_sq, 1e-10 * g.norm_sq));
  EXPECT_TRUE(near_value(where, "zeta_sq", g.zeta_sq, h.zeta_sq, 1e-10 * g.zeta_sq));
}

TEST(GpuEvaluation, MeasuresWhatTheCpuMeasures) {
  if (test::no_gpu()) GTEST_SKIP() << test::kGpuMissing;
  const std::string mushrooms = "[data]\nname = 'mushrooms'\nrows = 300\ntest_fraction = 0.2\n";
  expect_same_measures(mushrooms, "kind = 'logistic_regression'\nl2 = 0.01");
  expect_same_measures(mushrooms, "kind = 'logistic_regression'\nmultinomial = true");
  expect_same_measures(mushrooms, "kind = 'neural_network'\nlayers = ['dense(9)', 'gelu', 'dropout(0.3)', 'dense(classes)']");
  expect_same_measures(mushrooms, "kind = 'neural_network'\nl2 = 0.1\nlayers = ['dense(6)', 'batch_norm', 'relu', 'dense(classes)']");
  const std::string text = "[data]\npath = 'MADE/words.txt'\nformat = 'text'\nsequence = 4\nstride = 2\ntest_fraction = 0.4\n";
  expect_same_measures(text, "kind = 'char_lstm'\nembedding = 3\nunits = 4");
  expect_same_measures(text + "label_positions = 'every'\n", "kind = 'char_lstm'\nembedding = 3\nunits = 4");
  const std::string numbers = "[data]\npath = 'MADE/numbers.csv'\nlabels = 'target'\ntest_fraction = 0.4\n";
  expect_same_measures(numbers, "kind = 'linear_regression'");
  expect_same_measures(numbers, "kind = 'neural_network'\nlayers = ['dense(5)', 'tanh', 'dense(2)']\nloss = 'squared_error'");
  expect_same_measures("[data]\npath = 'MADE/ratings.csv'\nlabels = 'target'\ntest_fraction = 0.2\n",
                       "kind = 'ncf'\nfactors = 2\nembedding = 3\nhidden = [4]\nnegatives = 2");
  FL_NEED_DATA(path, "fashion-mnist");
  expect_same_measures("[data]\nname = 'fashion-mnist'\nrows = 30\ntest = 'none'\ntest_fraction = 0.3\n",
                       "kind = 'neural_network'\nlayers = ['mean_pool(4)', 'residual([conv2d(2, 3, padding=1), batch_norm, relu, "
                       "group_norm], shortcut=[conv2d(2, 1)])', 'concat([flatten], [relu, flatten])', 'dense(classes)']");
  expect_same_measures("[data]\nname = 'fashion-mnist'\nrows = 40\ntest = 'none'\ntest_fraction = 0.3\n",
                       "kind = 'neural_network'\nlayers = ['conv2d(3, 5, stride=3)', 'relu', 'max_pool(2)', 'dense(classes)']");
}

TEST(GpuEvaluation, IsNotForDataOfOtherFeatures) {
  if (test::no_gpu()) GTEST_SKIP() << test::kGpuMissing;
  Study wider = studies()[0];
  wider.problem = kTwoBlobs;
  test::OneRun<double> run(text_of(studies()[0], "float64"), {.threads = 1}), other(text_of(wider, "float64"), {.threads = 1});
  const Model<double>& model = run.problem().model();
  EXPECT_NE(make_device_evaluation(model, run.problem().train()), nullptr);
  EXPECT_EQ(make_device_evaluation(model, other.problem().train()), nullptr);
}

// Outputs of a layer of one client with one example, and its derivative by the input for slopes of 1.
std::pair<std::vector<float>, std::vector<float>> forward_and_back(const cuda::DeviceLayer<float>& layer, const std::vector<float>& in,
                                                                   std::size_t outputs) {
  Workspace workspace(Device::cuda);
  const Exec exec{.device = Device::cuda, .workspace = &workspace};
  const std::vector<float> ones(outputs, 1.0f);
  Buffer<float> x(in.size(), Device::cuda), y(outputs, Device::cuda), d_y(outputs, Device::cuda), d_x(in.size(), Device::cuda);
  copy_bytes(x.data(), Device::cuda, in.data(), Device::cpu, in.size() * sizeof(float));
  copy_bytes(d_y.data(), Device::cuda, ones.data(), Device::cpu, outputs * sizeof(float));
  Buffer<RandomStream> random(1, Device::cuda);
  const RandomStream stream(9, 1, 1);
  copy_bytes(random.data(), Device::cuda, &stream, Device::cpu, sizeof stream);
  const cuda::LayerPass pass{.exec = exec, .clients = 1, .B = 1, .random = random.data()};
  layer.forward(pass, {nullptr, 0}, x.data(), y.data());
  layer.backward(pass, {nullptr, 0}, x.data(), y.data(), d_y.data(), d_x.data(), cuda::GradientStore<float>::set(nullptr, 0));
  std::pair<std::vector<float>, std::vector<float>> found{std::vector<float>(outputs), std::vector<float>(in.size())};
  copy_bytes(found.first.data(), Device::cpu, y.data(), Device::cuda, outputs * sizeof(float));
  copy_bytes(found.second.data(), Device::cpu, d_x.data(), Device::cuda, in.size() * sizeof(float));
  return found;
}

// Returns a layer's CUDA half for examples of `inputs` numbers.
std::unique_ptr<cuda::DeviceLayer<float>> cuda_half(const LayerForm& form, std::size_t inputs) {
  return cuda::make_device_layer<float>({.form = form, .begin = 0, .inputs = inputs, .outputs = inputs, .number = 0});
}

// As on the CPU (tests/clients/nn/nan_test.cpp): in relu it stays, a window with NaN gives NaN, and the last one takes the slope.
TEST(GpuLayers, NanStaysNan) {
  if (test::no_gpu()) GTEST_SKIP() << test::kGpuMissing;
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> in{-1, nan, 2, 1, nan, -3, 0.5f, -4};
  for (const std::string function : {"relu", "tanh", "gelu"}) {
    const auto [y, d_x] = forward_and_back(*cuda_half(LayerForm({}, {}, function), in.size()), in, in.size());
    for (std::size_t j = 0; j < in.size(); ++j) EXPECT_EQ(std::isnan(y[j]), std::isnan(in[j])) << j;
    if (function == "relu") {
      const Where where{.what = "layer relu", .pattern = "nan", .precision = "float32", .on_first = "expected"};
      EXPECT_TRUE(same_words(where, "derivative by the input", std::vector<float>{0, 1, 1, 1, 1, 0, 1, 0}, d_x));
    }
  }
  const LayerForm pooling({{"channels", 1},
                           {"height", 2},
                           {"width", 4},
                           {"out_height", 1},
                           {"out_width", 2},
                           {"window_height", 2},
                           {"window_width", 2},
                           {"stride_height", 2},
                           {"stride_width", 2}},
                          {}, "max_pool");
  const auto [largest, to] = forward_and_back(*cuda_half(pooling, in.size()), in, 2);
  EXPECT_TRUE(std::isnan(largest[0]));
  EXPECT_EQ(largest[1], 2.0f);
  const Where where{.what = "layer max_pool", .pattern = "nan", .precision = "float32", .on_first = "expected"};
  EXPECT_TRUE(same_words(where, "derivative by the input", std::vector<float>{0, 0, 1, 0, 1, 0, 0, 0}, to));
  const std::vector<float> all(16, nan);
  const auto dropout = cuda_half(LayerForm({{"rate", 0.5}}, {}, "dropout"), all.size());
  for (const float dropped : forward_and_back(*dropout, all, all.size()).first) EXPECT_TRUE(std::isnan(dropped));
}

TEST(GpuTrainingFaults, AClientWhoseVectorIsNotFiniteSendsNothing) {
  if (test::no_gpu()) GTEST_SKIP() << test::kGpuMissing;
  Study study = studies()[0];
  study.local = "kind = 'sgd'\nbatch = 5\nsteps = 30\nlearning_rate = 1e30";
  test::OneRun<float> run(text_of(study, "float32"), {.threads = 1, .device = Device::cuda});
  run.play(1, 1);
  EXPECT_EQ(run->round().refused(), 5u);
  for (const float x : run.model()) EXPECT_EQ(x, 0.0f);
}

}  // namespace
}  // namespace fl
