// The operations of a device that operators use. Operators call them unqualified inside namespace fl::FL_DEVICE_NS and pass FL_HD
// functors, so that one source serves both devices.
//
//   for_each  reduce_rows  quantile_rows             select_rows  top_k_rows  dense_rows  send_excluded  random_subset_rows  gather_rows
//   list_rows  gather_scaled_rows
//   quantize_rows  quantize_segments_fused  encode_levels_rows  reduce_kept  encode_kept  gemm  orthogonalize  svd_small  hadamard_rows
//   affine_times  affine_transposed_times  ridge_least_squares
//   load_vector  running_sums  expand_message  clear_sent
// The first arguments are always (const Exec&, const Affine<T>& input [K,P], const Scope&, ...), the last ones the state and the payloads
// [K], which the caller has cleared.
#pragma once

#include "fl_core/ops/op_types.hpp"

#if defined(FL_DEVICE_IS_CUDA)
#include "fl_core/ops/cuda/ops.cuh"
#else
#include "fl_core/ops/cpu/ops.hpp"
#endif
