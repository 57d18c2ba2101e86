// The data sets that are known by name. Checksums are of the unpacked files as their publishers have them.
#include "scenarios/data/catalog.hpp"

namespace fl {
namespace {

const std::string kLibsvmPage = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary.html";

DataInfo libsvm(const std::string& name, const std::string& description, std::size_t rows, std::size_t features,
                const std::string& sha256) {
  const std::string url = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary/" + name;
  return {.name = "libsvm/" + name,
          .description = description,
          .rows = rows,
          .features = features,
          .classes = 2,
          .licence = "CC BY 4.0 (UCI)",
          .publisher = kLibsvmPage,
          .files = {{"libsvm/" + name, sha256, url}}};
}

// Four IDX files, of which the publisher keeps packed copies at `base`.
std::vector<DataFile> idx_files(const std::string& folder, const std::string& base, const std::vector<std::string>& sha256) {
  const char* const names[] = {"train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"};
  std::vector<DataFile> files;
  for (std::size_t i = 0; i < sha256.size(); ++i) files.push_back({folder + "/" + names[i], sha256[i], base + names[i] + ".gz"});
  return files;
}

// Files of one archive, whose folder inside is `inner`.
std::vector<DataFile> from_archive(const std::string& folder, const std::string& url, const std::string& inner,
                                   const std::vector<std::pair<std::string, std::string>>& names_and_sums) {
  std::vector<DataFile> files;
  for (const auto& [name, sha256] : names_and_sums) files.push_back({folder + "/" + name, sha256, url, inner + "/" + name});
  return files;
}

DataInfo mnist() {
  return {.name = "mnist",
          .description = "handwritten digits",
          .rows = 60000,
          .features = 784,
          .classes = 10,
          .shape = "1x28x28",
          .licence = "CC BY-SA 3.0 (LeCun, Cortes)",
          .publisher = "http://yann.lecun.com/exdb/mnist/",
          .files = idx_files("mnist", "https://ossci-datasets.s3.amazonaws.com/mnist/",
                             {"ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
                              "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
                              "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
                              "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2"})};
}

DataInfo fashion_mnist() {
  return {.name = "fashion-mnist",
          .description = "pictures of clothes",
          .rows = 60000,
          .features = 784,
          .classes = 10,
          .shape = "1x28x28",
          .licence = "MIT (Zalando)",
          .publisher = "https://github.com/zalandoresearch/fashion-mnist",
          .files = idx_files("fashion-mnist", "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
                             {"c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
                              "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
                              "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
                              "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34"})};
}

DataInfo cifar10() {
  return {.name = "cifar10",
          .description = "photographs of ten kinds of things",
          .rows = 50000,
          .features = 3072,
          .classes = 10,
          .shape = "3x32x32",
          .publisher = "https://www.cs.toronto.edu/~kriz/cifar.html",
          .files = from_archive("cifar10", "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz", "cifar-10-batches-bin",
                                {{"data_batch_1.bin", "cee916563c9f80d84e3cc88e17fdc0941787f1244f00a67874d45b261883ada5"},
                                 {"data_batch_2.bin", "a591ca11fa1708a91ee40f54b3da4784ccd871ecf2137de63f51ada8b3fa57ed"},
                                 {"data_batch_3.bin", "bbe8596564c0f86427f876058170b84dac6670ddf06d79402899d93ceea26f67"},
                                 {"data_batch_4.bin", "014e562d6e23c72197cc727519169a60359f5eccd8945ad5a09d710285ff4e48"},
                                 {"data_batch_5.bin", "755304fc0b379caeae8c14f0dac912fbc7d6cd469eb67a1029a08a39453a9add"},
                                 {"test_batch.bin", "8e2eb146ae340b09e24670f29cabc6326dba54da8789dab6768acf480273f65b"},
                                 {"batches.meta.txt", ""}})};
}

DataInfo cifar100() {
  return {.name = "cifar100",
          .description = "photographs of a hundred kinds of things in twenty groups",
          .rows = 50000,
          .features = 3072,
          .classes = 100,
          .shape = "3x32x32",
          .publisher = "https://www.cs.toronto.edu/~kriz/cifar.html",
          .files = from_archive("cifar100", "https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz", "cifar-100-binary",
                                {{"train.bin", ""}, {"test.bin", ""}, {"fine_label_names.txt", ""}, {"coarse_label_names.txt", ""}})};
}

DataInfo shakespeare() {
  return {.name = "shakespeare",
          .description = "next character; natural partition: one client per role of the plays",
          .rows = 53059,
          .features = 80,
          .classes = 76,
          .shape = "80 characters",
          .licence = "public domain",
          .publisher = "the plays with one line per speech: play, role and speech with tabs between",
          .files = {{"shakespeare/shakespeare_roles.tsv", "1d72dc4f793444d19a07947ad13dedde4826207cbbc843133a88a1581d020294"}}};
}

DataInfo tiny_shakespeare() {
  return {.name = "shakespeare/input.txt",
          .description = "next character; one text (tiny Shakespeare)",
          .rows = 13942,
          .features = 80,
          .classes = 65,
          .shape = "80 characters",
          .licence = "public domain",
          .publisher = "https://github.com/karpathy/char-rnn",
          .files = {{"shakespeare/input.txt", "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed",
                     "https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/input.txt"}}};
}

DataInfo wikitext2() {
  return {.name = "wikitext-2",
          .description = "next word of articles",
          .rows = 26107,
          .features = 80,
          .classes = 33278,
          .shape = "80 words",
          .licence = "CC BY-SA 3.0",
          .publisher = "https://www.salesforce.com/blog/the-wikitext-long-term-dependency-language-modeling-dataset/",
          .files = from_archive("wikitext-2", "https://s3.amazonaws.com/research.metamind.io/wikitext/wikitext-2-v1.zip", "wikitext-2",
                                {{"wiki.train.tokens", "9e9fa1ad55b1c2c95b08e37dd8e653f638fac2c6de904b79e813611eefbc985f"},
                                 {"wiki.valid.tokens", "f0737ed31fc1329026e95cb8b98e19c2a182c39c240ab909dc31abf2f8af58e8"},
                                 {"wiki.test.tokens", "d790b833ef8cf03a90db7bf1271b7520b83c45ce07ba3c1a9699df81e239eca0"}})};
}

DataInfo movielens_100k() {
  return {.name = "ml-100k",
          .description = "ratings of films; natural partition: one client per user",
          .rows = 100000,
          .features = 2,
          .classes = 5,
          .shape = "user, item",
          .licence = "research use, no redistribution",
          .publisher = "https://grouplens.org/datasets/movielens/100k/",
          .files = {{"ml-100k/u.data", "06416e597f82b7342361e41163890c81036900f418ad91315590814211dca490",
                     "https://files.grouplens.org/datasets/movielens/ml-100k/u.data"}}};
}

std::vector<DataInfo> make_known() {
  return {
      libsvm("a9a", "census income above 50,000 (UCI Adult), binary features", 32561, 123,
             "f5d5ffd8d865ff41328e7ee043e4b020816914ff6843ff15b98905ddbedce906"),
      libsvm("a9a.t", "test set of a9a", 16281, 122, "1f448a153f0320399a7e40836eb207655b0bde0f21fc941cc472193daa9f5de9"),
      libsvm("australian", "credit approval (Statlog), 14 mixed features", 690, 14,
             "e11b85d6265a6cc8d07e3200fc04557009e6e2407331ea8d7910eddf199c2d1a"),
      libsvm("madelon", "artificial, 5 informative features among 500 (NIPS 2003)", 2000, 500,
             "4801c452441772b47674fa8deb3724b1cb897eff49ccd8d47078367080c05b54"),
      libsvm("mushrooms", "poisonous or edible (UCI Mushroom), binary features; inside fedbits", 8124, 112,
             "f39a4eb628dc61a7d43760815b061c9e497aa728ce1ad8bde57a09ef6043b538"),
      libsvm("w8a", "web pages by keywords (Platt), binary features, 3% positive", 49749, 300,
             "6a9fa8fd5f524303240a5db07d4b3d4a51e8b7b4b20a914105d8e3e8c81640f2"),
      libsvm("w8a.t", "test set of w8a", 14951, 300, "618929ecb01bebb841daec4cae4aa07b97832d29b08652452775598929547fde"),
      mnist(),
      fashion_mnist(),
      cifar10(),
      cifar100(),
      shakespeare(),
      tiny_shakespeare(),
      wikitext2(),
      movielens_100k(),
  };
}

}  // namespace

const std::vector<DataInfo>& known_data() {
  static const std::vector<DataInfo> known = make_known();
  return known;
}

}  // namespace fl
