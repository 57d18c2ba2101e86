# nvcc and its runtime. Sets FL_CUDA_OPTIONS, the compiler's, and FL_CUDA_RUNTIME, what the result is linked with.
#
# The CUDA runtime is linked statically, so that the result runs where only a driver is installed. No GPU is needed to build.

if(NOT CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES 80 90)
endif()
if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX})
  find_program(FL_NVCC nvcc HINTS /usr/local/cuda/bin ENV CUDA_PATH PATH_SUFFIXES bin)
  if(FL_NVCC)
    set(CMAKE_CUDA_COMPILER ${FL_NVCC})
  endif()
endif()
enable_language(CUDA)
find_package(CUDAToolkit REQUIRED)
# CMake 3.25 knows nvcc's dialects up to C++17 only.
if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
  set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
  set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
endif()
set(CMAKE_CUDA_STANDARD 20)
set(CMAKE_CUDA_EXTENSIONS OFF)
set(CMAKE_CUDA_VISIBILITY_PRESET hidden)
set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
if(FL_CCACHE AND NOT DEFINED CMAKE_CUDA_COMPILER_LAUNCHER)
  set(CMAKE_CUDA_COMPILER_LAUNCHER ${FL_CCACHE})
endif()

# Warning 554 is about BatchView's conversion to a view of constants, which a requires-clause takes away where it would be to itself.
set(host_options "")
foreach(option ${FL_WERROR_OPTION} ${FL_MARCH})
  string(APPEND host_options ",${option}")
endforeach()
set(FL_CUDA_WERROR)
if(FL_WERROR)
  set(FL_CUDA_WERROR "SHELL:-Werror all-warnings")
endif()
set(FL_CUDA_OPTIONS --fmad=false ${FL_CUDA_WERROR} "SHELL:-diag-suppress 554"
  "SHELL:-Xcompiler -ffp-contract=off,-Wall,-Wextra${host_options}")
if(FL_BUNDLE)
  list(APPEND FL_CUDA_OPTIONS "SHELL:-Xfatbin -compress-all")  # a third of the size; the driver unpacks a kernel when it is loaded
  list(APPEND FL_CUDA_OPTIONS -lineinfo)                       # source lines for compute-sanitizer and ncu; the code is the same
endif()
set(FL_CUDA_RUNTIME CUDA::cudart_static)
