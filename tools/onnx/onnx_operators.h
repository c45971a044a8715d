// The table of ONNX operators that the importer has: one row, one function.
// Included by the importer, its documentation and the rows' sources. Must not import anything.
#ifndef SVOD_TOOLS_ONNX_ONNX_OPERATORS_H_
#define SVOD_TOOLS_ONNX_ONNX_OPERATORS_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "tools/onnx/onnx_node.h"

namespace svod {

// The newest version of the standard operators whose schemas the rows were written from.
inline constexpr int64_t kMaxOnnxOpset = 22;
inline constexpr absl::string_view kMicrosoftDomain = "com.microsoft";

struct OnnxOperator {
  absl::string_view name;
  // Versions of the schema that the row reads, ascending. In force is the last that is not above
  // the opset that the model imports.
  std::vector<int64_t> versions;
  int min_inputs, max_inputs;  // -1: any number
  OnnxResults (*import)(OnnxNode& node);
  absl::string_view domain = "";  // the standard one
  absl::string_view limits = "";  // what of the operator is not supported, for people
  int64_t removed = 0;            // the first opset without the operator; 0: none
};

// Sorted by domain and name.
absl::Span<const OnnxOperator> OnnxOperators();
// Null if there is none. The domain "ai.onnx" is the standard one.
const OnnxOperator* FindOnnxOperator(absl::string_view domain, absl::string_view name);

// The rows by theme, each in a source of its own: rows_<theme>.cc.
using OnnxRows = std::vector<OnnxOperator>;
OnnxRows OnnxConstantRows();
OnnxRows OnnxControlRows();
OnnxRows OnnxEinsumRows();
OnnxRows OnnxElementwiseRows();
OnnxRows OnnxLossRows();
OnnxRows OnnxMicrosoftRows();
OnnxRows OnnxNetworkRows();
OnnxRows OnnxQuantizedRows();
OnnxRows OnnxRecurrentRows();
OnnxRows OnnxReductionRows();
OnnxRows OnnxResizeRows();
OnnxRows OnnxSamplingRows();
OnnxRows OnnxSelectionRows();
OnnxRows OnnxShapeRows();
OnnxRows OnnxSlicingRows();
OnnxRows OnnxSignalRows();
OnnxRows OnnxTextRows();
OnnxRows OnnxVisionRows();

// docs/onnx.md: the operators with their versions and limits.
std::string OnnxOperatorsPage();

}  // namespace svod

#endif  // SVOD_TOOLS_ONNX_ONNX_OPERATORS_H_
