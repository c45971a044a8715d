# xxHash: the content hash of nodes, the same on every machine. Target: svod_xxhash.
# Used header-only (XXH_INLINE_ALL), so that no embedder has to carry one more shared library.
find_path(SVOD_XXHASH_INCLUDE_DIR xxhash.h)
if(NOT SVOD_XXHASH_INCLUDE_DIR)
  message(FATAL_ERROR "xxhash: xxhash.h not found (libxxhash-dev)")
endif()
file(STRINGS "${SVOD_XXHASH_INCLUDE_DIR}/xxhash.h" SVOD_XXHASH_MINOR
     REGEX "^#define XXH_VERSION_MINOR +[0-9]+")
# 0.8 is the release from which the XXH3 results are frozen; earlier ones hash differently.
if(NOT SVOD_XXHASH_MINOR MATCHES "([0-9]+)$" OR CMAKE_MATCH_1 LESS 8)
  message(FATAL_ERROR "xxhash: ${SVOD_XXHASH_INCLUDE_DIR}/xxhash.h is older than 0.8")
endif()
add_library(svod_xxhash INTERFACE IMPORTED GLOBAL)
target_include_directories(svod_xxhash SYSTEM INTERFACE ${SVOD_XXHASH_INCLUDE_DIR})
target_compile_definitions(svod_xxhash INTERFACE XXH_INLINE_ALL)
