# What `cmake --install` puts where. With FL_SHARED also what plug-ins and programs are built with: the library, the public headers, the CMake package.
include(CMakePackageConfigHelpers)

file(RELATIVE_PATH libraries /${CMAKE_INSTALL_BINDIR} /${CMAKE_INSTALL_LIBDIR})
set_target_properties(fedbits_app PROPERTIES INSTALL_RPATH "$ORIGIN/${libraries}")
install(TARGETS fedbits_app RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(FILES ${FL_TEXTS}/fedbits.1.gz DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES ${FL_TEXTS}/fedbits DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES ${FL_TEXTS}/_fedbits DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions)
install(FILES ${FL_TEXTS}/fedbits.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/fedbits RENAME copyright)
install(CODE "set(pages_from \"${CMAKE_CURRENT_SOURCE_DIR}/docs\")
set(pages_by \"${CMAKE_BINARY_DIR}/package/doc\")
set(pages_to \"${CMAKE_INSTALL_DATADIR}/doc/fedbits\")")
install(SCRIPT cmake/InstallPages.cmake)
install(DIRECTORY scenarios/library/ DESTINATION ${CMAKE_INSTALL_DATADIR}/fedbits/scenarios)
install(DIRECTORY examples/ DESTINATION ${CMAKE_INSTALL_DATADIR}/fedbits/examples)

if(NOT FL_SHARED)
  return()
endif()

install(TARGETS fedbits EXPORT fedbits LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
foreach(header ${FL_PUBLIC_HEADERS} ${FL_PROGRAM_HEADERS})
  get_filename_component(folder ${header} DIRECTORY)
  install(FILES ${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/fedbits/${folder})
endforeach()

set(package ${CMAKE_INSTALL_LIBDIR}/cmake/fedbits)
install(EXPORT fedbits NAMESPACE fedbits:: FILE fedbits-targets.cmake DESTINATION ${package})
configure_package_config_file(cmake/fedbits-config.cmake.in ${CMAKE_BINARY_DIR}/package/fedbits-config.cmake INSTALL_DESTINATION ${package})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/package/fedbits-config-version.cmake COMPATIBILITY ExactVersion)
install(FILES ${CMAKE_BINARY_DIR}/package/fedbits-config.cmake ${CMAKE_BINARY_DIR}/package/fedbits-config-version.cmake
  cmake/FedbitsPlugin.cmake cmake/FedbitsCudaCopies.cmake DESTINATION ${package})
