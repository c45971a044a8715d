# Abseil: Status, containers, strings, flags. Targets: absl::*.
find_package(absl CONFIG REQUIRED)
if(DEFINED absl_VERSION AND absl_VERSION AND absl_VERSION VERSION_LESS 20220623)
  message(FATAL_ERROR "absl: found ${absl_VERSION}, expected 20220623 or later (libabsl-dev)")
endif()
