# FL_PUBLIC_HEADERS: what a plug-in may include, and what is installed. No third-party header is among what they include but Random123, which
# the package looks for. FL_INTERFACE: the version of the plug-in interface. scripts/plugin_interface.py raises it, and finds headers that
# have changed without it.
file(GLOB FL_PUBLIC_HEADERS CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR}
  fl_core/*/*.hpp fl_core/ops/cpu/*.hpp fl_core/*/cuda/*.hpp fl_core/ops/cuda/*.cuh
  compressors/*.hpp compressors/codec/*.hpp compressors/feedback/*.hpp
  clients/*.hpp clients/kernels/*.hpp clients/nn/*.hpp
  clients/cuda/layer.hpp clients/cuda/divisor.hpp clients/cuda/gradient_store.cuh clients/cuda/descent_step.cuh clients/cuda/operands.cuh
  clients/cuda/tiles.cuh clients/cuda/tensor_tiles.cuh clients/cuda/tiled_product.cuh clients/cuda/layers/*.cuh
  server/participation.hpp server/server_optimizer.hpp
  scenarios/measures/measure.hpp scenarios/partitioners/*.hpp)
list(SORT FL_PUBLIC_HEADERS)
# What programs include that run scenarios (study/driver/simulation.hpp), beside some of the above. Plug-ins do not depend on them.
set(FL_PROGRAM_HEADERS
  scenarios/experiment/model_file.hpp scenarios/file/scenario_text.hpp
  scenarios/results/run_progress.hpp scenarios/results/run_record.hpp scenarios/results/run_store.hpp
  scenarios/sweep/sweep_share.hpp
  study/driver/simulation.hpp study/driver/study_events.hpp study/driver/study_settings.hpp)

set(record ${CMAKE_CURRENT_SOURCE_DIR}/cmake/plugin_interface.txt)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${record})
file(STRINGS ${record} recorded REGEX "^[0-9]+ [0-9a-f]+$")
if(NOT recorded MATCHES "^([0-9]+) ")
  message(FATAL_ERROR "${record} has no line `NUMBER HASH`")
endif()
set(FL_INTERFACE ${CMAKE_MATCH_1})
