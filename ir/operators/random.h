// Random numbers, as a function of a key and a counter: the same bits everywhere, in any order.
// Included by importers, embedders and the operator table. Must hold no state.
#ifndef SVOD_IR_OPERATORS_RANDOM_H_
#define SVOD_IR_OPERATORS_RANDOM_H_

#include <cstdint>
#include <utility>

#include "ir/tensor_builder.h"

namespace svod {

// The two words of the block cipher Threefry-2x32 with 20 rounds, elementwise over u32 tensors that
// broadcast. Source: Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3",
// SC 2011.
std::pair<const UOp*, const UOp*> Threefry2x32(TensorBuilder& builder, const UOp* key0,
                                               const UOp* key1, const UOp* counter0,
                                               const UOp* counter1);

// Each takes a key, u32[2]; element i in row-major order comes of the block whose counter is i (the
// low 32 bits first). Different keys give independent numbers. Null after a failure, which the
// builder holds.

// Bits: u32 has the block's first word, u64 both (the first the lower), u8 and u16 the low bits of
// the first.
const UOp* RandomBits(TensorBuilder& builder, const UOp* key, ShapeSpan shape,
                      DType dtype = Scalar::kU32);
// Floats in [low, high): low + u * (high - low), u a multiple of 2^-24 (f64: 2^-53). f16 and bf16
// are rounded from f32, and may so reach high.
const UOp* RandomUniform(TensorBuilder& builder, const UOp* key, ShapeSpan shape, double low = 0,
                         double high = 1, DType dtype = Scalar::kF32);
// Floats of the normal distribution: Box and Muller's transform of the block's two words, so that
// values reach 6.6 standard deviations.
const UOp* RandomNormal(TensorBuilder& builder, const UOp* key, ShapeSpan shape, double mean = 0,
                        double deviation = 1, DType dtype = Scalar::kF32);

}  // namespace svod

#endif  // SVOD_IR_OPERATORS_RANDOM_H_
