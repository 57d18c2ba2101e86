# oneDNN for the convolutions and products of neural clients (cmake/FedbitsRequirements.cmake finds it). Its threads are OpenMP's, and the
# number of them is set to one around each call.

# Only the files that ask are told, so that a compiler cache serves the rest to builds with and without oneDNN.
set_source_files_properties(clients/nn/onednn.cpp clients/nn/gemm.cpp clients/nn/convolution.cpp
  fl_core/state/checkpoint.cpp PROPERTIES COMPILE_DEFINITIONS FL_WITH_ONEDNN)
target_include_directories(fedbits_third_party SYSTEM INTERFACE ${FL_ONEDNN_INCLUDE})
target_link_libraries(fedbits_third_party INTERFACE ${FL_ONEDNN_LIBRARY} gomp)
