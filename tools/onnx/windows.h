// What operators with windows share: kernel, strides, padding and dilations of a node.
// Included by the rows of convolutions and pooling. Must not know the graph.
#ifndef SVOD_TOOLS_ONNX_WINDOWS_H_
#define SVOD_TOOLS_ONNX_WINDOWS_H_

#include <optional>
#include <vector>

#include "tools/onnx/onnx_node.h"

namespace svod {

// A number for each spatial dimension; pads has those before every dimension, then those after.
struct OnnxWindows {
  std::vector<int64_t> kernel, strides, pads, dilations;
};

// Reads strides, dilations, pads and auto_pad for windows of this kernel over input 0,
// [N, C, spatial...]. Nothing after a failure.
std::optional<OnnxWindows> ReadWindows(OnnxNode& node, const std::vector<int64_t>& kernel);

// The same for windows of any tensor: strides, dilations and pads.
std::optional<OnnxWindows> ReadWindowsOf(OnnxNode& node, const std::vector<int64_t>& kernel);

// kernel_shape, or the dimensions of the weight from `first` on, which it must agree with.
std::vector<int64_t> KernelOf(OnnxNode& node, const UOp* weight, int64_t first);

}  // namespace svod

#endif  // SVOD_TOOLS_ONNX_WINDOWS_H_
