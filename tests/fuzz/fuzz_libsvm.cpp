// libFuzzer target: any bytes are read as LIBSVM data, or refused with DataError or ConfigError; nothing else may happen.
//   clang++ -fsanitize=fuzzer,address,undefined ... && ./fuzz_libsvm tests/fuzz/corpus/libsvm
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "fl_core/error.hpp"
#include "scenarios/data/bytes.hpp"
#include "scenarios/data/libsvm.hpp"

namespace {

void require(bool holds) {
  if (!holds) __builtin_trap();
}

template <class T>
void read(const std::string& text, const fl::LibsvmFormat& format) {
  const auto data = fl::parse_libsvm<T>(text, "fuzz", format);
  require(data.num_rows > 0 && data.num_features > 0);
  require(format.labels == fl::LabelKind::target ? data.target.size() == data.num_rows : data.label.size() == data.num_rows);
  for (const std::int32_t label : data.label) require(static_cast<std::size_t>(label) < data.num_classes);
  if (!data.is_sparse) return;
  require(data.row_begin.size() == data.num_rows + 1 && data.row_begin[data.num_rows] == data.column.size());
  require(data.value.empty() || data.value.size() == data.column.size());
  for (const std::uint32_t column : data.column) require(column < data.num_features);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  try {
    const std::string text = fl::unpack_data(std::as_bytes(std::span<const std::uint8_t>(bytes, size)), "fuzz");
    if (text.size() > std::size_t{1} << 22) return 0;  // a packed bomb costs time and finds nothing
    read<float>(text, {.storage = fl::Storage::sparse});
    read<double>(text, {.storage = fl::Storage::sparse, .labels = fl::LabelKind::target});
  } catch (const fl::DataError&) {
  } catch (const fl::ConfigError&) {
  }
  return 0;
}
