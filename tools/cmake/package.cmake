# The shared library `svod`, made of the folders' objects, and the CMake package around it.

get_property(folders GLOBAL PROPERTY SVOD_FOLDERS_WITH_SOURCES)
if(NOT folders)
  return()
endif()
get_property(public_libraries GLOBAL PROPERTY SVOD_PUBLIC_LIBRARIES)
get_property(private_libraries GLOBAL PROPERTY SVOD_PRIVATE_LIBRARIES)
list(REMOVE_DUPLICATES public_libraries)
list(REMOVE_DUPLICATES private_libraries)

set(objects "")
foreach(folder IN LISTS folders)
  list(APPEND objects $<TARGET_OBJECTS:svod_${folder}>)
endforeach()

add_library(svod SHARED ${objects})
add_library(svod::svod ALIAS svod)
set_target_properties(svod PROPERTIES
  LINKER_LANGUAGE CXX
  VERSION ${PROJECT_VERSION}
  SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
target_compile_features(svod INTERFACE cxx_std_20)
target_link_libraries(svod PUBLIC ${public_libraries})
# BUILD_INTERFACE keeps LLVM and TBB out of the exported target: embedders need neither package.
foreach(library svod_flags ${private_libraries})
  target_link_libraries(svod PRIVATE $<BUILD_INTERFACE:${library}>)
endforeach()
if(NOT SVOD_SANITIZE)
  target_link_options(svod PRIVATE -Wl,-z,defs)
endif()

# Two include directories: headers include each other from the root ("ir/uop.h"), embedders say
# "svod/svod.h" or "svod/ir/uop.h".
set(headers_dir ${CMAKE_INSTALL_INCLUDEDIR}/svod)
target_include_directories(svod PUBLIC
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>
  $<INSTALL_INTERFACE:${headers_dir}>)

foreach(folder ir jit plan executor)
  get_property(listed GLOBAL PROPERTY SVOD_HAS_PUBLIC_HEADERS_${folder})
  if(listed)
    get_property(headers GLOBAL PROPERTY SVOD_PUBLIC_HEADERS_${folder})
    list(TRANSFORM headers PREPEND "${PROJECT_SOURCE_DIR}/${folder}/")
    install(FILES ${headers} DESTINATION ${headers_dir}/${folder})
  else()
    install(DIRECTORY ${PROJECT_SOURCE_DIR}/${folder} DESTINATION ${headers_dir}
      FILES_MATCHING PATTERN "*.h" PATTERN "*.def" PATTERN "executor/svod.h" EXCLUDE)
  endif()
endforeach()
if(EXISTS ${PROJECT_SOURCE_DIR}/executor/svod.h)
  install(FILES ${PROJECT_SOURCE_DIR}/executor/svod.h DESTINATION ${headers_dir})
endif()

include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/Svod)
configure_package_config_file(tools/cmake/SvodConfig.cmake.in
  ${CMAKE_BINARY_DIR}/SvodConfig.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/SvodConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(TARGETS svod EXPORT SvodTargets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT SvodTargets NAMESPACE svod:: DESTINATION ${package_dir})
install(FILES ${CMAKE_BINARY_DIR}/SvodConfig.cmake ${CMAKE_BINARY_DIR}/SvodConfigVersion.cmake
  DESTINATION ${package_dir})
