// .npy files: NumPy's array format, versions 1 to 3 (numpy.lib.format).
// Included by tensor I/O. Must not print or know plans.
#ifndef SVOD_TOOLS_NPY_H_
#define SVOD_TOOLS_NPY_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/tensor.h"

namespace svod {

// Reads an array; big-endian and Fortran-ordered files are put in order. bf16, which NumPy lacks,
// is the two-byte void type V2, as ml_dtypes writes it.
// Errors: NotFound; InvalidArgument "path: ..." for a file that is not .npy, is cut short, or holds
// a dtype that Svod lacks; ResourceExhausted as Tensor::Create.
absl::StatusOr<Tensor> ReadNpy(const std::string& path);

// Writes version 1.0, C order, little-endian. An existing file is replaced as a whole or not at
// all. Errors: PermissionDenied, NotFound or Internal with the path and the system's reason.
absl::Status WriteNpy(const Tensor& tensor, const std::string& path);

}  // namespace svod

#endif  // SVOD_TOOLS_NPY_H_
