# FL_PUBLIC_HEADERS: what a plug-in may include, and what is installed. FL_INTERFACE: a hash of their bytes, by which a plug-in that was
# built against others is recognised. No third-party header is among what they include but Random123, which the package looks for.
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
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${FL_PUBLIC_HEADERS})

set(hashes "")
foreach(header ${FL_PUBLIC_HEADERS})
  file(SHA256 ${CMAKE_CURRENT_SOURCE_DIR}/${header} hash)
  string(APPEND hashes "${header} ${hash}\n")
endforeach()
string(SHA256 FL_INTERFACE "${hashes}")
string(SUBSTRING ${FL_INTERFACE} 0 16 FL_INTERFACE)
