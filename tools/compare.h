// CompareTensors: whether a result is the expected one.
// Included by the run command. Knows nothing of programs.
#ifndef SVOD_TOOLS_COMPARE_H_
#define SVOD_TOOLS_COMPARE_H_

#include "absl/status/status.h"
#include "tools/tensor.h"

namespace svod {

struct Tolerance {
  double atol = 0;
  double rtol = 0;
};

// OK when types are equal and each element differs by at most atol + rtol * |expected|; with both 0
// bits are equal, but any NaN equals any NaN.
// Errors: FailedPrecondition with the number of differing elements and the first one's place and
// values; InvalidArgument when dtype or shape differ.
absl::Status CompareTensors(const Tensor& actual, const Tensor& expected,
                            const Tolerance& tolerance);

}  // namespace svod

#endif  // SVOD_TOOLS_COMPARE_H_
