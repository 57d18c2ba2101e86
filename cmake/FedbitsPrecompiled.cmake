# Precompiled headers for tests: a sixth of the compiler's time. Of the library's own files only the clients have one, where they are joined;
# the others do without, so that one that leans on what another file included is found.
#
# fedbits_precompile(TARGET VARIANT) gives TARGET the header tests/support/precompiled.hpp, which is compiled once for all targets that name
# the same VARIANT: they have the same flags, but for definitions that the header does not use.
# fedbits_precompile_own(TARGET HEADER ...) precompiles headers for TARGET alone, with the flags of TARGET. The compiler cache cannot share
# what is compiled with such a header between build folders: FL_PRECOMPILE_OWN=OFF is for several folders of one tree.
option(FL_PRECOMPILE "Precompiled headers for the tests" ON)
option(FL_PRECOMPILE_OWN "Precompiled headers for parts of the library that are compiled joined" ON)

# The compiler cache tells headers apart by their bytes, which must not change with the time.
function(fedbits_cache_precompiled target)
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    target_compile_options(${target} PRIVATE -fpch-preprocess)
  elseif(CMAKE_CXX_COMPILER_ID MATCHES Clang)
    target_compile_options(${target} PRIVATE "SHELL:-Xclang -fno-pch-timestamp")
  endif()
endfunction()

# The cache compares preprocessed text, which has no comments. A precompiled header, though, remembers the bytes of each file in it, and a
# file whose comment has changed would be read a second time beside it. So the files themselves are compared here.
function(fedbits_cache_by_contents target)
  if(FL_CCACHE)
    set_target_properties(${target} PROPERTIES CXX_COMPILER_LAUNCHER "${CMAKE_COMMAND};-E;env;CCACHE_DEPEND=1;${FL_CCACHE}")
  endif()
endfunction()

function(fedbits_precompile_own target)
  if(FL_PRECOMPILE_OWN)
    target_precompile_headers(${target} PRIVATE ${ARGN})
    fedbits_cache_precompiled(${target})
  endif()
endfunction()

function(fedbits_precompile target variant)
  set(owner test_header_${variant})
  if(NOT TARGET ${owner})
    set(empty ${CMAKE_CURRENT_BINARY_DIR}/${owner}.cpp)
    file(CONFIGURE OUTPUT ${empty} CONTENT "" @ONLY)
    add_library(${owner} OBJECT ${empty})
    target_precompile_headers(${owner} PRIVATE <tests/support/precompiled.hpp>)  # in brackets: the same in every clone
    fedbits_cache_by_contents(${owner})
    foreach(property COMPILE_OPTIONS LINK_LIBRARIES)
      get_target_property(value ${target} ${property})
      if(value)
        set_target_properties(${owner} PROPERTIES ${property} "${value}")
      endif()
    endforeach()
    # A header for programs has to be compiled like one.
    set_target_properties(${owner} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(${owner} PRIVATE -fPIE)
    fedbits_cache_precompiled(${owner})
  endif()
  target_precompile_headers(${target} REUSE_FROM ${owner})
  fedbits_cache_precompiled(${target})
endfunction()
