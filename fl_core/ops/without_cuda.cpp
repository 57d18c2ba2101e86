// The CUDA half of fl_core in builds without CUDA: no GPU is there, and whatever would reach one throws DeviceError. CMake links this file
// instead of the folders cuda/ (fedbits_part in cmake/FedbitsParts.cmake).
#include "fl_core/config/error.hpp"
#include "fl_core/memory/cuda/memory.hpp"
#include "fl_core/ops/cuda/excluded.hpp"
#include "fl_core/ops/cuda/message_sums.hpp"
#include "fl_core/ops/cuda/row_moves.hpp"
#include "fl_core/ops/cuda/row_norms.hpp"
#include "fl_core/ops/cuda/row_sums.hpp"

namespace fl::cuda {
namespace {

[[noreturn]] void refuse_without_cuda() {
  throw DeviceError("this build has no CUDA: configure with -DFL_CUDA=ON on a machine with the CUDA toolkit, or use --device cpu");
}

}  // namespace

int device_count() noexcept { return 0; }
std::string device_name() { refuse_without_cuda(); }
std::string why_no_device() noexcept { return "this build has no CUDA (-DFL_CUDA=ON compiles it in)"; }
bool shares_managed_memory() noexcept { return false; }
std::uint64_t free_bytes_of_device(Device) { return 0; }
std::size_t cache_bytes_of_device() { refuse_without_cuda(); }
MemoryUse memory_use() { return {}; }

void* allocate_bytes(Device, std::size_t, Contents) { refuse_without_cuda(); }
void free_bytes(Device, void*, std::size_t) noexcept {}
bool pools_memory() { return true; }
void* create_stream() { refuse_without_cuda(); }
void destroy_stream(void*) noexcept {}
void synchronise() {}
void synchronise(void*) {}
void copy_bytes(void*, Device, const void*, Device, std::size_t, void*) { refuse_without_cuda(); }
void upload_bytes(void*, const void*, std::size_t, void*) { refuse_without_cuda(); }

template <class T>
void send_excluded(const Exec&, const Affine<T>&, const Scope&, const StateWrite<T>&, std::span<Payload<T>* const>) {
  refuse_without_cuda();
}
template <class T>
void add_messages(const Exec&, std::span<const Payload<T>* const>, const Scope&, T, BatchView<T>) {
  refuse_without_cuda();
}
template <class T>
void copy_rows(const Exec&, BatchView<const T>, BatchView<T>) {
  refuse_without_cuda();
}
template <class T>
void clear_entries(const Exec&, BatchView<T>, std::size_t, std::size_t) {
  refuse_without_cuda();
}
template <class T>
void sums_of_squares(const Exec&, const Affine<T>&, std::span<double>) {
  refuse_without_cuda();
}
template <class T>
void sums_of_squared_errors(const Exec&, const Affine<T>&, const Scope&, std::span<Payload<T>* const>, std::span<double>) {
  refuse_without_cuda();
}
template <class T>
void add_rows(const Exec&, BatchView<const T>, std::span<const double>, std::span<double>) {
  refuse_without_cuda();
}

#define FL_INSTANTIATE(T)                                                                                                                \
  template void send_excluded<T>(const Exec&, const Affine<T>&, const Scope&, const StateWrite<T>&, std::span<Payload<T>* const>);       \
  template void add_messages<T>(const Exec&, std::span<const Payload<T>* const>, const Scope&, T, BatchView<T>);                         \
  template void copy_rows<T>(const Exec&, BatchView<const T>, BatchView<T>);                                                             \
  template void clear_entries<T>(const Exec&, BatchView<T>, std::size_t, std::size_t);                                                   \
  template void sums_of_squares<T>(const Exec&, const Affine<T>&, std::span<double>);                                                    \
  template void sums_of_squared_errors<T>(const Exec&, const Affine<T>&, const Scope&, std::span<Payload<T>* const>, std::span<double>); \
  template void add_rows<T>(const Exec&, BatchView<const T>, std::span<const double>, std::span<double>)
FL_INSTANTIATE(float);
FL_INSTANTIATE(double);
#undef FL_INSTANTIATE

}  // namespace fl::cuda
