# The CUDA code as C++ for the CPU (tests/emulator): threads of a block are fibers. To test kernels without a GPU, and with sanitizers.
find_package(Boost 1.81 REQUIRED COMPONENTS context)

add_library(fedbits_cuda_emulator INTERFACE)
target_include_directories(fedbits_cuda_emulator BEFORE INTERFACE ${CMAKE_CURRENT_SOURCE_DIR}/tests/emulator)
target_compile_definitions(fedbits_cuda_emulator INTERFACE FL_CUDA_EMULATOR)
target_link_libraries(fedbits_cuda_emulator INTERFACE Boost::context)
set(FL_CUDA_RUNTIME fedbits_cuda_emulator)
set(FL_CUDA_RUNTIME_SOURCES tests/emulator/block.cpp tests/emulator/runtime.cpp tests/emulator/streams.cpp)
set_source_files_properties(tests/emulator/block.cpp PROPERTIES COMPILE_OPTIONS -O2)  # threads change places millions of times

# Every load and store of the CUDA code becomes a call (as for the thread sanitizer, whose library is not linked), and tests/emulator/traffic.cpp
# counts those that meet the GPU's memory.
if(FL_CUDA_COUNT_BYTES)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    message(FATAL_ERROR "FL_CUDA_COUNT_BYTES defines the calls that g++ makes with -fsanitize=thread; the compiler is ${CMAKE_CXX_COMPILER_ID}")
  endif()
  target_compile_definitions(fedbits_cuda_emulator INTERFACE FL_CUDA_COUNT_BYTES)
  set(FL_CUDA_COUNTING -fsanitize=thread --param=tsan-instrument-func-entry-exit=0)
  list(APPEND FL_CUDA_RUNTIME_SOURCES tests/emulator/traffic.cpp)
  set_property(SOURCE ${FL_CUDA_RUNTIME_SOURCES} APPEND PROPERTY COMPILE_OPTIONS -fno-sanitize=thread)
endif()
