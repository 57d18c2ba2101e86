// Any bytes are read as LIBSVM data, or rejected with DataError or ConfigError; nothing else may happen.
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "fl_core/config/error.hpp"
#include "scenarios/data/bytes.hpp"
#include "scenarios/data/libsvm.hpp"
#include "tests/fuzz/target.hpp"

namespace {

template <class T>
void read_libsvm(const std::string& text, const fl::LibsvmFormat& format) {
  const auto data = fl::parse_libsvm<T>(text, "fuzz", format);
  const auto holds = [](bool condition) { fl::fuzz::require(condition, "the data contradict themselves"); };
  holds(data.num_rows > 0 && data.num_features > 0);
  holds(format.labels == fl::LabelKind::target ? data.target.size() == data.num_rows : data.label.size() == data.num_rows);
  for (const std::int32_t label : data.label) holds(static_cast<std::size_t>(label) < data.num_classes);
  if (!data.is_sparse) return;
  holds(data.sparse.row_begin.size() == data.num_rows + 1 && data.sparse.row_begin[data.num_rows] == data.sparse.column.size());
  holds(data.sparse.value.empty() || data.sparse.value.size() == data.sparse.column.size());
  for (const std::uint32_t column : data.sparse.column) holds(column < data.num_features);
}

void libsvm(std::span<const std::byte> bytes) {
  try {
    const std::string text = fl::unpack_data(bytes, "fuzz");
    if (text.size() > std::size_t{1} << 22) return;  // a packed bomb costs time and finds nothing
    read_libsvm<float>(text, {.storage = fl::Storage::sparse});
    read_libsvm<double>(text, {.storage = fl::Storage::sparse, .labels = fl::LabelKind::target});
  } catch (const fl::DataError&) {
  } catch (const fl::ConfigError&) {
  }
}

const fl::fuzz::Register kLibsvm("libsvm", libsvm);

}  // namespace
