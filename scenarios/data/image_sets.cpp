#include "scenarios/data/image_sets.hpp"

#include "fl_core/error.hpp"
#include "scenarios/data/idx.hpp"

namespace fl {

namespace {

namespace fs = std::filesystem;

// The file in `folder` whose name, without .gz, ends with `ending`; the first in the alphabet.
std::optional<fs::path> find_ending(const fs::path& folder, const std::string& ending) {
  std::optional<fs::path> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    fs::path name = entry.path().filename();
    if (name.extension() == ".gz") name.replace_extension();
    if (name.string().ends_with(ending) && (!found || entry.path() < *found)) found = entry.path();
  }
  return found;
}

fs::path need(const fs::path& folder, const std::string& ending) {
  const auto file = find_ending(folder, ending);
  if (!file) throw DataError(folder.string() + ": the file *" + ending + " of this data set is missing");
  return *file;
}

}  // namespace

bool holds_image_set(const fs::path& folder) { return find_ending(folder, "train-images-idx3-ubyte").has_value(); }

template <class T>
LoadedData<T> load_image_set(const fs::path& folder, const std::string& name, std::size_t rows, bool with_test) {
  LoadedData<T> data;
  data.train = read_idx<T>(need(folder, "train-images-idx3-ubyte"), need(folder, "train-labels-idx1-ubyte"), name, rows);
  data.train_where = folder.string();
  // MNIST's test files are called t10k-..., EMNIST's ...-test-...
  const bool is_t10k = find_ending(folder, "t10k-images-idx3-ubyte").has_value();
  const std::string test = is_t10k ? "t10k" : "test";
  if (with_test && (is_t10k || find_ending(folder, "test-images-idx3-ubyte"))) {
    data.test = read_idx<T>(need(folder, test + "-images-idx3-ubyte"), need(folder, test + "-labels-idx1-ubyte"), name + ".t", 0,
                            data.train.num_classes);
    data.test_where = folder.string();
    if (data.test->shape != data.train.shape) throw DataError(folder.string() + ": test images have another size than training images");
  }
  return data;
}

template LoadedData<float> load_image_set<float>(const fs::path&, const std::string&, std::size_t, bool);
template LoadedData<double> load_image_set<double>(const fs::path&, const std::string&, std::size_t, bool);

}  // namespace fl
