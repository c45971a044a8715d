# Libraries that svod-bench runs beside Svod where they are installed, and does without where not:
# libopenblas-dev and libdnnl-dev. Targets: svod_openblas, svod_onednn.
find_path(SVOD_OPENBLAS_INCLUDE_DIR openblas_config.h
  PATH_SUFFIXES openblas-pthread openblas ${CMAKE_LIBRARY_ARCHITECTURE}/openblas-pthread)
find_library(SVOD_OPENBLAS_LIBRARY openblas PATH_SUFFIXES openblas-pthread)
if(SVOD_OPENBLAS_INCLUDE_DIR AND SVOD_OPENBLAS_LIBRARY)
  add_library(svod_openblas INTERFACE IMPORTED GLOBAL)
  target_include_directories(svod_openblas SYSTEM INTERFACE ${SVOD_OPENBLAS_INCLUDE_DIR})
  target_link_libraries(svod_openblas INTERFACE ${SVOD_OPENBLAS_LIBRARY})
endif()

find_path(SVOD_ONEDNN_INCLUDE_DIR dnnl.hpp)
find_library(SVOD_ONEDNN_LIBRARY dnnl)
if(SVOD_ONEDNN_INCLUDE_DIR AND SVOD_ONEDNN_LIBRARY)
  # The interface changed with version 3.
  file(STRINGS "${SVOD_ONEDNN_INCLUDE_DIR}/oneapi/dnnl/dnnl_version.h" SVOD_ONEDNN_MAJOR
       REGEX "^#define DNNL_VERSION_MAJOR +2$")
  if(SVOD_ONEDNN_MAJOR)
    add_library(svod_onednn INTERFACE IMPORTED GLOBAL)
    target_include_directories(svod_onednn SYSTEM INTERFACE ${SVOD_ONEDNN_INCLUDE_DIR})
    target_link_libraries(svod_onednn INTERFACE ${SVOD_ONEDNN_LIBRARY})
  endif()
endif()
