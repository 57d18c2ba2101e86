#include "fl_core/cuda/memory.hpp"

#include <string>

#include "fl_core/cuda/check.cuh"
#include "fl_core/error.hpp"

namespace fl::cuda {

void check(cudaError_t status, const char* expression, const char* file, int line) {
  if (status == cudaSuccess) return;
  throw DeviceError(std::string(expression) + ": " + cudaGetErrorString(status) + " (" + cudaGetErrorName(status) + ") at " + file + ":" +
                    std::to_string(line));
}

int device_count() noexcept {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

void* allocate_bytes(std::size_t bytes) {
  if (bytes == 0) return nullptr;
  void* memory = nullptr;
  if (const cudaError_t status = cudaMalloc(&memory, bytes); status != cudaSuccess) {
    const std::string expression = "cudaMalloc of " + std::to_string(bytes) + " bytes";
    check(status, expression.c_str(), __FILE__, __LINE__);
  }
  FL_CUDA_CHECK(cudaMemset(memory, 0, bytes));
  // Streams that do not wait for the default one must not see it unfinished.
  FL_CUDA_CHECK(cudaStreamSynchronize(nullptr));
  return memory;
}

void free_bytes(void* memory, std::size_t /*bytes*/) noexcept { cudaFree(memory); }

void copy_bytes(void* to, Device to_device, const void* from, Device from_device, std::size_t bytes, void* stream) {
  const auto queue = static_cast<cudaStream_t>(stream);
  const cudaMemcpyKind kind = from_device == Device::cpu ? cudaMemcpyHostToDevice
                              : to_device == Device::cpu ? cudaMemcpyDeviceToHost
                                                         : cudaMemcpyDeviceToDevice;
  if (queue == nullptr) FL_CUDA_CHECK(cudaDeviceSynchronize());
  FL_CUDA_CHECK(cudaMemcpyAsync(to, from, bytes, kind, queue));
  if (queue == nullptr || kind != cudaMemcpyDeviceToDevice) FL_CUDA_CHECK(cudaStreamSynchronize(queue));
}

}  // namespace fl::cuda
