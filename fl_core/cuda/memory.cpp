#include "fl_core/cuda/memory.hpp"

#include <string>

#include "fl_core/cuda/check.cuh"
#include "fl_core/error.hpp"

namespace fl::cuda {

void check(cudaError_t status, const char* expression, const char* file, int line) {
  if (status == cudaSuccess) return;
  (void)cudaGetLastError();  // not a later call's
  throw DeviceError(std::string(expression) + ": " + cudaGetErrorString(status) + " (" + cudaGetErrorName(status) + ") at " + file + ":" +
                    std::to_string(line));
}

int device_count() noexcept {
  int count = 0;
  if (cudaGetDeviceCount(&count) == cudaSuccess) return count;
  (void)cudaGetLastError();  // not a later call's
  return 0;
}

std::string device_name() {
  cudaDeviceProp properties{};
  FL_CUDA_CHECK(cudaGetDeviceProperties(&properties, 0));
  return properties.name;
}

std::string why_no_device() noexcept {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaSuccess) return count > 0 ? "" : "no GPU is visible to the CUDA driver";
  (void)cudaGetLastError();  // not a later call's
  return std::string("the CUDA driver finds no GPU: ") + cudaGetErrorString(status);
}

std::uint64_t free_bytes_of_device() {
  std::size_t free = 0, total = 0;
  FL_CUDA_CHECK(cudaMemGetInfo(&free, &total));
  return free;
}

std::size_t cache_bytes_of_device() {
  int bytes = 0;
  FL_CUDA_CHECK(cudaDeviceGetAttribute(&bytes, cudaDevAttrL2CacheSize, 0));
  return static_cast<std::size_t>(bytes);
}

namespace {

// Zeroed; streams that do not wait for the default one must not see it unfinished.
void* zeroed(void* memory, std::size_t bytes) {
  FL_CUDA_CHECK(cudaMemset(memory, 0, bytes));
  FL_CUDA_CHECK(cudaStreamSynchronize(nullptr));
  return memory;
}

void check_allocation(cudaError_t status, const char* call, std::size_t bytes, int line) {
  if (status == cudaErrorMemoryAllocation) {
    (void)cudaGetLastError();  // not a later call's
    throw DeviceError("out of memory on the GPU: " + std::to_string(bytes) + " bytes were asked for, " +
                      std::to_string(free_bytes_of_device()) +
                      " are free; smaller blocks (--block), fewer runs at a time (--jobs), fewer clients or a smaller model need less");
  }
  if (status != cudaSuccess) check(status, (std::string(call) + " of " + std::to_string(bytes) + " bytes").c_str(), __FILE__, line);
}

}  // namespace

void* allocate_bytes(std::size_t bytes) {
  if (bytes == 0) return nullptr;
  void* memory = nullptr;
  check_allocation(cudaMalloc(&memory, bytes), "cudaMalloc", bytes, __LINE__);
  return zeroed(memory, bytes);
}

void* allocate_managed_bytes(std::size_t bytes) {
  if (bytes == 0) return nullptr;
  void* memory = nullptr;
  check_allocation(cudaMallocManaged(&memory, bytes), "cudaMallocManaged", bytes, __LINE__);
  return zeroed(memory, bytes);
}

void* create_stream() {
  cudaStream_t stream = nullptr;
  FL_CUDA_CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  return stream;
}

void destroy_stream(void* stream) noexcept { cudaStreamDestroy(static_cast<cudaStream_t>(stream)); }

void synchronise() { FL_CUDA_CHECK(cudaDeviceSynchronize()); }

void free_bytes(void* memory, std::size_t /*bytes*/) noexcept { cudaFree(memory); }

void copy_bytes(void* to, Device to_device, const void* from, Device from_device, std::size_t bytes, void* stream) {
  const auto queue = static_cast<cudaStream_t>(stream);
  const bool managed = from_device == Device::managed || to_device == Device::managed;
  const cudaMemcpyKind kind = managed                      ? cudaMemcpyDefault
                              : from_device == Device::cpu ? cudaMemcpyHostToDevice
                              : to_device == Device::cpu   ? cudaMemcpyDeviceToHost
                                                           : cudaMemcpyDeviceToDevice;
  if (queue == nullptr) FL_CUDA_CHECK(cudaDeviceSynchronize());
  FL_CUDA_CHECK(cudaMemcpyAsync(to, from, bytes, kind, queue));
  if (queue == nullptr || kind != cudaMemcpyDeviceToDevice) FL_CUDA_CHECK(cudaStreamSynchronize(queue));
}

}  // namespace fl::cuda
