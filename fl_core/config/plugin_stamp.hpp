// Build information of a plug-in, stored as text in its file, so that fedbits can reject the plug-in before any of its code runs.
//
//   fedbits-plug-in{version|interface|compiler ABI}
//
//   version     of fedbits, for messages only
//   interface   the number in cmake/plugin_interface.txt: two builds with the same number have the same classes
//   ABI         the settings that decide the memory layout of the standard library's types
// fedbits_add_plugin puts FL_PLUGIN_STAMP into a separate source file of the plug-in.
#pragma once

#include <string_view>  // defines the macros of the standard library

#if !defined(FL_INTERFACE)
#define FL_INTERFACE "unknown"
#endif
#if !defined(FL_VERSION)
#define FL_VERSION "unknown"
#endif

#define FL_TEXT_INNER(x) #x
#define FL_TEXT(x) FL_TEXT_INNER(x)

#if defined(_LIBCPP_VERSION)
#define FL_STANDARD_LIBRARY "libc++ " FL_TEXT(_LIBCPP_VERSION)
#elif defined(_GLIBCXX_RELEASE)
#if defined(_GLIBCXX_DEBUG)
#define FL_LIBRARY_MODE " debug"
#else
#define FL_LIBRARY_MODE ""
#endif
#define FL_STANDARD_LIBRARY "libstdc++ " FL_TEXT(_GLIBCXX_RELEASE) " cxx11=" FL_TEXT(_GLIBCXX_USE_CXX11_ABI) FL_LIBRARY_MODE
#else
#define FL_STANDARD_LIBRARY "unknown library"
#endif
#define FL_COMPILER_ABI FL_STANDARD_LIBRARY " " FL_TEXT(__SIZEOF_POINTER__) "-byte pointers"

#define FL_STAMP_TEXT FL_VERSION "|" FL_INTERFACE "|" FL_COMPILER_ABI
#define FL_PLUGIN_STAMP \
  extern "C" __attribute__((used, visibility("default"))) const char fedbits_plugin_stamp[] = "fedbits-plug-in{" FL_STAMP_TEXT "}"

namespace fl {

inline constexpr std::string_view kStampText = FL_STAMP_TEXT;

}  // namespace fl
