// Sampler: reads images between their pixels.
// Included by the rows of sampling operators. Must not know nodes of models.
#ifndef SVOD_TOOLS_ONNX_SAMPLER_H_
#define SVOD_TOOLS_ONNX_SAMPLER_H_

#include <vector>

#include "ir/operators/expression.h"

namespace svod {

// What stands outside an image: 0, its nearest pixel, or its mirror image.
enum class SamplePadding : uint8_t { kZeros, kBorder, kReflection };

// Images [N, C, i...] of one to three spatial dimensions. Places are tensors [N, P] of floats, one
// for each spatial dimension in the images' order, in pixels: 0 is the centre of the first one.
class Sampler {
 public:
  // `align_corners`: mirrors stand at the outer pixels' centres, rather than at their edges.
  Sampler(TensorBuilder& builder, const UOp* images, SamplePadding padding, bool align_corners);

  // The size of spatial dimension `axis` as a number like `like`.
  Expression Size(size_t axis, Expression like) const;
  // A place brought inside, as the padding says; with zeros it stays where it is.
  Expression Inside(Expression place, size_t axis) const;
  // [N, C, P]: the pixels at places that are whole; 0 outside.
  Expression At(const std::vector<Expression>& places) const;
  // [N, C, P]: linear between the pixels around the places.
  Expression Linear(const std::vector<Expression>& places) const;
  // [N, C, P]: cubic, with the coefficient that images are resized with (-0.75).
  Expression Cubic(const std::vector<Expression>& places) const;

 private:
  template <typename Weight>
  Expression WeightedSum(const std::vector<Expression>& places, int64_t first, int64_t taps,
                         Weight weight) const;

  TensorBuilder& builder_;
  const SamplePadding padding_;
  const bool align_corners_;
  const UOp* flat_;    // [N, C, pixels]
  const UOp* images_;  // whose dtype results have
  std::vector<const UOp*> sizes_;
};

}  // namespace svod

#endif  // SVOD_TOOLS_ONNX_SAMPLER_H_
