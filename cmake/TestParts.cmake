# SPDX-License-Identifier: BSD-2-Clause
# How does a program of GoogleTest become tests of CTest?
#
#   weft_gtest(NAME conformance.matching COMMAND weft_conformance --gtest_filter=... LABELS conformance
#              COST 50 [PARTS 2 [FIRST 1]] [ENVIRONMENT NAME=VALUE ...])
#
# makes one test of CTest, or NAME.1 to NAME.PARTS with a part of the program's tests each, by GoogleTest's sharding:
# for programs that take minutes under a sanitizer. FIRST leaves the other parts out. COST says which tests begin first, so that short ones fill the end.
function(weft_gtest)
  cmake_parse_arguments(T "" "NAME;LABELS;COST;PARTS;FIRST" "COMMAND;ENVIRONMENT" ${ARGN})
  set(seconds 300)
  if(WEFT_SANITIZE)
    set(seconds 600)
  endif()
  if(NOT T_PARTS)
    set(T_PARTS 1)
  endif()
  if(NOT T_FIRST)
    set(T_FIRST ${T_PARTS})
  endif()
  foreach(part RANGE 1 ${T_FIRST})
    set(test ${T_NAME})
    set(environment ${T_ENVIRONMENT})
    if(T_PARTS GREATER 1)
      math(EXPR index "${part} - 1")
      string(APPEND test ".${part}")
      list(APPEND environment GTEST_TOTAL_SHARDS=${T_PARTS} GTEST_SHARD_INDEX=${index})
    endif()
    add_test(NAME ${test} COMMAND ${T_COMMAND})
    set_tests_properties(${test} PROPERTIES TIMEOUT ${seconds} LABELS ${T_LABELS} COST ${T_COST} ENVIRONMENT "${environment}")
  endforeach()
endfunction()
