# The CUDA code as C++ for the CPU (tests/emulator): threads of a block are fibers. To test kernels without a GPU, and with sanitizers.
find_package(Boost 1.81 REQUIRED COMPONENTS context)

add_library(fedbits_cuda_emulator INTERFACE)
target_include_directories(fedbits_cuda_emulator BEFORE INTERFACE ${CMAKE_CURRENT_SOURCE_DIR}/tests/emulator)
target_compile_definitions(fedbits_cuda_emulator INTERFACE FL_CUDA_EMULATOR)
target_link_libraries(fedbits_cuda_emulator INTERFACE Boost::context)
set(FL_CUDA_RUNTIME fedbits_cuda_emulator)
set(FL_CUDA_RUNTIME_SOURCES tests/emulator/block.cpp tests/emulator/runtime.cpp)
set_source_files_properties(tests/emulator/block.cpp PROPERTIES COMPILE_OPTIONS -O2)  # threads change places millions of times
