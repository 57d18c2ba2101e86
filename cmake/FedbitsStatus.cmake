# What the page of `--status` is made of: our own sources in scenarios/report/status, and the style and the first scripts of the report.
set(status_page ${CMAKE_CURRENT_SOURCE_DIR}/scenarios/report/status)
file(GLOB status_files CONFIGURE_DEPENDS ${status_page}/*)
set(status_styles ${page}/style.css ${status_page}/status.css)
set(status_scripts ${page}/elements.js ${page}/scales.js ${status_page}/chart.js ${status_page}/parts.js ${status_page}/serve.js ${status_page}/sweep.js ${status_page}/page.js)
foreach(kind styles scripts)
  set(lines "")
  foreach(file ${status_${kind}})
    string(APPEND lines ".incbin \"${file}\"\n")
  endforeach()
  fedbits_write(${CMAKE_CURRENT_BINARY_DIR}/report/status_${kind}.s "${lines}")
endforeach()
set(status_lists ${CMAKE_CURRENT_BINARY_DIR}/report/status_styles.s ${CMAKE_CURRENT_BINARY_DIR}/report/status_scripts.s)
set_source_files_properties(status/status_page.cpp PROPERTIES
  COMPILE_DEFINITIONS "FL_STATUS_HTML=\"${status_page}/page.html\";FL_STATUS_STYLES=\"${CMAKE_CURRENT_BINARY_DIR}/report/status_styles.s\";FL_STATUS_SCRIPTS=\"${CMAKE_CURRENT_BINARY_DIR}/report/status_scripts.s\""
  OBJECT_DEPENDS "${status_files};${page}/style.css;${page}/elements.js;${page}/scales.js;${status_lists}")
