// The device for which a translation unit is compiled.
//
// A compressor, a postprocessor and the headers that compressors share are written once inside `namespace fl::FL_DEVICE_NS` and compiled
// twice: as C++ (in fl::cpu) and, in a build with CUDA, as CUDA (in fl::cuda). All other parts are compiled once. FL_HD marks functions
// that run on both devices.
#pragma once

#if defined(__CUDACC__)
#define FL_HD __host__ __device__
#else
#define FL_HD
#endif

#if !defined(FL_DEVICE_NS)
#define FL_DEVICE_NS cpu
#endif

// Marks symbols that plug-ins outside the library link against; all others are hidden.
#if defined(_WIN32)
#define FL_API
#else
#define FL_API __attribute__((visibility("default")))
#endif

namespace fl {

enum class Device {
  cpu,
  cuda,
  managed,  // memory only: host and GPU reach it, and pages move to the device that uses them
  pinned,   // memory only: host memory that the GPU reads over the bus, for small data that the host reads every round
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
