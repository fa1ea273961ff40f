# SPDX-License-Identifier: BSD-2-Clause
# Where does each installed file go?
# The core lies in LIBDIR, the provider in LIBDIR/libfabric: libfabric's own provider directory
# when LIBDIR is that of the distribution. The libraries find the core through their RUNPATH.
if(TARGET weft-core)
  install(TARGETS weft-core LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
if(TARGET weft-fi)
  install(TARGETS weft-fi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/libfabric)
endif()
# Not in LIBDIR: there they would hide the libibverbs and librdmacm of the distribution from every program.
if(TARGET weft-rdmacm)
  install(TARGETS weft-verbs weft-rdmacm LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/weft)
endif()
# Beside libfabric's own headers, as those of its other providers.
install(FILES include/rdma/fi_ext_weft.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/rdma)
# Experimental verbs. Not in INCLUDEDIR itself: there the header would come before the distribution's
# in every program. The .pc file finds it from where it lies itself.
install(DIRECTORY include/ofed DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/weft)
configure_file(cmake/weft-ofed.pc.in weft-ofed.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/weft-ofed.pc DESTINATION ${CMAKE_INSTALL_DATADIR}/pkgconfig)
install(DIRECTORY man/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man3)
install(TARGETS weft RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(FILES README.md LICENSE TYPE DOC)
install(DIRECTORY docs/ TYPE DOC FILES_MATCHING PATTERN "*.md")
install(FILES tools/wireshark/weft.lua DESTINATION ${CMAKE_INSTALL_DATADIR}/weft)
install(DIRECTORY examples DESTINATION ${CMAKE_INSTALL_DOCDIR})
