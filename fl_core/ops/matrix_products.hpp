// The number format of matrix products in clients' training on a GPU. Sums, weights and everything else keep the scenario's precision.
#pragma once

namespace fl {

enum class MatrixProducts {
  full,  // unchanged
  tf32,  // rounded to 10 fraction bits with float's exponents, on tensor cores
  bf16,  // rounded to 7 fraction bits with float's exponents, on tensor cores
};
[[nodiscard]] constexpr const char* to_string(MatrixProducts products) {
  return products == MatrixProducts::full ? "full" : products == MatrixProducts::tf32 ? "tf32" : "bf16";
}

}  // namespace fl
