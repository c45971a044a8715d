// What most sources include, read once a target when SVOD_PRECOMPILE is on. Sources still include
// what they use: the release build is made without this header.
#ifndef SVOD_TOOLS_CMAKE_PRECOMPILED_H_
#define SVOD_TOOLS_CMAKE_PRECOMPILED_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

#endif  // SVOD_TOOLS_CMAKE_PRECOMPILED_H_
