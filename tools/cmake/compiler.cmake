# Flags that every first-party target is built with, gathered in the target svod_flags.

# The launcher is set here and not in the presets, so that a machine without ccache works too.
# The base directory lets work trees share results.
find_program(SVOD_CCACHE ccache)
if(SVOD_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_C_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1
      ${SVOD_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_C_COMPILER_LAUNCHER})
endif()

add_library(svod_flags INTERFACE)
target_compile_options(svod_flags INTERFACE
  -Wall -Wextra -Wswitch-enum
  # Profilers walk frames through libsvod into kernels.
  -fno-omit-frame-pointer
  # The reference interpreter rounds once an op; a fused multiply-add here would change bits.
  -ffp-contract=off
  # No path of the build machine in a message or an object file.
  -ffile-prefix-map=${PROJECT_SOURCE_DIR}/=)
if(SVOD_WERROR)
  target_compile_options(svod_flags INTERFACE -Werror)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # g++ 12 sees overlapping copies in std::string's operator+ that are not there.
  target_compile_options(svod_flags INTERFACE $<$<COMPILE_LANGUAGE:CXX>:-Wno-restrict>)
endif()
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  # clang warns of what std::stable_sort calls inside libstdc++ 12; g++ watches our own calls.
  target_compile_options(svod_flags INTERFACE -Wno-deprecated-declarations)
endif()

if(SVOD_SANITIZE)
  target_compile_options(svod_flags INTERFACE
    -fsanitize=${SVOD_SANITIZE} -fno-sanitize-recover=all)
  target_link_options(svod_flags INTERFACE -fsanitize=${SVOD_SANITIZE})
  if(SVOD_SANITIZE MATCHES "undefined" AND CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    # Clang's check reads a signature in front of the callee, which generated code does not have.
    target_compile_options(svod_flags INTERFACE -fno-sanitize=function)
  endif()
endif()

# lld links 15 times faster than GNU ld. gcc looks for plain "ld.lld", hence the -B.
find_program(SVOD_LLD ld.lld HINTS ${LLVM_TOOLS_BINARY_DIR})
if(SVOD_LLD)
  cmake_path(GET SVOD_LLD PARENT_PATH SVOD_LLD_DIR)
  target_link_options(svod_flags INTERFACE -fuse-ld=lld -B${SVOD_LLD_DIR})
endif()
