# Abseil: Status, containers, strings, flags. Targets: absl::*, and svod_archive::* for those that
# are archives as well.
find_package(absl CONFIG REQUIRED)
if(DEFINED absl_VERSION AND absl_VERSION AND absl_VERSION VERSION_LESS 20220623)
  message(FATAL_ERROR "absl: found ${absl_VERSION}, expected 20220623 or later (libabsl-dev)")
endif()

# Programs that ask for it (SVOD_STATIC_LIBRARIES, see third_party/llvm.cmake) take Abseil from
# archives: it comes as some fifty shared libraries, and to load those takes longer than to run a
# small program. svod_archive::X is absl::X with the archive beside the shared library.
get_property(imported DIRECTORY PROPERTY IMPORTED_TARGETS)
list(FILTER imported INCLUDE REGEX "^absl::")
set(SVOD_HAVE_STATIC_ABSL ON)
foreach(target IN LISTS imported)
  string(REPLACE "absl::" "svod_archive::" archive ${target})
  get_target_property(type ${target} TYPE)
  if(type STREQUAL "INTERFACE_LIBRARY")
    add_library(${archive} INTERFACE IMPORTED GLOBAL)
  else()
    get_target_property(location ${target} LOCATION)
    string(REGEX REPLACE "\\.so[.0-9]*$" ".a" location "${location}")
    if(NOT EXISTS "${location}" OR NOT location MATCHES "\\.a$")
      set(SVOD_HAVE_STATIC_ABSL OFF)
    endif()
    add_library(${archive} STATIC IMPORTED GLOBAL)
    set_target_properties(${archive} PROPERTIES IMPORTED_LOCATION "${location}")
  endif()
  foreach(property INTERFACE_COMPILE_DEFINITIONS INTERFACE_INCLUDE_DIRECTORIES
                   INTERFACE_LINK_LIBRARIES)
    get_target_property(value ${target} ${property})
    if(value)
      string(REPLACE "absl::" "svod_archive::" value "${value}")
      set_target_properties(${archive} PROPERTIES ${property} "${value}")
    endif()
  endforeach()
endforeach()
