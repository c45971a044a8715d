// DeviceSpec: where a kernel runs and a buffer lies.
// Included by plan/ and executor/. Knows no driver.
#ifndef SVOD_PLAN_DEVICE_H_
#define SVOD_PLAN_DEVICE_H_

#include <string>

#include "absl/strings/str_cat.h"

namespace svod {

// A kind of device and which one of it. On "cpu" the cores of a launch are calls of the kernel
// function; on any other kind the function is called once and launches by itself.
struct DeviceSpec {
  std::string kind = "cpu";
  int ordinal = 0;

  bool is_cpu() const { return kind == "cpu"; }
  bool operator==(const DeviceSpec&) const = default;
};

// "cpu", "cuda:1".
inline std::string ToString(const DeviceSpec& device) {
  return device.ordinal == 0 ? device.kind : absl::StrCat(device.kind, ":", device.ordinal);
}

}  // namespace svod

#endif  // SVOD_PLAN_DEVICE_H_
