#include "scenarios/data/sequences.hpp"

#include <algorithm>

#include "fl_core/config/stopping.hpp"
#include "scenarios/data/bytes.hpp"
#include "scenarios/data/memory_limit.hpp"

namespace fl {

namespace {

std::size_t stride_of(const TextOptions& options) {
  return static_cast<std::size_t>(options.stride > 0 ? options.stride : options.sequence);
}

}  // namespace

std::size_t rows_in(const Stretch& stretch, const TextOptions& options) {
  const auto length = static_cast<std::size_t>(options.sequence);
  return stretch.size() > length ? (stretch.size() - length - 1) / stride_of(options) + 1 : 0;
}

TimeSplit split_in_time(const Stretch& stretch, double test_fraction) {
  const auto test = static_cast<std::size_t>(test_fraction * static_cast<double>(stretch.size()));
  return {{stretch.first, stretch.last - test}, {stretch.last - test, stretch.last}};
}

template <class T>
Dataset<T> cut_rows(std::span<const std::int32_t> tokens, std::span<const Stretch> stretches, const TextOptions& options,
                    const std::vector<std::string>& names, const std::string& name, const MemoryLimit& memory) {
  const auto length = static_cast<std::size_t>(options.sequence);
  Dataset<T> data;
  data.name = name;
  data.num_features = length;
  data.vocabulary.size = data.num_classes = names.size();
  data.class_names = names;
  data.vocabulary.next_token = options.labels;
  data.client_begin = {0};
  for (const Stretch& stretch : stretches) data.client_begin.push_back(data.client_begin.back() + rows_in(stretch, options));
  data.num_rows = data.client_begin.back();
  require_memory(static_cast<double>(data.num_rows) * static_cast<double>(length + 1) * sizeof(std::int32_t), name,
                 "use a larger data.stride or a shorter data.sequence", memory);
  data.tokens.resize_discard(data.num_rows * length);
  data.label.reserve(data.num_rows);
  for (const Stretch& stretch : stretches) {
    check_for_stop();
    for (std::size_t at = stretch.first; at + length < stretch.last; at += stride_of(options)) {
      std::copy_n(&tokens[at], length, &data.tokens[data.label.size() * length]);
      data.label.push_back(tokens[at + length]);
    }
  }
  return data;
}

template <class T>
void keep_first_rows(Dataset<T>& data, std::size_t rows, const std::filesystem::path& file) {
  data.num_rows = rows_kept(rows, data.num_rows, file);
  if (!data.label.empty()) data.label.resize(data.num_rows);
  if (!data.target.empty()) data.target.resize(data.num_rows);
  std::vector<std::size_t>& begin = data.client_begin;
  if (begin.empty()) return;
  begin.erase(std::lower_bound(begin.begin(), begin.end(), data.num_rows), begin.end());
  begin.push_back(data.num_rows);
}

template Dataset<float> cut_rows<float>(std::span<const std::int32_t>, std::span<const Stretch>, const TextOptions&,
                                        const std::vector<std::string>&, const std::string&, const MemoryLimit&);
template Dataset<double> cut_rows<double>(std::span<const std::int32_t>, std::span<const Stretch>, const TextOptions&,
                                          const std::vector<std::string>&, const std::string&, const MemoryLimit&);
template void keep_first_rows<float>(Dataset<float>&, std::size_t, const std::filesystem::path&);
template void keep_first_rows<double>(Dataset<double>&, std::size_t, const std::filesystem::path&);

}  // namespace fl
