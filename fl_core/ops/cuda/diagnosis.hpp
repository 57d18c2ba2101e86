// Environment variables with which the GPU engine shows faults that usual conditions hide. Results do not depend on any of them.
//
//   FEDBITS_CUDA_POOL=off     every block of GPU memory is an allocation of its own, of exactly its size, and scratch memory is neither
//                             zeroed nor used again: memcheck then sees accesses beyond a block, initcheck reads of what nobody wrote
//   FEDBITS_CUDA_DELAY=N      waits of random length before kernels and uploads, drawn with the seed N (1 or larger): work that needs
//                             another stream's result, or the host's, and does not wait for it then goes wrong
//   FEDBITS_CUDA_WAY=N        where several ways of doing the same are timed and the fastest is chosen, the way number N (from 0; the
//                             last one where there are fewer) is taken instead
//   FEDBITS_CUDA_TIMES=FILE   the time of every kernel, added up by its name and number of blocks, is written to FILE at the end
//                             (launch_times.hpp); work is then not recorded for graphs
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "fl_core/config/device.hpp"

namespace fl::cuda {

struct Diagnosis {
  bool pools_memory = true;
  std::uint64_t delay_seed = 0;  // 0: no waits
  std::optional<std::size_t> way;
  std::string times_file;  // empty: kernels are not timed
};

// Returns what the environment asks for; it is read once. Throws ConfigError, which names the variable, for a value that is none.
[[nodiscard]] FL_API const Diagnosis& diagnosis();

}  // namespace fl::cuda
