#include "ir/operators/random.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "ir/operators/compose.h"

namespace svod {
namespace {

// Rotations of rounds 0 to 7, which repeat, and the constant that makes the third key word: the
// paper's, for two words of 32 bits.
constexpr int kRotations[8] = {13, 15, 26, 6, 17, 29, 16, 24};
constexpr int64_t kParity = 0x1BD11BDA;
constexpr int kNumRounds = 20;

struct Words {
  Expression first, second;
};

Expression Number(TensorBuilder& builder, int64_t value) {
  return {builder, builder.ConstInt(Scalar::kU32, value)};
}

Expression RotateLeft(Expression x, int distance) {
  TensorBuilder& b = x.builder();
  return Or(x.Of(Op::kShl, Number(b, distance)), x.Of(Op::kShr, Number(b, 32 - distance)));
}

Words Threefry(TensorBuilder& builder, Words key, Words counter) {
  Expression parity = key.first.Of(Op::kXor, key.second).Of(Op::kXor, Number(builder, kParity));
  Expression keys[3] = {key.first, key.second, parity};
  Expression x = counter.first + keys[0], y = counter.second + keys[1];
  for (int round = 0; round < kNumRounds; ++round) {
    x = x + y;
    y = RotateLeft(y, kRotations[round % 8]).Of(Op::kXor, x);
    if (round % 4 == 3) {
      int injection = round / 4 + 1;
      x = x + keys[injection % 3];
      y = y + keys[(injection + 1) % 3] + Number(builder, injection);
    }
  }
  return {x, y};
}

// The blocks' words for every element of a tensor of `shape`.
std::optional<Words> WordsOf(TensorBuilder& builder, absl::string_view op, const UOp* key,
                             ShapeSpan shape) {
  if (!IsReady(builder, op, {key}) || !IsReady(builder, op, shape)) return std::nullopt;
  ShapeSpan key_shape = builder.ShapeOf(key);
  if (key->dtype() != Scalar::kU32 || key_shape.size() != 1 || !IsConstInt(key_shape[0], 2)) {
    FailOperator(builder, op, "key", ShapeToString(key->dtype(), key_shape), "u32[2]");
    return std::nullopt;
  }
  auto key_word = [&](int64_t i) {
    const UOp* one = builder.ShrinkAxis(key, 0, builder.Index(i), builder.Index(1));
    return Expression(builder, builder.Reshape(one, Shape()));
  };
  const UOp* size = builder.dims().Product(shape);
  const UOp* line = builder.Arange(size, Scalar::kU64);
  Expression counter(builder, builder.Reshape(line, shape));
  const UOp* low = builder.Cast(counter, Scalar::kU32);
  const UOp* high = builder.Cast(counter.Of(Op::kShr, 32), Scalar::kU32);
  return Threefry(builder, {key_word(0), key_word(1)},
                  {Expression(builder, low), Expression(builder, high)});
}

Expression Wide64(Expression word) {
  return {word.builder(), word.builder().Cast(word, Scalar::kU64)};
}

Expression Joined(Words words) {
  return Or(Wide64(words.first), Wide64(words.second).Of(Op::kShl, 32));
}

Expression AsFloat(Expression word, DType dtype) {
  return {word.builder(), word.builder().Cast(word, dtype)};
}

bool IsFloatDType(TensorBuilder& builder, absl::string_view op, DType dtype) {
  if (!builder.ok() || dtype.is_float()) return builder.ok();
  FailOperator(builder, op, "dtype", ToString(dtype), "a float");
  return false;
}

}  // namespace

std::pair<const UOp*, const UOp*> Threefry2x32(TensorBuilder& builder, const UOp* key0,
                                               const UOp* key1, const UOp* counter0,
                                               const UOp* counter1) {
  if (!IsReady(builder, "threefry2x32", {key0, key1, counter0, counter1})) return {};
  for (const UOp* word : {key0, key1, counter0, counter1}) {
    if (word->dtype() == Scalar::kU32) continue;
    FailOperator(builder, "threefry2x32", "operand dtype", ToString(word->dtype()), "u32");
    return {};
  }
  auto word = [&](const UOp* node) { return Expression(builder, node); };
  Words words = Threefry(builder, {word(key0), word(key1)}, {word(counter0), word(counter1)});
  return {words.first, words.second};
}

const UOp* RandomBits(TensorBuilder& builder, const UOp* key, ShapeSpan shape, DType dtype) {
  std::optional<Words> words = WordsOf(builder, "random_bits", key, shape);
  if (!words.has_value()) return nullptr;
  if (!dtype.is_unsigned()) {
    return FailOperator(builder, "random_bits", "dtype", ToString(dtype), "an unsigned integer");
  }
  if (dtype == Scalar::kU64) return Joined(*words);
  return builder.Cast(words->first, dtype);
}

namespace {

// The largest number of the dtype that is below `high`.
uint64_t BitsBelow(DType dtype, double high) {
  uint64_t bits = DoubleToBits(dtype.scalar, high);
  double number = BitsToDouble(dtype.scalar, bits);
  if (number < high) return bits;
  uint64_t sign = uint64_t{1} << (dtype.size_bytes() * 8 - 1);
  if (number == 0) return sign | 1;
  return number > 0 ? bits - 1 : bits + 1;
}

}  // namespace

const UOp* RandomUniform(TensorBuilder& builder, const UOp* key, ShapeSpan shape, double low,
                         double high, DType dtype) {
  if (!IsFloatDType(builder, "random_uniform", dtype)) return nullptr;
  std::optional<Words> words = WordsOf(builder, "random_uniform", key, shape);
  if (!words.has_value()) return nullptr;
  if (!(low < high)) {
    return FailOperator(builder, "random_uniform", "low and high", absl::StrCat(low, " and ", high),
                        "low < high");
  }
  double width = BitsToDouble(dtype.scalar, DoubleToBits(dtype.scalar, high - low));
  if (!std::isfinite(width) || !std::isfinite(low)) {
    return FailOperator(builder, "random_uniform", "low and high", absl::StrCat(low, " and ", high),
                        absl::StrCat("a difference that ", ToString(dtype), " can hold"));
  }
  // As many bits as the fraction holds, so that the conversion is exact and 1 is not reached.
  DType wide = WideDType(dtype);
  Expression u = wide == Scalar::kF64 ? AsFloat(Joined(*words).Of(Op::kShr, 11), wide) * 0x1p-53
                                      : AsFloat(words->first.Of(Op::kShr, 8), wide) * 0x1p-24;
  if (low != 0 || high != 1) u = u * (high - low) + low;
  // Scaling and narrowing round, at times up to `high`.
  return builder.Make(
      Op::kMin, {builder.Cast(u, dtype), builder.context().Bits(dtype, BitsBelow(dtype, high))});
}

const UOp* RandomNormal(TensorBuilder& builder, const UOp* key, ShapeSpan shape, double mean,
                        double deviation, DType dtype) {
  constexpr double kTwoPi = 6.28318530717958647693;
  if (!IsFloatDType(builder, "random_normal", dtype)) return nullptr;
  std::optional<Words> words = WordsOf(builder, "random_normal", key, shape);
  if (!words.has_value()) return nullptr;
  DType wide = WideDType(dtype);
  // In (0, 1], so that the logarithm is finite.
  Expression u = (AsFloat(words->first, wide) + 1) * 0x1p-32;
  Expression angle = AsFloat(words->second.Of(Op::kShr, 8), wide) * (kTwoPi * 0x1p-24);
  Expression z = Sqrt(Log(u) * -2) * angle.Of(Op::kCos);
  if (mean != 0 || deviation != 1) z = z * deviation + mean;
  return builder.Cast(z, dtype);
}

}  // namespace svod
