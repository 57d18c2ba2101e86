# FL_BUNDLE: what is linked into a program for machines that have glibc and an NVIDIA driver, and no package of ours. Included before
# libraries are looked for; scripts/gpu_bundle.sh packs the program.
if(NOT FL_CUDA OR FL_SHARED OR FL_FETCH OR FL_INSTALL)
  message(FATAL_ERROR "FL_BUNDLE=ON needs FL_CUDA=ON, FL_SHARED=OFF, FL_FETCH=OFF and FL_INSTALL=OFF; the preset \"bundle\" sets them")
endif()
set(FL_STATIC_LIBRARIES ON)
