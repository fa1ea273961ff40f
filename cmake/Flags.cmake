# SPDX-License-Identifier: BSD-2-Clause
# Which compiler flags does every file of Weft get?
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O3 -g1 -DNDEBUG")
set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O3 -g1 -DNDEBUG")

add_compile_options(-Wall -Wextra -Wswitch-enum)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # It is wrong about `"text" + string` (GCC bug 105651).
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 15)
  include_directories(SYSTEM ${PROJECT_SOURCE_DIR}/tools/ci/clang14)
endif()
if(WEFT_WERROR)
  add_compile_options(-Werror)
endif()
# Without this, gcc may not inline across functions that a shared object exports.
add_compile_options(-fno-semantic-interposition)
add_compile_definitions(_GNU_SOURCE)

if(WEFT_SANITIZE)
  add_compile_options(-fsanitize=${WEFT_SANITIZE} -fno-sanitize-recover=all
    -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${WEFT_SANITIZE})
endif()
if(WEFT_SANITIZE STREQUAL "thread" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_compile_options(-Wno-tsan)  # gcc's word on fences, which its TSan does not see
endif()
if(WEFT_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
if(WEFT_SANITIZE OR CMAKE_BUILD_TYPE STREQUAL "Debug")
  add_compile_definitions(_GLIBCXX_ASSERTIONS)
endif()

# Code that only judges need not be fast, but it is most of what is compiled: -O3 with everything that
# a debugger could ask for takes almost three times as long. What the sanitizers add to optimised code
# costs the compiler twice as much again, and a third of that is for undefined behaviour: which is
# looked for in what is judged.
function(weft_compile_quickly target)
  set(level -O1)
  if(WEFT_SANITIZE)
    set(level -O0 -fno-sanitize=undefined)
  endif()
  target_compile_options(${target} PRIVATE ${level} -g1)
endfunction()

# Most of what the compiler reads of a file is the standard library and, in a test, GoogleTest: they are
# parsed once for all targets of a kind, whose flags are those of the target that holds the headers,
# weft_KIND_headers. What is made of a file stays the same. (The presets `debug` and `lint` do without.)
function(weft_hold_headers kind)
  set(unit ${CMAKE_BINARY_DIR}/${kind}_headers.cc)
  file(CONFIGURE OUTPUT ${unit} CONTENT "")
  add_library(weft_${kind}_headers OBJECT ${unit})
  target_precompile_headers(weft_${kind}_headers PRIVATE <algorithm> <array> <atomic> <chrono> <deque>
    <functional> <map> <memory> <optional> <set> <string> <thread> <vector> ${ARGN})
endfunction()

function(weft_share_headers target kind)
  target_precompile_headers(${target} REUSE_FROM weft_${kind}_headers)
  # What gcc says of system headers, and is wrong about, it keeps to itself only where it reads them.
  target_compile_options(${target} PRIVATE -Wno-array-bounds -Wno-stringop-overflow)
endfunction()

function(weft_share_test_headers target)
  if(NOT TARGET weft_test_headers)
    weft_hold_headers(test <filesystem> <random> <gtest/gtest.h>)
    weft_compile_quickly(weft_test_headers)
    # As part of a program, like those that share it.
    set_target_properties(weft_test_headers PROPERTIES POSITION_INDEPENDENT_CODE OFF)
    target_compile_options(weft_test_headers PRIVATE -fPIE)
    target_link_libraries(weft_test_headers PRIVATE GTest::gtest)
  endif()
  weft_share_headers(${target} test)
endfunction()

# `clears_quickly` says whether the target is also given to weft_clear_quickly.
function(weft_share_module_headers target clears_quickly)
  set(kind module)
  if(clears_quickly)
    set(kind packet_module)
  endif()
  if(NOT TARGET weft_${kind}_headers)
    weft_hold_headers(${kind} <bit> <cstring> <mutex> <span> <unordered_map>)
    if(clears_quickly)
      weft_clear_quickly(weft_${kind}_headers)
    endif()
  endif()
  weft_share_headers(${target} ${kind})
endfunction()

# What is initialised on the way of a packet is a few hundred bytes: the `rep stos` that gcc takes for
# any processor needs longer to begin than it takes to store them.
function(weft_clear_quickly target)
  if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64" AND NOT WEFT_SANITIZE)
    target_compile_options(${target} PRIVATE -mtune=skylake)
  endif()
endfunction()

# Which headers a file has, ccache hears from the compiler: it need not preprocess the file itself.
find_program(WEFT_CCACHE ccache)
if(WEFT_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER
    env CCACHE_DEPEND=1 CCACHE_SLOPPINESS=pch_defines,time_macros ${WEFT_CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${CMAKE_CXX_COMPILER_LAUNCHER})
endif()
