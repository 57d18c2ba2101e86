# The packages of others that a build needs. One error names all that are missing, as Debian and Fedora call them (scripts/packages.txt).
set(FL_MISSING)          # Debian's names
set(FL_MISSING_GROUPS build)
set(FL_MISSING_OTHERS)   # lines about what no package of Debian holds

# fedbits_find(PACKAGE DEBIAN [ARGUMENT...]): find_package(PACKAGE ARGUMENT...).
macro(fedbits_find package debian)
  find_package(${package} ${ARGN} QUIET)
  if(NOT ${package}_FOUND)
    list(APPEND FL_MISSING ${debian})
  endif()
endmacro()

# fedbits_find_header(HEADER DEBIAN): for packages without a CMake package. Their folders are in FL_HEADER_FOLDERS.
set(FL_HEADER_FOLDERS)
macro(fedbits_find_header header debian)
  string(MAKE_C_IDENTIFIER "FL_INCLUDE_${header}" variable)
  find_path(${variable} ${header} PATHS $ENV{CUDA_PATH}/include/cccl /usr/local/cuda/include/cccl)
  mark_as_advanced(${variable})
  if(${variable})
    list(APPEND FL_HEADER_FOLDERS ${${variable}})
  else()
    list(APPEND FL_MISSING ${debian})
  endif()
endmacro()

# Says whether the compiler and its standard library know what fedbits uses of C++20.
function(fedbits_check_compiler)
  include(CheckCXXSourceCompiles)
  set(CMAKE_REQUIRED_QUIET ON)
  check_cxx_source_compiles("
    #include <algorithm>
    #include <bit>
    #include <compare>
    #include <concepts>
    #include <coroutine>
    #include <numbers>
    #include <ranges>
    #include <source_location>
    #include <span>
    enum class Colour { red };
    struct Point { int x = 0, y = 0; auto operator<=>(const Point&) const = default; };
    template <std::integral Number> constexpr Number twice(Number value) { return value + value; }
    int main() {
      using enum Colour;
      const Point point{.x = twice(1), .y = static_cast<int>(red)};
      return std::span(&point, 1)[0] == Point{} ? std::bit_cast<int>(1.0f) : *std::ranges::find(&point.x, &point.x + 1, 2);
    }" FL_HAS_CXX20)
  if(NOT FL_HAS_CXX20)
    set(FL_MISSING_OTHERS "a compiler for C++20, g++ 12 or clang++ 14 or newer. CMake has found ${CMAKE_CXX_COMPILER}, which is \
${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}. Name another: -DCMAKE_CXX_COMPILER=g++-12" PARENT_SCOPE)
  endif()
endfunction()

# Sets OUT to a table of packages, one a line: Debian's name, Fedora's name, and what needs it; DEBIAN and FEDORA to what to install there.
function(fedbits_name_packages names out debian fedora)
  set(lines "")
  set(fedora_names "")
  if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/scripts/packages.txt)
    file(STRINGS ${CMAKE_CURRENT_SOURCE_DIR}/scripts/packages.txt list REGEX "^[a-z]+ ")
  endif()
  foreach(name ${names})
    string(APPEND lines "\n    ${name}")
    string(REGEX REPLACE "([.+])" "[\\1]" pattern ${name})
    foreach(line ${list})
      if(line MATCHES "^[a-z]+ +${pattern}([|][^ ]+)? +([^ ]+) +(.*)$")
        if(CMAKE_MATCH_2 STREQUAL "-")
          string(APPEND lines " (Fedora has no package): ${CMAKE_MATCH_3}")
        else()
          string(REPLACE "," ";" others ${CMAKE_MATCH_2})
          list(APPEND fedora_names ${others})
          list(JOIN others " and " others)
          string(APPEND lines " (Fedora: ${others}): ${CMAKE_MATCH_3}")
        endif()
        break()
      endif()
    endforeach()
  endforeach()
  list(REMOVE_DUPLICATES fedora_names)
  list(JOIN fedora_names " " fedora_names)
  list(JOIN names " " names)
  set(${out} "${lines}" PARENT_SCOPE)
  set(${debian} "${names}" PARENT_SCOPE)
  set(${fedora} "${fedora_names}" PARENT_SCOPE)
endfunction()

fedbits_check_compiler()
fedbits_find(Threads g++)
fedbits_find(Eigen3 libeigen3-dev 3.4 NO_MODULE)
fedbits_find(SQLite3 libsqlite3-dev)
fedbits_find(ZLIB zlib1g-dev)
fedbits_find(spdlog libspdlog-dev)
fedbits_find_header(toml++/toml.h libtomlplusplus-dev)
fedbits_find_header(nlohmann/json.hpp nlohmann-json3-dev)
fedbits_find_header(CLI/CLI.hpp libcli11-dev)
fedbits_find_header(Random123/philox.h librandom123-dev)
fedbits_find_header(thrust/sort.h libthrust-dev)  # or the copy inside a CUDA toolkit
fedbits_find_header(boost/math/distributions/students_t.hpp libboost1.81-dev)
if(FL_NET)
  fedbits_find(Boost libboost1.81-dev 1.81)
  fedbits_find(OpenSSL libssl-dev 3.0)
  fedbits_find(Protobuf "libprotobuf-dev;protobuf-compiler")
endif()
if(FL_TESTS)
  fedbits_find(GTest "libgtest-dev;libgmock-dev")
  list(APPEND FL_MISSING_GROUPS test)
endif()
if(FL_ONEDNN)
  # Debian's CMake package of oneDNN asks for OpenCL, which fedbits does not need: the header and the library are found by themselves.
  find_path(FL_ONEDNN_INCLUDE oneapi/dnnl/dnnl.hpp)
  find_library(FL_ONEDNN_LIBRARY dnnl)
  mark_as_advanced(FL_ONEDNN_INCLUDE FL_ONEDNN_LIBRARY)
  if(NOT FL_ONEDNN_INCLUDE OR NOT FL_ONEDNN_LIBRARY)
    list(APPEND FL_MISSING libdnnl-dev)
  endif()
  list(APPEND FL_MISSING_GROUPS onednn)
endif()
if(FL_PYTHON)
  fedbits_find(Python "python3-dev" 3.11 COMPONENTS Interpreter Development.Module)
  find_package(nanobind CONFIG QUIET)
  if(NOT nanobind_FOUND)
    list(APPEND FL_MISSING_OTHERS "nanobind: `pip install .` brings it. Otherwise: pip install nanobind, and \
-Dnanobind_DIR=$(python3 -m nanobind --cmake_dir)")
  endif()
  list(APPEND FL_MISSING_GROUPS python)
endif()

if(FL_MISSING OR FL_MISSING_OTHERS)
  list(REMOVE_DUPLICATES FL_MISSING)
  list(JOIN FL_MISSING_GROUPS " " groups)
  set(text "fedbits needs what was not found here:\n")
  foreach(line ${FL_MISSING_OTHERS})
    string(APPEND text "\n    ${line}")
  endforeach()
  if(FL_MISSING)
    fedbits_name_packages("${FL_MISSING}" packages debian fedora)
    string(APPEND text "${packages}\n\nOn Debian, `scripts/packages.sh ${groups}` installs everything. For these alone, on Debian or Fedora:\n\n"
      "    sudo apt-get install ${debian}\n")
    if(fedora)
      string(APPEND text "    sudo dnf install ${fedora}\n")
    endif()
  endif()
  message(FATAL_ERROR "${text}")
endif()
