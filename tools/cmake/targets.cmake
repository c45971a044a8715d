# The functions that the folders' CMakeLists.txt call.

# svod_precompile(<target> [header...])
#
# With SVOD_PRECOMPILE, reads what most sources include, and the headers, once for the target. For
# builds that are made from nothing each time: ccache finds less with it.
function(svod_precompile target)
  if(SVOD_PRECOMPILE)
    list(TRANSFORM ARGN REPLACE "(.+)" "$<$<COMPILE_LANGUAGE:CXX>:\\1>" OUTPUT_VARIABLE headers)
    target_precompile_headers(${target} PRIVATE
      $<$<COMPILE_LANGUAGE:CXX>:${PROJECT_SOURCE_DIR}/tools/cmake/precompiled.h> ${headers})
  endif()
endfunction()

# svod_link_libraries(<target> <PUBLIC|PRIVATE> lib...)
#
# target_link_libraries, where Abseil's libraries are archives in programs that ask for it.
function(svod_link_libraries target scope)
  set(libraries ${ARGN})
  if(SVOD_HAVE_STATIC_ABSL)
    list(TRANSFORM libraries REPLACE "^absl::(.*)$"
      "$<IF:$<BOOL:$<TARGET_PROPERTY:SVOD_STATIC_LIBRARIES>>,svod_archive::\\1,absl::\\1>")
  endif()
  target_link_libraries(${target} ${scope} ${libraries})
endfunction()

# svod_library(<folder> SOURCES a.cc b.cc [PUBLIC lib...] [PRIVATE lib...]
#              [PUBLIC_HEADERS a.h b.h])
#
# Makes the static library svod_<folder> and notes what the shared library `svod` needs of it.
# PUBLIC_HEADERS names the headers to install, relative to the folder; without it all are.
function(svod_library folder)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;PUBLIC;PRIVATE;PUBLIC_HEADERS")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "svod_library(${folder}): unknown argument ${arg_UNPARSED_ARGUMENTS}")
  endif()
  set(target svod_${folder})
  if(arg_SOURCES)
    add_library(${target} STATIC ${arg_SOURCES})
    svod_link_libraries(${target} PUBLIC ${arg_PUBLIC})
    svod_link_libraries(${target} PRIVATE svod_flags ${arg_PRIVATE})
    target_include_directories(${target} PUBLIC ${PROJECT_SOURCE_DIR})
    target_compile_definitions(${target} PRIVATE SVOD_VERSION="${PROJECT_VERSION}")
    svod_precompile(${target})
    set_property(GLOBAL APPEND PROPERTY SVOD_FOLDERS_WITH_SOURCES ${folder})
  else()
    add_library(${target} INTERFACE)
    target_link_libraries(${target} INTERFACE ${arg_PUBLIC})
    target_include_directories(${target} INTERFACE ${PROJECT_SOURCE_DIR})
  endif()
  foreach(library IN LISTS arg_PRIVATE)
    set_property(GLOBAL APPEND PROPERTY SVOD_PRIVATE_LIBRARIES ${library})
  endforeach()
  foreach(library IN LISTS arg_PUBLIC)
    if(NOT library MATCHES "^svod_")
      set_property(GLOBAL APPEND PROPERTY SVOD_PUBLIC_LIBRARIES ${library})
    endif()
  endforeach()
  if(DEFINED arg_PUBLIC_HEADERS)
    set_property(GLOBAL PROPERTY SVOD_PUBLIC_HEADERS_${folder} ${arg_PUBLIC_HEADERS})
    set_property(GLOBAL PROPERTY SVOD_HAS_PUBLIC_HEADERS_${folder} ON)
  endif()
endfunction()

# svod_executable(<name> SOURCES a.cc [LIBRARIES lib...])
#
# Makes a program in <build>/bin.
function(svod_executable name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LIBRARIES")
  add_executable(${name} ${arg_SOURCES})
  svod_link_libraries(${name} PRIVATE svod_flags ${arg_LIBRARIES})
  target_compile_definitions(${name} PRIVATE SVOD_VERSION="${PROJECT_VERSION}")
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
  install(TARGETS ${name} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endfunction()

# svod_unit_test(<folder> [TSAN] SOURCES a_test.cc b_test.cc LIBRARIES lib...)
#
# Makes the gtest program svod_<folder>_test and one ctest test for each of its tests. A test has
# one label, to be matched by its parts: "unit.<folder>", then ".tsan" when the test's full name
# contains "Concurrency" (TSAN: for all), then ".slow" when it contains "Slow".
function(svod_unit_test folder)
  cmake_parse_arguments(PARSE_ARGV 1 arg "TSAN" "" "SOURCES;LIBRARIES")
  if(NOT arg_SOURCES)
    return()
  endif()
  set(target svod_${folder}_test)
  add_executable(${target} ${arg_SOURCES})
  target_link_libraries(${target} PRIVATE svod_flags ${arg_LIBRARIES} GTest::gmock_main)
  target_compile_definitions(${target} PRIVATE SVOD_TEST_DATA="${PROJECT_SOURCE_DIR}/tests/data")
  svod_precompile(${target} <gmock/gmock.h> <gtest/gtest.h>)
  add_dependencies(svod_unit_tests ${target})

  # Lists do not survive the way into the generated test files, hence the one label.
  set(label unit.${folder})
  set(concurrency_label ${label}.tsan)
  if(arg_TSAN)
    set(label ${concurrency_label})
  endif()
  gtest_discover_tests(${target} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
    TEST_PREFIX "${folder}/" TEST_FILTER "-*Slow*:*Concurrency*"
    PROPERTIES LABELS ${label})
  gtest_discover_tests(${target} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
    TEST_PREFIX "${folder}/" TEST_FILTER "*Concurrency*-*Slow*"
    PROPERTIES LABELS ${concurrency_label})
  gtest_discover_tests(${target} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
    TEST_PREFIX "${folder}/" TEST_FILTER "*Slow*"
    PROPERTIES LABELS ${label}.slow TIMEOUT 36000)
endfunction()
