# SPDX-License-Identifier: BSD-2-Clause
# How do modules (static libraries) become the shared objects that programs load?
#
#   weft_shared_object(NAME weft-core MODULES base os ... EXPORTS file.map [LINK ...] [PLUGIN]
#                      [OUTPUT ibverbs SOVERSION 1 FOLDER verbs])
#
# PLUGIN is for what others load with dlopen(3). OUTPUT, SOVERSION and FOLDER are for a library that takes the
# place of another one: lib/verbs/libibverbs.so.1 of the build, and a link without the number beside it; the
# core lies in the folder above, also when installed. Every object file of the named modules goes in, used
# or not. All symbols must resolve at link time. Nothing is made while no module has code.
function(weft_shared_object)
  cmake_parse_arguments(S "PLUGIN" "NAME;EXPORTS;OUTPUT;SOVERSION;FOLDER" "MODULES;LINK" ${ARGN})
  set(objects "")
  set(externals "")
  foreach(module IN LISTS S_MODULES)
    if(NOT TARGET weft_${module})
      continue()
    endif()
    get_property(external GLOBAL PROPERTY WEFT_EXTERNAL_OF_${module})
    list(APPEND externals ${external})
    get_target_property(type weft_${module} TYPE)
    if(type STREQUAL "STATIC_LIBRARY")
      list(APPEND objects $<TARGET_OBJECTS:weft_${module}>)
    endif()
  endforeach()
  if(NOT objects)
    return()
  endif()
  if(S_PLUGIN)
    add_library(${S_NAME} MODULE ${objects})
    # Beside the core in the build tree, below it when installed. Valgrind reports the 16-byte reads
    # of ld.so's strncmp at the last $ unless 16 bytes follow it: hence the closing slash.
    set_target_properties(${S_NAME} PROPERTIES
      BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN:$ORIGIN/..:$ORIGIN/../weft/")
  else()
    add_library(${S_NAME} SHARED ${objects})
  endif()
  if(S_FOLDER)
    set_target_properties(${S_NAME} PROPERTIES OUTPUT_NAME ${S_OUTPUT} SOVERSION ${S_SOVERSION}
      LIBRARY_OUTPUT_DIRECTORY ${CMAKE_LIBRARY_OUTPUT_DIRECTORY}/${S_FOLDER}
      BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH "$ORIGIN/..")
  endif()
  list(REMOVE_DUPLICATES externals)
  target_link_libraries(${S_NAME} PRIVATE ${S_LINK} ${externals})
  # Calls inside the object bind to it: no jump through the PLT, nothing to interpose. The code stays
  # where it is, though libfabric unloads it at exit: a thread of it may still run then.
  target_link_options(${S_NAME} PRIVATE
    LINKER:--no-undefined LINKER:--as-needed LINKER:-Bsymbolic-functions LINKER:-z,now
    LINKER:-z,nodelete
    LINKER:--version-script=${S_EXPORTS})
  set_target_properties(${S_NAME} PROPERTIES
    LINKER_LANGUAGE CXX LINK_DEPENDS ${S_EXPORTS})
endfunction()
