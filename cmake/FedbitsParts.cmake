# Flags shared by everything, and one OBJECT library per folder of the tree.
#
# A part's object files are linked directly into what uses them (OBJECT libraries do not chain), so that registrations survive in the
# shared library, in the static binary and in every test alike.

# Where several files are compiled as one, gcc takes their own types for those of headers, and names of one hide those of another.
set(is_unity $<BOOL:$<TARGET_PROPERTY:UNITY_BUILD>>)
add_library(fedbits_flags INTERFACE)
target_include_directories(fedbits_flags INTERFACE ${CMAKE_CURRENT_SOURCE_DIR})
target_compile_definitions(fedbits_flags INTERFACE FL_VERSION="${PROJECT_VERSION}" THRUST_DEVICE_SYSTEM=THRUST_DEVICE_SYSTEM_CPP)
target_compile_options(fedbits_flags INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra $<$<NOT:${is_unity}>:-Wshadow> ${FL_WERROR_OPTION} $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict> $<$<AND:$<CXX_COMPILER_ID:GNU>,${is_unity}>:-Wno-subobject-linkage> -fopenmp-simd -fno-trapping-math>)
target_compile_options(fedbits_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:${FL_MARCH}>)
if(FL_SANITIZE)
  target_compile_options(fedbits_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fsanitize=${FL_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer>)
  # A fifth of the compiler's time for what the address sanitizer finds too.
  if(FL_SANITIZE MATCHES "undefined")
    target_compile_options(fedbits_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-fno-sanitize=object-size,pointer-overflow>)
    # This option has to follow -fsanitize.
    target_compile_options(fedbits_flags INTERFACE
      $<$<AND:$<COMPILE_LANG_AND_ID:CXX,Clang>,$<BOOL:$<TARGET_PROPERTY:FL_COROUTINES>>>:-fno-sanitize=function>)
  endif()
  target_link_options(fedbits_flags INTERFACE -fsanitize=${FL_SANITIZE})
endif()
target_link_libraries(fedbits_flags INTERFACE Threads::Threads)

# Third-party libraries that parts are compiled and linked with; none appears in a public header.
add_library(fedbits_third_party INTERFACE)
target_link_libraries(fedbits_third_party INTERFACE Eigen3::Eigen SQLite::SQLite3 ZLIB::ZLIB)
if(FL_STATIC_LIBRARIES)  # Debian has no static library of these two; their headers do without (spdlog::spdlog_header_only would link fmt's)
  find_package(fmt REQUIRED)
  target_link_libraries(fedbits_third_party INTERFACE fmt::fmt-header-only)
  target_compile_definitions(fedbits_third_party INTERFACE SPDLOG_FMT_EXTERNAL)
else()
  target_link_libraries(fedbits_third_party INTERFACE spdlog::spdlog)
endif()

# fedbits_append_includes(LIST TARGET): the folders of headers that TARGET has beside the compiler's own. (Naming those would change their order.)
function(fedbits_append_includes list target)
  get_target_property(folders ${target} INTERFACE_INCLUDE_DIRECTORIES)
  if(folders)
    list(REMOVE_ITEM folders ${CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES})
    set(${list} ${${list}} ${folders} PARENT_SCOPE)
  endif()
endfunction()

# `fedbits data fetch` downloads with libcurl and takes files out of archives with libarchive; without them it says so when it is asked to. The
# options of these two are for its files alone, so that everything else is compiled alike with and without FL_FETCH.
if(FL_FETCH)
  find_package(CURL QUIET)
  if(CURL_FOUND)
    target_link_libraries(fedbits_third_party INTERFACE $<LINK_ONLY:CURL::libcurl>)
    set(FL_FETCH_DEFINITIONS FL_WITH_CURL $<TARGET_PROPERTY:CURL::libcurl,INTERFACE_COMPILE_DEFINITIONS>)
    fedbits_append_includes(FL_FETCH_INCLUDES CURL::libcurl)
  else()
    message(WARNING "libcurl was not found (Debian: libcurl4-openssl-dev): `fedbits data fetch` will not be able to download")
  endif()
  find_package(LibArchive QUIET)
  if(LibArchive_FOUND)
    target_link_libraries(fedbits_third_party INTERFACE $<LINK_ONLY:LibArchive::LibArchive> ZLIB::ZLIB)
    list(APPEND FL_FETCH_DEFINITIONS FL_WITH_LIBARCHIVE)
    fedbits_append_includes(FL_FETCH_INCLUDES LibArchive::LibArchive)
  else()
    message(WARNING "libarchive was not found (Debian: libarchive-dev): `fedbits data fetch` will not be able to unpack archives")
  endif()
endif()

target_include_directories(fedbits_third_party SYSTEM INTERFACE ${FL_HEADER_FOLDERS})

# fedbits_part(NAME [CONTRACT]): all sources below NAME. Floating-point contraction is off (the same bytes everywhere) unless CONTRACT.
# The headers in folders cuda/ declare the CUDA half. With FL_CUDA the sources in such folders implement it (cmake/FedbitsCuda.cmake). Without
# it NAME's file without_cuda.cpp does, which throws DeviceError or says that there is no GPU.
function(fedbits_part name)
  cmake_parse_arguments(PART "CONTRACT" "" "" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${name}/*.cpp)
  list(FILTER sources EXCLUDE REGEX "/(cuda|processor)/")  # fl_core/processor has targets of its own
  if(FL_CUDA)
    list(FILTER sources EXCLUDE REGEX "/without_cuda.cpp$")
  endif()
  add_library(${name} OBJECT ${sources})
  target_link_libraries(${name} PUBLIC fedbits_flags PRIVATE fedbits_third_party)
  if(NOT PART_CONTRACT)
    target_compile_options(${name} PRIVATE -ffp-contract=off)
  endif()
endfunction()

# Adapts a target with coroutines to its compiler. clang 14 places data for the check of function types in front of each function, and its
# assembler rejects them in front of the parts of a coroutine. g++ 12 takes the operators new and delete of a coroutine's frame for a pair
# that does not match.
function(fedbits_coroutines target)
  set_target_properties(${target} PROPERTIES FL_COROUTINES ON)
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-mismatched-new-delete>)
endfunction()

# Lets the ThreadSanitizer watch a target, and an executable link with it, in the preset `tsan`. It does not know the fences of Asio, which
# only order what its mutexes order too.
function(fedbits_watch_threads target)
  if(FL_TSAN)
    target_compile_options(${target} PRIVATE -fsanitize=thread -fno-omit-frame-pointer -g1 $<$<CXX_COMPILER_ID:GNU>:-Wno-tsan>)
    target_link_options(${target} PRIVATE -fsanitize=thread)
  endif()
endfunction()

# Links every part into a target that wants all of the library inside it.
function(fedbits_link_parts target)
  set(parts ${FL_PARTS} ${FL_CUDA_PARTS})
  if(FL_CUDA_COUNT_BYTES)  # inline functions that both halves have are to be those whose accesses are counted
    set(parts ${FL_CUDA_PARTS} ${FL_PARTS})
  elseif(FL_TSAN)  # so are those that are watched
    list(PREPEND parts net status)
  endif()
  target_link_libraries(${target} PRIVATE ${parts} processor processor_at_start $<TARGET_NAME_IF_EXISTS:older_glibc> fedbits_flags fedbits_third_party)
endfunction()
