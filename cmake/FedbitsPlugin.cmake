# fedbits_add_plugin(NAME SOURCE...): one shared object NAME.so from the files of a plug-in, for `fedbits --plugin NAME.so`.
#
# Works in this project and, installed, in others after find_package(fedbits). With FEDBITS_WITH_CUDA each compressor, each postprocessor and
# each local optimizer is compiled once more as CUDA, and files that end with .cu, the CUDA halves of layers, are compiled; without it they are
# left out. Other parts have no CUDA half.
# The flags that decide the bits of a result are those of the library.
function(fedbits_add_plugin name)
  set(sources ${ARGN})
  set(halves ${ARGN})
  list(FILTER sources EXCLUDE REGEX "\\.cu$")
  list(FILTER halves INCLUDE REGEX "\\.cu$")
  set(stamp ${CMAKE_CURRENT_BINARY_DIR}/stamps/${name}.cpp)
  file(CONFIGURE OUTPUT ${stamp} CONTENT "#include \"fl_core/config/plugin_stamp.hpp\"\nFL_PLUGIN_STAMP;\n" @ONLY)
  set_source_files_properties(${stamp} PROPERTIES COMPILE_DEFINITIONS
    "FL_VERSION=\"${FEDBITS_VERSION}\";FL_INTERFACE=\"${FEDBITS_INTERFACE}\"")

  add_library(${name} MODULE ${sources} ${stamp})
  set_target_properties(${name} PROPERTIES PREFIX "" SUFFIX ".so" CXX_STANDARD 20 CXX_STANDARD_REQUIRED ON CXX_EXTENSIONS OFF
    CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  target_compile_options(${name} PRIVATE "$<$<COMPILE_LANGUAGE:CXX>:${FEDBITS_PLUGIN_OPTIONS}>")
  target_link_libraries(${name} PRIVATE fedbits::fedbits)
  target_link_options(${name} PRIVATE LINKER:-z,defs)
  if(FEDBITS_RANDOM123_DIR)
    target_include_directories(${name} SYSTEM PRIVATE ${FEDBITS_RANDOM123_DIR})
  endif()
  if(FEDBITS_WITH_CUDA)
    foreach(source ${sources})
      file(STRINGS ${source} operators REGEX "^FL_REGISTER_PART\\((Compressor|Postprocessor|LocalOptimizer)")
      if(operators)
        fedbits_add_cuda_copies(${name} ${source})
      endif()
    endforeach()
    if(halves)
      target_sources(${name} PRIVATE ${halves})
      fedbits_add_cuda_copies(${name})  # the compiler's options
    endif()
    target_link_libraries(${name} PRIVATE CUDA::cudart_static)
  elseif(halves)
    message(STATUS "${name}: without CUDA ${halves} is left out")
  endif()
endfunction()

# What the installed package sets in its own file.
if(NOT FEDBITS_VERSION)
  set(FEDBITS_VERSION ${PROJECT_VERSION})
  set(FEDBITS_INTERFACE ${FL_INTERFACE})
  set(FEDBITS_WITH_CUDA ${FL_CUDA})
  if(FL_CUDA_EMULATOR)
    set(FEDBITS_WITH_CUDA OFF)
  endif()
  set(FEDBITS_RANDOM123_DIR ${FL_INCLUDE_Random123_philox_h})
  set(FEDBITS_PLUGIN_OPTIONS -ffp-contract=off -fopenmp-simd -fno-trapping-math ${FL_MARCH})
endif()
