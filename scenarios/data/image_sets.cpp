#include "scenarios/data/image_sets.hpp"

#include "fl_core/config/error.hpp"
#include "scenarios/data/find_file.hpp"
#include "scenarios/data/idx.hpp"

namespace fl {

namespace fs = std::filesystem;

template <class T>
LoadedData<T> load_image_set(const fs::path& folder, const FileDataOptions& options) {
  const fs::path images = need_ending(folder, "train-images-idx3-ubyte"), labels = need_ending(folder, "train-labels-idx1-ubyte");
  LoadedData<T> data;
  const auto open = [&options](const fs::path& file) { return DataReader(file, options.memory); };
  data.train = read_idx<T>(open(images), open(labels), options.name, static_cast<std::size_t>(options.rows));
  data.train_where = folder.string();
  const std::string test = find_ending(folder, "t10k-images-idx3-ubyte") ? "t10k" : "test";
  if (options.test == "none" || !find_ending(folder, test + "-images-idx3-ubyte")) return data;
  data.test = read_idx<T>(open(need_ending(folder, test + "-images-idx3-ubyte")), open(need_ending(folder, test + "-labels-idx1-ubyte")),
                          options.name + ".t", 0, data.train.num_classes);
  data.test_where = folder.string();
  if (data.test->shape != data.train.shape) throw DataError(folder.string() + ": test images have another size than training images");
  return data;
}

template LoadedData<float> load_image_set<float>(const fs::path&, const FileDataOptions&);
template LoadedData<double> load_image_set<double>(const fs::path&, const FileDataOptions&);

}  // namespace fl
