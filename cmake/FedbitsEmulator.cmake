# Programs of a build for another processor run under an emulator. CMAKE_CROSSCOMPILING_EMULATOR names it with its options, as in the preset
# `haswell`, and ctest starts test programs with it.
#
# The emulator does not follow a program to the processes that it starts: the kernel runs those on this machine's own processor. Tests that
# start the program therefore start FL_PROGRAM, which is a script for the emulator if there is one, and else the program itself.
set(FL_PROGRAM $<TARGET_FILE:fedbits_app>)
if(CMAKE_CROSSCOMPILING_EMULATOR)
  set(FL_PROGRAM ${CMAKE_BINARY_DIR}/emulated/fedbits)
endif()

# fedbits_emulated(TARGET [NAME]): writes emulated/NAME, a script that runs the program of TARGET under the emulator, if there is one.
function(fedbits_emulated target)
  set(name ${target})
  if(ARGN)
    set(name ${ARGN})
  endif()
  list(JOIN CMAKE_CROSSCOMPILING_EMULATOR "' '" emulator)
  if(emulator)
    file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/emulated/${name} CONTENT "#!/bin/sh\nexec '${emulator}' '$<TARGET_FILE:${target}>' \"$@\"\n"
      FILE_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
  endif()
endfunction()
