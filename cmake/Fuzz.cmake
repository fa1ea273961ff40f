# SPDX-License-Identifier: BSD-2-Clause
# How is a fuzzer declared?
#
#   weft_fuzzer(NAME region_table MODULES memory SOURCES region_table_fuzz.cc)
#
# The sources define LLVMFuzzerTestOneInput. With the preset `fuzz` (clang) this makes the libFuzzer
# program bin/region_table_fuzz, which `./dev fuzz` runs with the seeds of fuzz/corpus/region_table.
# Other presets make nothing here: gcc has no libFuzzer.
if(WEFT_FUZZ)
  add_custom_target(weft_fuzzers)
endif()

function(weft_fuzzer)
  cmake_parse_arguments(F "" "NAME" "MODULES;SOURCES" ${ARGN})
  if(NOT WEFT_FUZZ)
    return()
  endif()
  add_executable(${F_NAME}_fuzz EXCLUDE_FROM_ALL ${F_SOURCES})
  foreach(module IN LISTS F_MODULES)
    target_link_libraries(${F_NAME}_fuzz PRIVATE weft_${module})
  endforeach()
  target_link_options(${F_NAME}_fuzz PRIVATE -fsanitize=fuzzer)
  add_dependencies(weft_fuzzers ${F_NAME}_fuzz)
endfunction()
