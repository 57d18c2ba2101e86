# The GPU half of the library: operations (fl_core/ops/cuda) and a second copy of every operator, compiled as CUDA.
#
# Included when FL_CUDA is on. Sets FL_CUDA_PARTS, which is linked wherever the parts are.
if(FL_CUDA_EMULATOR)
  include(FedbitsCudaEmulator)
else()
  include(FedbitsCudaToolkit)
endif()

# Only the files that ask are told, so that a compiler cache serves the rest to builds with and without CUDA.
set_source_files_properties(fl_core/memory/buffer.cpp fl_core/ops/excluded.cpp clients/device_training.cpp clients/device_evaluation.cpp server/device_aggregation.cpp
  compressors/codec/device_tally.cpp fl_core/ops/row_norms.cpp fl_core/ops/row_sums.cpp fl_core/ops/row_moves.cpp fl_core/ops/message_sums.cpp
  PROPERTIES COMPILE_DEFINITIONS FL_WITH_CUDA)

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

file(GLOB operations CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/fl_core/ops/cuda/*.cu ${CMAKE_CURRENT_SOURCE_DIR}/fl_core/ops/cuda/*.cpp
  ${CMAKE_CURRENT_SOURCE_DIR}/clients/cuda/*.cu ${CMAKE_CURRENT_SOURCE_DIR}/clients/cuda/*.cpp ${CMAKE_CURRENT_SOURCE_DIR}/clients/cuda/layers/*.cu
  ${CMAKE_CURRENT_SOURCE_DIR}/server/cuda/*.cu ${CMAKE_CURRENT_SOURCE_DIR}/compressors/codec/cuda/*.cu)
add_library(fedbits_cuda OBJECT ${operations} ${FL_CUDA_RUNTIME_SOURCES})
if(FL_CUDA_EMULATOR)
  set_source_files_properties(${operations} PROPERTIES LANGUAGE CXX)
  target_link_libraries(fedbits_cuda PRIVATE fedbits_flags)
  target_compile_options(fedbits_cuda PRIVATE -O1 ${FL_CUDA_COUNTING})  # -O1 for the compiler's speed
endif()
set_target_properties(fedbits_cuda PROPERTIES UNITY_BUILD OFF)  # copies of operators come several in a file already
target_include_directories(fedbits_cuda PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
target_compile_definitions(fedbits_cuda PRIVATE FL_WITH_CUDA)
target_compile_options(fedbits_cuda PRIVATE
  "$<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wshadow;-Werror;-ffp-contract=off;${FL_LEVEL}>")
target_link_libraries(fedbits_cuda PRIVATE ${FL_CUDA_RUNTIME})
fedbits_add_cuda_copies(fedbits_cuda ${operators})

set(FL_CUDA_PARTS $<BUILD_INTERFACE:fedbits_cuda> ${FL_CUDA_RUNTIME})

# Operators of both devices, byte for byte. Needs a GPU to say anything, unless that is emulated; builds without one.
find_package(GTest QUIET)
if(GTest_FOUND)
  function(fedbits_gpu_test target)
    add_executable(${target} ${ARGN})
    fedbits_link_parts(${target})
    target_link_libraries(${target} PRIVATE GTest::gmock GTest::gtest_main)
    target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:-O1;-ffp-contract=off>" "$<$<COMPILE_LANGUAGE:CUDA>:${FL_CUDA_OPTIONS}>")
    set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
  endfunction()
  set(FL_GPU_TESTS tests/gpu/parity_test.cpp tests/gpu/run_test.cpp tests/gpu/training_test.cpp tests/gpu/sweep_test.cpp
    tests/gpu/aggregation_test.cpp tests/gpu/tally_test.cpp tests/gpu/graph_test.cpp tests/gpu/state_test.cpp tests/gpu/rows_test.cpp
    tests/gpu/top_k_test.cpp tests/gpu/plain_test.cpp tests/gpu/own_layer_test.cpp examples/prelu.cpp examples/prelu.cu)
  list(TRANSFORM FL_GPU_TESTS PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  if(FL_CUDA_EMULATOR)
    set_source_files_properties(examples/prelu.cu PROPERTIES LANGUAGE CXX)
  endif()
  if(NOT FL_BUNDLE)
    fedbits_gpu_test(fedbits_gpu_parity ${FL_GPU_TESTS})
  endif()
  if(FL_CUDA_EMULATOR)
    fedbits_gpu_test(fedbits_emulator_test tests/emulator/emulator_test.cpp tests/emulator/memory_test.cpp tests/emulator/counts_test.cpp)
    if(FL_CUDA_COUNT_BYTES)
      target_sources(fedbits_emulator_test PRIVATE tests/emulator/traffic_test.cpp)
      set_source_files_properties(tests/emulator/traffic_test.cpp PROPERTIES COMPILE_OPTIONS "${FL_CUDA_COUNTING}")
    endif()
  endif()
endif()
