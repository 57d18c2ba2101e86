# `cpack` in a build folder makes a Debian package of what is installed; its dependencies are those that dpkg-shlibdeps finds. The package
# says which processors it needs: build it with the preset "portable" for others than this machine's.
if(FL_LEVEL_NAME STREQUAL FL_PORTABLE_LEVEL)
  set(FL_PACKAGE_NEEDS "Needs a processor of the level x86-64-v3 (2013 or later).")
else()
  set(FL_PACKAGE_NEEDS "Needs a processor like ${FL_LEVEL_NAME}: this package was not built for others.")
endif()
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME fedbits)
set(CPACK_PACKAGE_CONTACT "fedbits maintainers <maintainers@fedbits.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "federated-learning simulator that counts every bit")
set(CPACK_PACKAGE_DESCRIPTION "fedbits simulates a server and many clients whose data differ. Clients compress what they send, with error
feedback; the length of every message is exact. ${FL_PACKAGE_NEEDS}
Headers and a CMake package for plug-ins are included.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_BINARY_DIR})
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "g++, cmake, librandom123-dev, python3-matplotlib")
include(CPack)
