# The GPU half of the library: operations (fl_core/ops/cuda) and a second copy of every operator, compiled as CUDA.
#
# Included when FL_CUDA is on. Sets FL_CUDA_PARTS, which is linked wherever the parts are; without FL_CUDA each part has a file
# without_cuda.cpp instead (fedbits_part).
if(FL_CUDA_EMULATOR)
  include(FedbitsCudaEmulator)
else()
  include(FedbitsCudaToolkit)
endif()

include(FedbitsCudaCopies)

# Operators, postprocessors and local optimizers are the files of these folders that register something; the rest of compressors/ belongs to the
# host.
file(GLOB candidates CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/compressors/*.cpp ${CMAKE_CURRENT_SOURCE_DIR}/compressors/postprocessors/*.cpp
  ${CMAKE_CURRENT_SOURCE_DIR}/clients/optimizers/*.cpp)
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
target_compile_options(fedbits_cuda PRIVATE
  "$<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wshadow;${FL_WERROR_OPTION};-ffp-contract=off;${FL_MARCH}>")
target_link_libraries(fedbits_cuda PRIVATE ${FL_CUDA_RUNTIME})
fedbits_add_cuda_copies(fedbits_cuda ${operators})

set(FL_CUDA_PARTS $<BUILD_INTERFACE:fedbits_cuda> ${FL_CUDA_RUNTIME})

# The GPU tests, `ctest -L gpu`. They are built without a GPU, and skipped where there is none to run on ("GPU MISSING"); the emulator needs none.
find_package(GTest QUIET)
if(GTest_FOUND)
  enable_testing()
  include(GoogleTest)
  # Tests of one card take turns: some measure what it has free.
  set(FL_GPU_TEST_PROPERTIES TIMEOUT 900 LABELS gpu)
  if(NOT FL_CUDA_EMULATOR)
    list(APPEND FL_GPU_TEST_PROPERTIES RESOURCE_LOCK gpu)
  endif()
  # fedbits_gpu_test(TARGET PREFIX SOURCE...): a program of tests, which ctest calls PREFIX/...
  function(fedbits_gpu_test target prefix)
    add_executable(${target} ${ARGN})
    fedbits_link_parts(${target})
    target_link_libraries(${target} PRIVATE GTest::gmock GTest::gtest_main)
    target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:-O1;-ffp-contract=off>" "$<$<COMPILE_LANGUAGE:CUDA>:${FL_CUDA_OPTIONS}>")
    set_target_properties(${target} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
    gtest_discover_tests(${target} DISCOVERY_MODE PRE_TEST TEST_PREFIX "${prefix}/" PROPERTIES ${FL_GPU_TEST_PROPERTIES})
  endfunction()
  set(FL_GPU_TESTS tests/gpu/parity_test.cpp tests/gpu/run_test.cpp tests/gpu/training_test.cpp tests/gpu/products_test.cpp tests/gpu/sweep_test.cpp
    tests/gpu/aggregation_test.cpp tests/gpu/tally_test.cpp tests/gpu/graph_test.cpp tests/gpu/state_test.cpp tests/gpu/rows_test.cpp
    tests/gpu/top_k_test.cpp tests/gpu/codes_test.cpp tests/gpu/plain_test.cpp tests/gpu/postprocessor_test.cpp
    tests/gpu/own_layer_test.cpp tests/gpu/optimizer_test.cpp examples/prelu.cpp examples/prelu.cu)
  list(TRANSFORM FL_GPU_TESTS PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  if(FL_CUDA_EMULATOR)
    set_source_files_properties(examples/prelu.cu PROPERTIES LANGUAGE CXX)
  endif()
  if(NOT FL_BUNDLE)
    fedbits_gpu_test(fedbits_gpu_parity gpu ${FL_GPU_TESTS})
    target_include_directories(fedbits_gpu_parity PRIVATE ${CMAKE_CURRENT_SOURCE_DIR}/include)  # for examples/
  endif()
  if(FL_CUDA_EMULATOR)
    fedbits_gpu_test(fedbits_emulator_test emulator tests/emulator/emulator_test.cpp tests/emulator/memory_test.cpp tests/emulator/counts_test.cpp
      tests/emulator/diagnosis_test.cpp tests/emulator/first_difference_test.cpp)
    add_test(NAME emulator/without_pool COMMAND fedbits_emulator_test --gtest_filter=WithoutPool.*)
    add_test(NAME emulator/variables COMMAND bash ${CMAKE_CURRENT_SOURCE_DIR}/tests/emulator/variables_test.sh ${CMAKE_BINARY_DIR}/fedbits)
    add_test(NAME emulator/late_streams COMMAND fedbits_gpu_parity --gtest_filter=GpuTraining*:GpuRun*:GpuAggregation*:GpuTally*:GpuRows*:GpuTopK*)
    set_tests_properties(emulator/without_pool PROPERTIES ENVIRONMENT FEDBITS_CUDA_POOL=off LABELS gpu)
    set_tests_properties(emulator/late_streams PROPERTIES ENVIRONMENT FEDBITS_CUDA_DELAY=1 LABELS gpu TIMEOUT 900)
    set_tests_properties(emulator/variables PROPERTIES LABELS gpu TIMEOUT 900)
    include(FedbitsWorkbench)
    if(FL_CUDA_COUNT_BYTES)
      set_source_files_properties(bench/gpu_numbers.cu PROPERTIES LANGUAGE CXX)
      target_sources(fedbits_emulator_test PRIVATE tests/emulator/traffic_test.cpp bench/gpu_numbers.cu)
      set_source_files_properties(tests/emulator/traffic_test.cpp PROPERTIES COMPILE_OPTIONS "${FL_CUDA_COUNTING}")
    endif()
  endif()
endif()
