# FL_STATIC_LIBRARIES: libraries of others are linked into the program or the Python module, which then needs glibc alone. Included before
# libraries are looked for; scripts/release.sh uses it. The C++ library of the compiler is linked in as well.

# CMake has modules of its own for these, which take what find_library finds. The others come with packages of their own.
set(suffixes ${CMAKE_FIND_LIBRARY_SUFFIXES})
set(CMAKE_FIND_LIBRARY_SUFFIXES .a)
find_package(SQLite3 REQUIRED)
find_package(ZLIB REQUIRED)
if(FL_NET)
  set(OPENSSL_USE_STATIC_LIBS ON)
  set(Protobuf_USE_STATIC_LIBS ON)
  find_package(OpenSSL 3.0 REQUIRED)
  find_package(Protobuf REQUIRED)
endif()
if(FL_FETCH)  # Debian's static libraries of these two need others that it has in shared form only: scripts/release_libraries.sh builds them
  find_package(CURL REQUIRED)
  find_package(LibArchive REQUIRED)
endif()
set(CMAKE_FIND_LIBRARY_SUFFIXES ${suffixes})
add_link_options(-static-libstdc++ -static-libgcc)

# The glibc of an older system in this folder: what is linked with it starts there and on every later one.
set(FL_OLD_GLIBC "" CACHE PATH "Link with the glibc in this folder (scripts/release_libraries.sh makes it)")
if(FL_OLD_GLIBC)
  set(libraries lib/x86_64-linux-gnu)
  add_link_options(--sysroot=${FL_OLD_GLIBC} -B${FL_OLD_GLIBC}/usr/${libraries} -L${FL_OLD_GLIBC}/usr/${libraries} -L${FL_OLD_GLIBC}/${libraries})
  string(APPEND CMAKE_CXX_STANDARD_LIBRARIES " -lpthread -ldl -lm")  # libraries of their own before glibc 2.34
  add_library(older_glibc OBJECT apps/release/older_glibc.cpp)
  target_compile_options(older_glibc PRIVATE -Wall -Wextra -fno-builtin)
endif()
