// Partitioners and data sets written in Python: fedbits.Partitioner and fedbits.Dataset.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "fl_core/data/data_generator.hpp"
#include "fl_core/data/partitioner.hpp"
#include "python/src/python_part.hpp"

namespace fl::python {

class PythonPartitioner final : public Partitioner {
 public:
  explicit PythonPartitioner(const PythonOptions& options) : kind_(options.kind), object_(options) {}
  [[nodiscard]] std::vector<Shard> split(const PartitionRequest& request) const override;
  [[nodiscard]] bool draws() const override;

 private:
  void check(const std::vector<Shard>& shards, const PartitionRequest& request) const;

  std::string kind_;
  PythonObject object_;
};

template <class T>
class PythonData final : public DataGenerator<T> {
 public:
  explicit PythonData(const PythonOptions& options) : kind_(options.kind), object_(options) {}
  [[nodiscard]] Dataset<T> generate(std::uint64_t seed) const override;
  [[nodiscard]] std::optional<Dataset<T>> generate_test(std::uint64_t seed) const override;

 private:
  [[nodiscard]] Dataset<T> dataset_of(const nb::object& arrays) const;

  std::string kind_;
  PythonObject object_;
};

extern template class PythonData<float>;
extern template class PythonData<double>;

}  // namespace fl::python
