# SPDX-License-Identifier: BSD-2-Clause
# How is a module of Weft declared, and what may it depend on?
#
#   weft_module(NAME link_shm LAYER 3 DEPS base os memory link [EXTERNAL fmt::fmt] [THREADED]
#               [CLEARS_QUICKLY] [SOURCES ...] [HEADERS ...] [TESTS ...])
#
# makes the static library weft_link_shm (position independent) and, where there are tests, one
# GoogleTest program weft_link_shm_test. Files not named are found: *.cc is code, *_test.cc a test,
# *_support.cc code of the tests, include/<...>/*.h the public headers. A module that has no file yet is only entered in the table
# of ranks. DEPS must be of strictly lower rank: configuring stops otherwise. EXTERNAL names the
# libraries of others. THREADED labels the tests `threaded`: they run under ThreadSanitizer too.
# CLEARS_QUICKLY is for what is on the way of a packet (see Flags.cmake).

# Headers that tests and fuzzers of all modules share: no include directory of the product.
set(WEFT_TEST_HELPERS ${PROJECT_SOURCE_DIR}/src/os/testing)

set_property(GLOBAL PROPERTY WEFT_MODULES "")
set_property(GLOBAL PROPERTY WEFT_LAYER_TABLE "")

# Stops unless `dep` is a declared module of a rank lower than `layer`.
function(weft_require_downward name layer dep)
  get_property(known GLOBAL PROPERTY WEFT_MODULES)
  if(NOT dep IN_LIST known)
    message(FATAL_ERROR "module '${name}' depends on '${dep}', which is not declared yet "
      "(modules are added bottom-up)")
  endif()
  get_property(dep_layer GLOBAL PROPERTY WEFT_LAYER_OF_${dep})
  if(NOT dep_layer LESS layer)
    message(FATAL_ERROR "module '${name}' (layer ${layer}) may not depend on '${dep}' "
      "(layer ${dep_layer}): dependencies point strictly down")
  endif()
endfunction()

# Enters a module in the table that tools/ci/check_layers.py reads.
function(weft_enter_module name layer deps)
  get_property(known GLOBAL PROPERTY WEFT_MODULES)
  if(name IN_LIST known)
    message(FATAL_ERROR "module '${name}' is declared twice")
  endif()
  set_property(GLOBAL APPEND PROPERTY WEFT_MODULES ${name})
  set_property(GLOBAL PROPERTY WEFT_LAYER_OF_${name} ${layer})
  string(REPLACE ";" "," deps "${deps}")
  set_property(GLOBAL APPEND_STRING PROPERTY WEFT_LAYER_TABLE
    "${name}\t${layer}\t${CMAKE_CURRENT_SOURCE_DIR}\t${deps}\n")
endfunction()

# Fills what weft_module was not told: sources, headers and tests lying in the module's directory.
macro(weft_find_files)
  file(GLOB found_sources CONFIGURE_DEPENDS "*.cc")
  file(GLOB found_tests CONFIGURE_DEPENDS "*_test.cc" "*_support.cc")
  file(GLOB_RECURSE found_headers CONFIGURE_DEPENDS "include/*.h")
  file(GLOB private_headers CONFIGURE_DEPENDS "*.h")
  # *_bench.cc and *_fuzz.cc are programs of bench/ and fuzz/, never part of the library.
  list(FILTER found_sources EXCLUDE REGEX "_(test|support|bench|fuzz)\\.cc$")
  foreach(kind IN ITEMS SOURCES HEADERS TESTS)
    if(NOT M_${kind})
      string(TOLOWER ${kind} lower)
      set(M_${kind} ${found_${lower}})
    endif()
  endforeach()
endmacro()

# One program for all tests of a module, and one test of CTest: a process takes longer to begin than most tests do, above all under a
# sanitizer. It names each test that it begins, so that tools/ci/failures.py can name the one that crashes or hangs.
function(weft_module_tests name threaded tests)
  if(WEFT_SANITIZE STREQUAL "thread" AND NOT threaded)
    return()
  endif()
  set(program weft_${name}_test)
  weft_tests_in_units(units ${tests})
  add_executable(${program} ${units})
  target_include_directories(${program} PRIVATE ${CMAKE_CURRENT_SOURCE_DIR} ${WEFT_TEST_HELPERS})
  weft_compile_quickly(${program})
  weft_share_test_headers(${program})
  target_link_libraries(${program} PRIVATE weft_${name} GTest::gmock GTest::gtest_main)
  set(labels unit)
  if(threaded)
    set(labels unit_threaded)  # one word: `ctest -L threaded` and `-L unit` both match it
  endif()
  set(parts 1)
  if(WEFT_SANITIZE MATCHES "address" AND name MATCHES "^(cm|rdm)$")
    set(parts 2)  # simulations, which take two minutes there
  endif()
  weft_gtest(NAME unit.${name} COMMAND ${program} LABELS ${labels} COST 100 PARTS ${parts})
endfunction()

# Every header must compile alone. One with a source of the same name need not be looked at: that source
# reads it first.
function(weft_verify_headers name)
  set(units "")
  foreach(header IN LISTS ARGN)
    get_filename_component(stem ${header} NAME_WE)
    if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${stem}.cc)
      continue()
    endif()
    set(unit ${CMAKE_CURRENT_BINARY_DIR}/headers/${stem}.cc)
    file(CONFIGURE OUTPUT ${unit} CONTENT "#include \"${header}\"\n" @ONLY)
    list(APPEND units ${unit})
  endforeach()
  if(NOT units)
    return()
  endif()
  add_library(weft_${name}_lone_headers OBJECT EXCLUDE_FROM_ALL ${units})
  target_link_libraries(weft_${name}_lone_headers PRIVATE weft_${name})
  target_include_directories(weft_${name}_lone_headers PRIVATE ${CMAKE_CURRENT_SOURCE_DIR} ${WEFT_TEST_HELPERS})
  target_compile_options(weft_${name}_lone_headers PRIVATE -O0 -g0)
  add_dependencies(weft_headers weft_${name}_lone_headers)
endfunction()

function(weft_module)
  cmake_parse_arguments(M "THREADED;CLEARS_QUICKLY" "NAME;LAYER" "DEPS;EXTERNAL;SOURCES;HEADERS;TESTS" ${ARGN})
  if(M_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "module '${M_NAME}': unknown words ${M_UNPARSED_ARGUMENTS}")
  endif()
  foreach(dep IN LISTS M_DEPS)
    weft_require_downward(${M_NAME} ${M_LAYER} ${dep})
  endforeach()
  weft_enter_module(${M_NAME} ${M_LAYER} "${M_DEPS}")
  weft_find_files()
  if(NOT M_SOURCES AND NOT M_HEADERS AND NOT private_headers)
    return()
  endif()

  set(scope PUBLIC)
  if(M_SOURCES)
    add_library(weft_${M_NAME} STATIC ${M_SOURCES})
    if(M_CLEARS_QUICKLY)
      weft_clear_quickly(weft_${M_NAME})
    endif()
    # What users get is made file by file: what is inlined there is what its author sees.
    if(WEFT_SANITIZE)
      weft_in_one_unit(weft_${M_NAME})
    else()
      weft_share_module_headers(weft_${M_NAME} ${M_CLEARS_QUICKLY})
    endif()
  else()
    add_library(weft_${M_NAME} INTERFACE)  # headers only, so far
    set(scope INTERFACE)
  endif()
  if(M_HEADERS)
    target_sources(weft_${M_NAME} ${scope} FILE_SET HEADERS BASE_DIRS include FILES ${M_HEADERS})
  endif()
  foreach(dep IN LISTS M_DEPS)
    if(TARGET weft_${dep})
      target_link_libraries(weft_${M_NAME} ${scope} weft_${dep})
    endif()
  endforeach()
  target_link_libraries(weft_${M_NAME} ${scope} ${M_EXTERNAL})
  set_property(GLOBAL APPEND PROPERTY WEFT_EXTERNAL_OF_${M_NAME} ${M_EXTERNAL})

  if(M_TESTS AND WEFT_BUILD_TESTS)
    weft_module_tests(${M_NAME} ${M_THREADED} "${M_TESTS}")
  endif()
  weft_verify_headers(${M_NAME} ${M_HEADERS} ${private_headers})
endfunction()

# Writes the table of ranks; call once, after the last module.
function(weft_write_layer_table file)
  get_property(table GLOBAL PROPERTY WEFT_LAYER_TABLE)
  file(CONFIGURE OUTPUT ${file} CONTENT "${table}" @ONLY)
endfunction()
