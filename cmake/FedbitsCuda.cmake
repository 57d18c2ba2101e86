# The GPU half of the library: verbs (fl_core/cuda) and a second copy of every operator, compiled as CUDA.
#
# Included when FL_CUDA is on. Sets FL_CUDA_PARTS, which is linked wherever the parts are. The CUDA runtime is linked statically, so that
# the result runs where only a driver is installed. No GPU is needed to build.

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

# Only the files that ask are told, so that a compiler cache serves the rest to builds with and without CUDA.
set_source_files_properties(fl_core/buffer.cpp PROPERTIES COMPILE_DEFINITIONS FL_WITH_CUDA)

# Warning 554 is about BatchView's conversion to a view of constants, which a requires-clause takes away where it would be to itself.
set(FL_CUDA_OPTIONS --fmad=false "SHELL:-Werror all-warnings" "SHELL:-diag-suppress 554"
  "SHELL:-Xcompiler -ffp-contract=off,-Wall,-Wextra,-Werror,${FL_LEVEL}")

include(FedbitsCudaCopies)

# Operators are the files of compressors/ that register something; the rest of the folder belongs to the host.
file(GLOB candidates CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/compressors/*.cpp)
set(operators)
foreach(source ${candidates})
  file(STRINGS ${source} registrations REGEX "^FL_REGISTER_PART")
  if(registrations)
    list(APPEND operators ${source})
  endif()
endforeach()

file(GLOB verbs CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/fl_core/cuda/*.cu ${CMAKE_CURRENT_SOURCE_DIR}/fl_core/cuda/*.cpp)
add_library(fedbits_cuda OBJECT ${verbs})
target_include_directories(fedbits_cuda PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
target_compile_definitions(fedbits_cuda PRIVATE FL_WITH_CUDA)
target_compile_options(fedbits_cuda PRIVATE
  "$<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wshadow;-Werror;-ffp-contract=off;${FL_LEVEL}>")
target_link_libraries(fedbits_cuda PRIVATE CUDA::cudart_static)
fedbits_add_cuda_copies(fedbits_cuda ${operators})

set(FL_CUDA_PARTS $<BUILD_INTERFACE:fedbits_cuda> CUDA::cudart_static)

# Operators of both devices, byte for byte. Needs a GPU to say anything; builds without one.
find_package(GTest QUIET)
if(GTest_FOUND)
  add_executable(fedbits_gpu_parity tests/gpu/parity_test.cpp)
  fedbits_link_parts(fedbits_gpu_parity)
  target_link_libraries(fedbits_gpu_parity PRIVATE GTest::gmock GTest::gtest_main)
  target_compile_options(fedbits_gpu_parity PRIVATE -ffp-contract=off)
  set_target_properties(fedbits_gpu_parity PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
endif()
