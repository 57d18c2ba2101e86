# fedbits_add_cuda_copies(TARGET SOURCE...): compiles each file into TARGET as CUDA, through a wrapper that includes it. (The LANGUAGE
# property instead would turn the C++ copy into CUDA as well.) FL_CUDA_OPTIONS are the compiler's options. Here and, installed, for plug-ins.
function(fedbits_add_cuda_copies target)
  foreach(source ${ARGN})
    cmake_path(ABSOLUTE_PATH source NORMALIZE)
    get_filename_component(name ${source} NAME_WE)
    set(wrapper ${CMAKE_CURRENT_BINARY_DIR}/cu/${target}/${name}.cu)
    file(CONFIGURE OUTPUT ${wrapper} CONTENT "#define FL_DEVICE_NS cuda\n#define FL_DEVICE_IS_CUDA\n#include \"${source}\"\n" @ONLY)
    target_sources(${target} PRIVATE ${wrapper})
  endforeach()
  target_compile_options(${target} PRIVATE "$<$<COMPILE_LANGUAGE:CUDA>:${FL_CUDA_OPTIONS}>")
endfunction()
