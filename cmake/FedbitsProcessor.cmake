# The check of the processor at the start of programs and at the import of the Python package (fl_core/processor/).
#
# FL_LEVEL_NAME: the instruction set of the build for people, "x86-64-v3" or, with FL_NATIVE, "icelake-server (native)".
# `processor` lists what the build needs and compares it with CPUID; `processor_at_start` ends the program if something is missing. They take
# no flags of the other parts, because they run on processors that those do not run on. The list alone has FL_MARCH, from whose macros it is made.

# Sets `variable` to the processor that -march=native stands for, or to "".
function(fedbits_native_name variable)
  if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
    execute_process(COMMAND ${CMAKE_CXX_COMPILER} -march=native -x c++ -c /dev/null "-###" OUTPUT_VARIABLE said ERROR_VARIABLE said)
    string(REGEX MATCH "\"-target-cpu\" \"([^\"]+)\"" found "${said}")
  else()
    execute_process(COMMAND ${CMAKE_CXX_COMPILER} -march=native -Q --help=target OUTPUT_VARIABLE said ERROR_QUIET)
    string(REGEX MATCH "-march=[ \t]+([^ \t\n]+)" found "${said}")
  endif()
  set(${variable} "${CMAKE_MATCH_1}" PARENT_SCOPE)
endfunction()

set(FL_PORTABLE_LEVEL x86-64-v3)
string(REGEX REPLACE "^-march=" "" FL_LEVEL_NAME "${FL_MARCH}")
if(FL_LEVEL_NAME STREQUAL native)
  fedbits_native_name(native)
  string(STRIP "${native} (native)" FL_LEVEL_NAME)
elseif(NOT FL_LEVEL_NAME)
  set(FL_LEVEL_NAME ${CMAKE_SYSTEM_PROCESSOR})
endif()

set(FL_OLDEST_MARCH)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  set(FL_OLDEST_MARCH -march=x86-64)
endif()
add_library(processor OBJECT fl_core/processor/missing.cpp fl_core/processor/needed.cpp)
add_library(processor_at_start OBJECT fl_core/processor/at_start.cpp)
foreach(part processor processor_at_start)
  target_include_directories(${part} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
  target_compile_options(${part} PRIVATE -Wall -Wextra ${FL_WERROR_OPTION})
  set_target_properties(${part} PROPERTIES UNITY_BUILD OFF)
endforeach()
set_source_files_properties(fl_core/processor/missing.cpp fl_core/processor/at_start.cpp PROPERTIES COMPILE_OPTIONS "${FL_OLDEST_MARCH};-fno-sanitize=all")
set_source_files_properties(fl_core/processor/missing.cpp PROPERTIES
  COMPILE_DEFINITIONS "FL_LEVEL_NAME=\"${FL_LEVEL_NAME}\";FL_PORTABLE_LEVEL=\"${FL_PORTABLE_LEVEL}\"")
set_source_files_properties(fl_core/processor/needed.cpp PROPERTIES COMPILE_OPTIONS "${FL_MARCH}")
