# Ninja starts no more compilers than there is memory for (scripts/jobs.sh), also where something else calls it, such as `pip install`.
# `cmake --build -j` may set fewer. Other generators ignore this.
if(NOT CMAKE_JOB_POOL_COMPILE)
  execute_process(COMMAND bash ${CMAKE_CURRENT_SOURCE_DIR}/scripts/jobs.sh OUTPUT_VARIABLE FL_JOBS OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(FL_JOBS MATCHES "^[1-9][0-9]*$")
    set_property(GLOBAL APPEND PROPERTY JOB_POOLS compilers=${FL_JOBS})
    set(CMAKE_JOB_POOL_COMPILE compilers)
  endif()
endif()
