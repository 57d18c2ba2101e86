# The plug-in interface. FL_INTERFACE: its version, which scripts/plugin_interface.py raises. FL_PUBLIC_HEADERS: what is installed, the headers of
# the interface and those for programs. No third-party header is among what they include but Random123, which the package looks for.

# A header of the interface is one of these, or one that such a header includes.
set(FL_INTERFACE_ROOTS
  include/fedbits/plugin.hpp include/fedbits/operations.hpp
  # linear models
  clients/kernels/linear_model.hpp
  # roles without a page of their own
  clients/learning/local_optimizer.hpp clients/optimizers/entries.hpp clients/optimizers/state_field.hpp clients/learning/local_update.hpp
  compressors/feedback/feedback.hpp compressors/postprocessors/postprocessor.hpp fl_core/data/data_generator.hpp server/aggregation_rule.hpp
  server/async_rule.hpp server/delivery_policy.hpp server/participation.hpp server/server_optimizer.hpp timing/availability.hpp timing/devices.hpp timing/network.hpp
  # CUDA halves of layers
  clients/cuda/layer.hpp clients/cuda/layers/sums.cuh clients/cuda/tiled_product.cuh fl_core/ops/cuda/check.cuh
  # the stamp
  fl_core/config/plugin_stamp.hpp)
# Programs that run scenarios include these. Plug-ins do not depend on them.
set(FL_PROGRAM_ROOTS study/driver/simulation.hpp)

# fedbits_headers_of(RESULT ROOT...): the headers of this tree that some headers include, directly or not, and these themselves, sorted. Headers
# for one device count as well; the emulator's, which stand in for those of CUDA, do not.
function(fedbits_headers_of result)
  set(found)
  set(waiting ${ARGN})
  while(waiting)
    list(POP_FRONT waiting header)
    if(header IN_LIST found OR header MATCHES "^tests/")
      continue()
    endif()
    list(APPEND found ${header})
    file(STRINGS ${CMAKE_CURRENT_SOURCE_DIR}/${header} lines REGEX "^[ \t]*#[ \t]*include \"")
    list(TRANSFORM lines REPLACE "^[^\"]*\"([^\"]+)\".*" "\\1")
    list(APPEND waiting ${lines})
  endwhile()
  list(SORT found)
  set(${result} ${found} PARENT_SCOPE)
endfunction()

fedbits_headers_of(FL_PUBLIC_HEADERS ${FL_INTERFACE_ROOTS} ${FL_PROGRAM_ROOTS})
set(record ${CMAKE_CURRENT_SOURCE_DIR}/cmake/plugin_interface.txt)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${FL_PUBLIC_HEADERS} ${record})
file(STRINGS ${record} recorded REGEX "^[0-9]+ [0-9a-f]+$")
if(NOT recorded MATCHES "^([0-9]+) ")
  message(FATAL_ERROR "${record} has no line `NUMBER HASH`")
endif()
set(FL_INTERFACE ${CMAKE_MATCH_1})
