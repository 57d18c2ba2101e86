# The instruction set that the library is compiled for. Sets FL_MARCH, the compiler's option for it (empty where it has no choice to make).
#
# FL_LEVEL names one as -march does, for example haswell. Without it FL_NATIVE=ON takes that of this machine, and everything else is
# compiled for x86-64-v3 (processors of 2013 and later), so that a package starts on other machines too. Loops use the widest vectors of
# the level, and results may differ in their last bits between levels; the program checks at its start that the processor has what the
# level needs (cmake/FedbitsProcessor.cmake).
option(FL_NATIVE "Build for this machine's instruction set (OFF: x86-64-v3)" OFF)
set(FL_LEVEL "" CACHE STRING "Build for this instruction set instead, as the compiler's -march names it, e.g. haswell")

include(CheckCXXCompilerFlag)

set(FL_MARCH)
if(FL_LEVEL)
  string(MAKE_C_IDENTIFIER "FL_HAS_MARCH_${FL_LEVEL}" variable)
  check_cxx_compiler_flag(-march=${FL_LEVEL} ${variable})
  if(NOT ${variable})
    message(FATAL_ERROR "FL_LEVEL: ${CMAKE_CXX_COMPILER} knows no -march=${FL_LEVEL}")
  endif()
  set(FL_MARCH -march=${FL_LEVEL})
elseif(FL_NATIVE)
  check_cxx_compiler_flag(-march=native FL_HAS_MARCH_NATIVE)
  if(FL_HAS_MARCH_NATIVE)
    set(FL_MARCH -march=native)
  endif()
endif()
if(NOT FL_MARCH AND CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  set(FL_MARCH -march=x86-64-v3)
  if(FL_NATIVE AND NOT FL_LEVEL)
    message(NOTICE "${CMAKE_CXX_COMPILER} cannot compile for this machine's own instruction set; it compiles for x86-64-v3")
  endif()
endif()
