// Which device a translation unit is compiled for.
//
// A compressor, with the headers that compressors share, is written once inside `namespace fl::FL_DEVICE_NS` and compiled twice: as C++ (in
// fl::cpu) and, where CUDA is built, as CUDA (in fl::cuda). All other parts are compiled once. FL_HD marks what both devices execute.
#pragma once

#if defined(__CUDACC__)
#define FL_HD __host__ __device__
#else
#define FL_HD
#endif

#if !defined(FL_DEVICE_NS)
#define FL_DEVICE_NS cpu
#endif

// Symbols that plug-ins outside the library link against; everything else is hidden.
#if defined(_WIN32)
#define FL_API
#else
#define FL_API __attribute__((visibility("default")))
#endif

namespace fl {

enum class Device {
  cpu,
  cuda,
  managed,  // of memory alone: both reach it, and it moves to the one that uses it
  pinned,   // of memory alone: the host's, which the GPU reaches over the bus; for a few numbers that the host reads every round
};

[[nodiscard]] constexpr const char* to_string(Device device) {
  switch (device) {
    case Device::cpu: return "cpu";
    case Device::cuda: return "cuda";
    case Device::managed: return "managed";
    case Device::pinned: return "pinned";
  }
  return "";
}

#if defined(FL_DEVICE_IS_CUDA)
inline constexpr Device kThisDevice = Device::cuda;
#else
inline constexpr Device kThisDevice = Device::cpu;
#endif

enum class Precision { float32, float64 };

[[nodiscard]] constexpr const char* to_string(Precision precision) { return precision == Precision::float32 ? "float32" : "float64"; }

template <class T>
inline constexpr Precision kPrecisionOf = sizeof(T) == sizeof(float) ? Precision::float32 : Precision::float64;

}  // namespace fl
