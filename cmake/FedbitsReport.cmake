# What `fedbits report` puts into its page: our own sources in scenarios/report/page, and Vega, which draws the charts.
#
# Vega comes from Debian's libjs-vega as one module per file. They are joined here into one script, each in a function that hands it the
# modules it needs; neither the modules nor the script enter the repository. Without the package everything builds, and the command says
# what is missing.

# Each before the ones that need it.
set(FL_VEGA_MODULES util time format loader dataflow scale canvas scenegraph expression statistics event-selector selection functions
  interpreter runtime parser view transforms view-transforms encode)

find_path(FL_VEGA_FOLDER vega-view.min.js PATHS /usr/share/javascript/vega NO_DEFAULT_PATH)
mark_as_advanced(FL_VEGA_FOLDER)
set(bundle ${CMAKE_CURRENT_BINARY_DIR}/report/vega.js)

# Writes a file that is not there or differs, so that nothing is built again for nothing. (file(CONFIGURE) would look for variables in it.)
function(fedbits_write out text)
  set(present "absent")
  if(EXISTS ${out})
    file(READ ${out} present)
  endif()
  if(NOT present STREQUAL text)
    file(WRITE ${out} "${text}")
  endif()
endfunction()

function(fedbits_bundle_vega out)
  set(text "")
  set(notice /usr/share/doc/libjs-vega/copyright)
  if(EXISTS ${notice})
    file(READ ${notice} copyright)
    string(REPLACE "*/" "* /" copyright "${copyright}")
    string(APPEND text "/*\n${copyright}*/\n")
  endif()
  string(APPEND text "var vega=(function(){const modules={},need=name=>modules[name];\n")
  foreach(module ${FL_VEGA_MODULES})
    file(READ ${FL_VEGA_FOLDER}/vega-${module}.min.js source)
    string(REGEX REPLACE "//# sourceMappingURL=[^\n]*" "" source "${source}")
    string(REPLACE "vega-selection" "vega-selections" name "vega-${module}")
    string(APPEND text "(function(exports,module,require){${source}\n})(modules[\"${name}\"]={},{},need);\n")
  endforeach()
  string(APPEND text "Object.assign(modules[\"vega-dataflow\"].transforms,modules[\"vega-transforms\"],modules[\"vega-view-transforms\"],"
    "modules[\"vega-encode\"]);return Object.assign({},...Object.values(modules));})();\n")
  fedbits_write(${out} "${text}")
endfunction()

if(FL_VEGA_FOLDER)
  fedbits_bundle_vega(${bundle})
else()
  message(NOTICE "Vega was not found: `fedbits report -o` will ask for it (Debian: libjs-vega, then configure and build again)")
  fedbits_write(${bundle} "")
endif()

# The glyphs that a chart's PDF embeds, from the fonts DejaVu. Without them the page offers no PDF.
find_file(FL_PDF_FONT DejaVuSans.ttf PATHS /usr/share/fonts/truetype/dejavu /usr/share/fonts/dejavu-sans-fonts NO_DEFAULT_PATH)
mark_as_advanced(FL_PDF_FONT)
set(pdf_glyphs ${CMAKE_CURRENT_BINARY_DIR}/report/pdf_glyphs.js)
if(FL_PDF_FONT)
  cmake_path(GET FL_PDF_FONT PARENT_PATH fonts)
  add_executable(font_glyphs ${CMAKE_CURRENT_SOURCE_DIR}/cmake/font_glyphs.cpp)
  add_custom_command(OUTPUT ${pdf_glyphs} DEPENDS font_glyphs VERBATIM
    COMMAND font_glyphs ${pdf_glyphs} regular ${FL_PDF_FONT} bold ${fonts}/DejaVuSans-Bold.ttf)
else()
  message(NOTICE "DejaVu's fonts were not found: the page of `fedbits report` saves no PDF (Debian: fonts-dejavu-core, then configure and build again)")
  fedbits_write(${pdf_glyphs} "const PDF_FONTS = {};\n")
endif()

# Our scripts in the order in which they are read, as lines for the assembler: what sections share, each section, and what fills them.
set(page ${CMAKE_CURRENT_SOURCE_DIR}/scenarios/report/page)
file(GLOB_RECURSE page_files CONFIGURE_DEPENDS ${page}/*)
file(GLOB sections CONFIGURE_DEPENDS ${page}/sections/*.js)
set(scripts "")
foreach(script ${page}/elements.js ${page}/scales.js ${page}/text.js ${pdf_glyphs} ${page}/pdf_fonts.js ${page}/pdf.js ${page}/figure.js ${page}/sections.js ${page}/charts.js ${page}/tables.js ${sections} ${page}/page.js)
  string(APPEND scripts ".incbin \"${script}\"\n")
endforeach()
set(script_list ${CMAKE_CURRENT_BINARY_DIR}/report/scripts.s)
fedbits_write(${script_list} "${scripts}")
set_source_files_properties(scenarios/report/assets.cpp PROPERTIES
  COMPILE_DEFINITIONS "FL_REPORT_PAGE=\"${page}\";FL_REPORT_SCRIPTS=\"${script_list}\";FL_REPORT_VEGA=\"${bundle}\""
  OBJECT_DEPENDS "${page_files};${script_list};${bundle};${pdf_glyphs}")
