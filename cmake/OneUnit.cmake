# SPDX-License-Identifier: BSD-2-Clause
# Which files are compiled together, as one unit?
#
# Most of the compiler's time goes into reading the same headers and making code of the same templates for
# each file anew. What only judges, and modules under a sanitizer, are therefore compiled many files at once.
# The preset `debug` compiles each file alone, and clang-tidy reads it so: one that lacks a header which
# another has is found there.

# All sources of `target` at once. What they hide in unnamed namespaces needs names that differ.
function(weft_in_one_unit target)
  if(NOT CMAKE_BUILD_TYPE STREQUAL "Debug")
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 0)
  endif()
endfunction()

# Sets `variable` to what is to be compiled instead of the given files: units of a dozen tests each. Tests
# like the same short names; so each file keeps its unnamed namespace to itself (only macros are common).
# The compiler and the tests name the files themselves. A file without a test is help for several: it stays
# as it is.
function(weft_tests_in_units variable)
  set(units "")
  set(tests "")
  foreach(file IN LISTS ARGN)
    cmake_path(ABSOLUTE_PATH file)
    file(STRINGS ${file} found REGEX "^(TYPED_)?TEST(_[FP])?\\(" LIMIT_COUNT 1)
    if(found AND NOT CMAKE_BUILD_TYPE STREQUAL "Debug")
      list(APPEND tests ${file})
    else()
      list(APPEND units ${file})
    endif()
  endforeach()
  set(script ${PROJECT_SOURCE_DIR}/cmake/join_tests.awk)
  set(number 0)
  while(tests)
    list(SUBLIST tests 0 12 files)
    list(REMOVE_ITEM tests ${files})
    math(EXPR number "${number} + 1")
    set(unit ${CMAKE_CURRENT_BINARY_DIR}/tests_${number}.cc)
    add_custom_command(OUTPUT ${unit} COMMAND awk -f ${script} ${files} > ${unit}
      DEPENDS ${script} ${files} VERBATIM)
    list(APPEND units ${unit})
  endwhile()
  set(${variable} ${units} PARENT_SCOPE)
endfunction()
