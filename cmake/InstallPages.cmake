# Part of an installation: the pages of docs/ with their pictures and the study's files, from `pages_from` by way of `pages_by` to `pages_to` below
# the prefix. A link out of docs/ leads nowhere in an installed tree, so its text stays alone.
file(REMOVE_RECURSE "${pages_by}")
file(GLOB_RECURSE pages RELATIVE "${pages_from}" "${pages_from}/*.md")
foreach(page IN LISTS pages)
  string(REGEX REPLACE "[^/]+/" "../" out_of_docs "${page}")
  string(REGEX REPLACE "[^/]+$" "../" out_of_docs "${out_of_docs}")
  string(REPLACE "." "\\." out_of_docs "${out_of_docs}")
  file(READ "${pages_from}/${page}" text)
  string(REGEX REPLACE "\\[([^]]*)\\]\\(${out_of_docs}[^)]*\\)" "\\1" text "${text}")
  file(WRITE "${pages_by}/${page}" "${text}")
endforeach()
file(INSTALL DESTINATION "${CMAKE_INSTALL_PREFIX}/${pages_to}" TYPE DIRECTORY FILES "${pages_by}/")
file(INSTALL DESTINATION "${CMAKE_INSTALL_PREFIX}/${pages_to}" TYPE DIRECTORY FILES "${pages_from}/gallery" FILES_MATCHING PATTERN "*.svg")
file(INSTALL DESTINATION "${CMAKE_INSTALL_PREFIX}/${pages_to}" TYPE DIRECTORY FILES "${pages_from}/conjecture" FILES_MATCHING PATTERN "*.svg"
  PATTERN "*.toml" PATTERN "results" EXCLUDE)
file(INSTALL DESTINATION "${CMAKE_INSTALL_PREFIX}/${pages_to}" TYPE DIRECTORY FILES "${pages_from}/notebooks" FILES_MATCHING PATTERN "*.png")
