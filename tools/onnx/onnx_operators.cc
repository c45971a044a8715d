#include "tools/onnx/onnx_operators.h"

#include <algorithm>
#include <tuple>

namespace svod {
namespace {

auto KeyOf(const OnnxOperator& op) { return std::tuple(op.domain, op.name); }

OnnxRows AllRows() {
  OnnxRows all;
  for (OnnxRows (*rows)() :
       {OnnxConstantRows, OnnxControlRows, OnnxEinsumRows, OnnxElementwiseRows, OnnxLossRows,
        OnnxMicrosoftRows, OnnxNetworkRows, OnnxQuantizedRows, OnnxRecurrentRows, OnnxReductionRows,
        OnnxResizeRows, OnnxSamplingRows, OnnxSelectionRows, OnnxShapeRows, OnnxSignalRows,
        OnnxSlicingRows, OnnxTextRows, OnnxVisionRows}) {
    OnnxRows some = rows();
    all.insert(all.end(), some.begin(), some.end());
  }
  std::sort(all.begin(), all.end(),
            [](const OnnxOperator& a, const OnnxOperator& b) { return KeyOf(a) < KeyOf(b); });
  return all;
}

}  // namespace

absl::Span<const OnnxOperator> OnnxOperators() {
  static const auto* const kRows = new OnnxRows(AllRows());
  return *kRows;
}

const OnnxOperator* FindOnnxOperator(absl::string_view domain, absl::string_view name) {
  if (domain == "ai.onnx") domain = "";
  std::tuple<absl::string_view, absl::string_view> key(domain, name);
  absl::Span<const OnnxOperator> rows = OnnxOperators();
  auto row = std::lower_bound(rows.begin(), rows.end(), key,
                              [](const OnnxOperator& a, const auto& k) { return KeyOf(a) < k; });
  return row != rows.end() && KeyOf(*row) == key ? &*row : nullptr;
}

}  // namespace svod
