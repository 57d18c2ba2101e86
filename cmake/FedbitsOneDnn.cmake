# oneDNN for the convolutions and products of neural clients. Debian's CMake package of it asks for OpenCL, which we do not need: the header
# and the library are found by themselves. Its threads are OpenMP's, and the number of them is set to one around each call.
find_path(FL_ONEDNN_INCLUDE oneapi/dnnl/dnnl.hpp)
find_library(FL_ONEDNN_LIBRARY dnnl)
mark_as_advanced(FL_ONEDNN_INCLUDE FL_ONEDNN_LIBRARY)
if(NOT FL_ONEDNN_INCLUDE OR NOT FL_ONEDNN_LIBRARY)
  message(FATAL_ERROR "FL_ONEDNN=ON needs oneDNN, which was not found: install libdnnl-dev (scripts/packages.sh onednn), or leave it OFF")
endif()

# Only the files that ask are told, so that a compiler cache serves the rest to builds with and without oneDNN.
set_source_files_properties(clients/nn/onednn.cpp clients/nn/gemm.cpp clients/nn/convolution.cpp
  server/checkpoint.cpp PROPERTIES COMPILE_DEFINITIONS FL_WITH_ONEDNN)
target_include_directories(fedbits_third_party SYSTEM INTERFACE ${FL_ONEDNN_INCLUDE})
target_link_libraries(fedbits_third_party INTERFACE ${FL_ONEDNN_LIBRARY} gomp)
