#include "tests/unit/ir/block_evaluator.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "ir/evaluate.h"

// Inlined into a function that may use wide vectors, so that the loops below are compiled for them.
#define SVOD_INLINE __attribute__((always_inline)) inline

namespace svod {
namespace {

constexpr int kBlock = BlockEvaluator::kBlock;

// The number of lanes is constant and no two slots overlap: these loops vectorise.
template <typename A, typename R, typename Fn>
SVOD_INLINE void Map1(const std::byte* a, std::byte* r, Fn fn) {
  const A* __restrict x = reinterpret_cast<const A*>(a);
  R* __restrict out = reinterpret_cast<R*>(r);
  for (int i = 0; i < kBlock; ++i) out[i] = static_cast<R>(fn(x[i]));
}

template <typename A, typename R, typename Fn>
SVOD_INLINE void Map2(const std::byte* a, const std::byte* b, std::byte* r, Fn fn) {
  const A* __restrict x = reinterpret_cast<const A*>(a);
  const A* __restrict y = reinterpret_cast<const A*>(b);
  R* __restrict out = reinterpret_cast<R*>(r);
  for (int i = 0; i < kBlock; ++i) out[i] = static_cast<R>(fn(x[i], y[i]));
}

template <typename T>
SVOD_INLINE void Select(const std::byte* condition, const std::byte* a, const std::byte* b,
                        std::byte* r) {
  const uint8_t* __restrict c = reinterpret_cast<const uint8_t*>(condition);
  const T* __restrict x = reinterpret_cast<const T*>(a);
  const T* __restrict y = reinterpret_cast<const T*>(b);
  T* __restrict out = reinterpret_cast<T*>(r);
  for (int i = 0; i < kBlock; ++i) out[i] = c[i] != 0 ? x[i] : y[i];
}

SVOD_INLINE float FusedMulAdd(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
SVOD_INLINE double FusedMulAdd(double x, double y, double z) { return __builtin_fma(x, y, z); }

template <typename T>
SVOD_INLINE void MulAcc(const std::byte* a, const std::byte* b, const std::byte* c, std::byte* r) {
  const T* __restrict x = reinterpret_cast<const T*>(a);
  const T* __restrict y = reinterpret_cast<const T*>(b);
  const T* __restrict z = reinterpret_cast<const T*>(c);
  T* __restrict out = reinterpret_cast<T*>(r);
  for (int i = 0; i < kBlock; ++i) out[i] = FusedMulAdd(x[i], y[i], z[i]);
}

template <typename T>
SVOD_INLINE bool Compare(Op op, const std::byte* a, const std::byte* b, std::byte* r) {
  if (op == Op::kCmpLt) Map2<T, uint8_t>(a, b, r, [](T x, T y) { return x < y; });
  if (op == Op::kCmpLe) Map2<T, uint8_t>(a, b, r, [](T x, T y) { return x <= y; });
  if (op == Op::kCmpEq) Map2<T, uint8_t>(a, b, r, [](T x, T y) { return x == y; });
  if (op == Op::kCmpNe) Map2<T, uint8_t>(a, b, r, [](T x, T y) { return x != y; });
  return op == Op::kCmpLt || op == Op::kCmpLe || op == Op::kCmpEq || op == Op::kCmpNe;
}

template <typename T>
SVOD_INLINE void FloatOp(Op op, const std::byte* const* s, std::byte* r) {
  if (Compare<T>(op, s[0], s[1], r)) return;
  if (op == Op::kAdd) return Map2<T, T>(s[0], s[1], r, [](T x, T y) { return x + y; });
  if (op == Op::kSub) return Map2<T, T>(s[0], s[1], r, [](T x, T y) { return x - y; });
  if (op == Op::kMul) return Map2<T, T>(s[0], s[1], r, [](T x, T y) { return x * y; });
  if (op == Op::kFdiv) return Map2<T, T>(s[0], s[1], r, [](T x, T y) { return x / y; });
  if (op == Op::kMulAcc) return MulAcc<T>(s[0], s[1], s[2], r);
  if (op == Op::kWhere) return Select<T>(s[0], s[1], s[2], r);
  if (op == Op::kNeg) return Map1<T, T>(s[0], r, [](T x) { return -x; });
  if (op == Op::kAbs) return Map1<T, T>(s[0], r, [](T x) { return std::fabs(x); });
  if (op == Op::kRecip) return Map1<T, T>(s[0], r, [](T x) { return 1 / x; });
  if (op == Op::kRound) return Map1<T, T>(s[0], r, [](T x) { return std::nearbyint(x); });
  if (op == Op::kTrunc) return Map1<T, T>(s[0], r, [](T x) { return std::trunc(x); });
}

// T is unsigned except for shifts and comparisons of signed dtypes.
template <typename T>
SVOD_INLINE void IntegerOp(Op op, const std::byte* const* s, std::byte* r) {
  using U = std::make_unsigned_t<T>;
  constexpr U kBits = sizeof(T) * 8;
  if (Compare<T>(op, s[0], s[1], r)) return;
  if (op == Op::kAdd) return Map2<U, U>(s[0], s[1], r, [](U x, U y) { return x + y; });
  if (op == Op::kSub) return Map2<U, U>(s[0], s[1], r, [](U x, U y) { return x - y; });
  if (op == Op::kMul) return Map2<U, U>(s[0], s[1], r, [](U x, U y) { return x * y; });
  if (op == Op::kAnd) return Map2<U, U>(s[0], s[1], r, [](U x, U y) { return x & y; });
  if (op == Op::kOr) return Map2<U, U>(s[0], s[1], r, [](U x, U y) { return x | y; });
  if (op == Op::kXor) return Map2<U, U>(s[0], s[1], r, [](U x, U y) { return x ^ y; });
  if (op == Op::kNeg) return Map1<U, U>(s[0], r, [](U x) { return 0 - x; });
  if (op == Op::kMax) return Map2<T, T>(s[0], s[1], r, [](T x, T y) { return x < y ? y : x; });
  if (op == Op::kShl) {
    return Map2<U, U>(s[0], s[1], r, [](U x, U y) { return y < kBits ? x << (y % kBits) : 0; });
  }
  if (op == Op::kShr) {
    return Map2<T, T>(s[0], s[1], r, [](T x, T y) {
      U count = static_cast<U>(y);
      if (std::is_signed_v<T>) return static_cast<T>(x >> (count < kBits ? count : kBits - 1));
      return static_cast<T>(count < kBits ? x >> (count % kBits) : 0);
    });
  }
  if (op == Op::kWhere) return Select<T>(s[0], s[1], s[2], r);
}

SVOD_INLINE void BoolOp(Op op, const std::byte* const* s, std::byte* r) {
  using B = uint8_t;
  if (op == Op::kAnd) return Map2<B, B>(s[0], s[1], r, [](B x, B y) { return x & y; });
  if (op == Op::kOr) return Map2<B, B>(s[0], s[1], r, [](B x, B y) { return x | y; });
  if (op == Op::kXor) return Map2<B, B>(s[0], s[1], r, [](B x, B y) { return x ^ y; });
  if (op == Op::kNot) return Map1<B, B>(s[0], r, [](B x) { return x ^ 1; });
  if (op == Op::kWhere) return Select<B>(s[0], s[1], s[2], r);
}

template <typename From>
SVOD_INLINE void CastTo(Scalar to, const std::byte* a, std::byte* r) {
  if (to == Scalar::kF32) Map1<From, float>(a, r, [](From x) { return static_cast<float>(x); });
  if (to == Scalar::kF64) Map1<From, double>(a, r, [](From x) { return static_cast<double>(x); });
  if constexpr (std::is_integral_v<From>) {
    if (to == Scalar::kI32 || to == Scalar::kU32)
      Map1<From, int32_t>(a, r, [](From x) { return static_cast<int32_t>(x); });
    if (to == Scalar::kI64 || to == Scalar::kU64)
      Map1<From, int64_t>(a, r, [](From x) { return static_cast<int64_t>(x); });
  }
}

constexpr Scalar kScalars[] = {Scalar::kBool, Scalar::kI32, Scalar::kU32, Scalar::kI64,
                               Scalar::kU64,  Scalar::kF32, Scalar::kF64};
constexpr Op kOps[] = {Op::kAdd,   Op::kSub,   Op::kMul,   Op::kFdiv,  Op::kMulAcc,  Op::kWhere,
                       Op::kNeg,   Op::kAbs,   Op::kRound, Op::kRecip, Op::kTrunc,   Op::kAnd,
                       Op::kOr,    Op::kXor,   Op::kNot,   Op::kShl,   Op::kShr,     Op::kCmpLt,
                       Op::kCmpLe, Op::kCmpEq, Op::kCmpNe, Op::kCast,  Op::kBitcast, Op::kMax};

template <typename T, size_t n>
bool Has(const T (&list)[n], T item) {
  return std::find(list, list + n, item) != list + n;
}

bool IsSupported(Op op, DType to, DType operand) {
  if (!Has(kOps, op) || !Has(kScalars, to.scalar) || !Has(kScalars, operand.scalar)) return false;
  if (to.is_vector() || (op == Op::kMax && to.is_float())) return false;
  if (op == Op::kCast) return !to.is_bool() && !(operand.is_float() && !to.is_float());
  return true;
}

void Fill(DType dtype, uint64_t bits, std::byte* slot) {
  const size_t size = static_cast<size_t>(dtype.size_bytes());
  for (int i = 0; i < kBlock; ++i)
    std::copy_n(reinterpret_cast<std::byte*>(&bits), size, slot + i * size);
}

}  // namespace

absl::StatusOr<BlockEvaluator> BlockEvaluator::Create(const UOp* root,
                                                      absl::Span<const UOp* const> inputs) {
  BlockEvaluator result;
  std::vector<const UOp*> order = Toposort(root);
  absl::flat_hash_map<const UOp*, int> slot_of;
  auto add_slot = [&](const UOp* node) {
    int slot = static_cast<int>(slot_of.size());
    return slot_of.try_emplace(node, slot).first->second;
  };
  for (const UOp* input : inputs) result.inputs_.push_back(add_slot(input));
  std::vector<const UOp*> constants;
  absl::flat_hash_map<const UOp*, int> table_of;
  for (const UOp* node : order) {
    if (slot_of.contains(node)) continue;
    if (node->op() == Op::kStack && node->dtype().scalar == Scalar::kF32) {
      table_of[node] = static_cast<int>(result.tables_.size());
      std::vector<uint32_t>& table = result.tables_.emplace_back();
      for (const UOp* entry : node->sources()) {
        table.push_back(static_cast<uint32_t>(entry->arg<ConstArgument>().bits));
      }
      continue;
    }
    if (node->op() == Op::kPick && table_of.contains(node->source(0))) {
      result.program_.push_back({node->op(),
                                 Scalar::kF32,
                                 Scalar::kI32,
                                 {slot_of[node->source(1)], table_of[node->source(0)], 0},
                                 add_slot(node)});
      continue;
    }
    if (IsConst(node)) {
      constants.push_back(node);
      add_slot(node);
      continue;
    }
    DType operand =
        node->num_sources() == 0 ? DType() : node->source(node->num_sources() - 1)->dtype();
    if (!IsSupported(node->op(), node->dtype(), operand)) {
      return absl::UnimplementedError(
          absl::StrCat("block evaluator: ", InfoOf(node->op()).text, " ", ToString(node->dtype())));
    }
    Instruction instruction{node->op(), node->dtype().scalar, operand.scalar, {0, 0, 0}, 0};
    for (int i = 0; i < node->num_sources(); ++i) instruction.sources[i] = slot_of[node->source(i)];
    instruction.result = add_slot(node);
    result.program_.push_back(instruction);
  }
  result.result_ = slot_of[root];
  result.slots_.resize(slot_of.size());
  for (const UOp* node : constants) {
    Fill(node->dtype(), node->arg<ConstArgument>().bits, result.Slot(slot_of[node]));
  }
  return result;
}

SVOD_INLINE void BlockEvaluator::RunBody() {
  for (const Instruction& instruction : program_) {
    if (instruction.op == Op::kPick) {
      const std::vector<uint32_t>& table = tables_[static_cast<size_t>(instruction.sources[1])];
      const auto* numbers = reinterpret_cast<const uint32_t*>(Slot(instruction.sources[0]));
      auto* picked = reinterpret_cast<uint32_t*>(Slot(instruction.result));
      for (int i = 0; i < kBlock; ++i) picked[i] = table[numbers[i] & (table.size() - 1)];
      continue;
    }
    const std::byte* s[3] = {Slot(instruction.sources[0]), Slot(instruction.sources[1]),
                             Slot(instruction.sources[2])};
    std::byte* r = Slot(instruction.result);
    const Op op = instruction.op;
    const Scalar operand = instruction.operand;
    if (op == Op::kBitcast) {
      std::copy_n(s[0], kBlock * InfoOf(operand).size_bytes, r);
    } else if (op == Op::kCast) {
      if (operand == Scalar::kBool) CastTo<uint8_t>(instruction.to, s[0], r);
      if (operand == Scalar::kI32) CastTo<int32_t>(instruction.to, s[0], r);
      if (operand == Scalar::kU32) CastTo<uint32_t>(instruction.to, s[0], r);
      if (operand == Scalar::kI64) CastTo<int64_t>(instruction.to, s[0], r);
      if (operand == Scalar::kU64) CastTo<uint64_t>(instruction.to, s[0], r);
      if (operand == Scalar::kF32) CastTo<float>(instruction.to, s[0], r);
      if (operand == Scalar::kF64) CastTo<double>(instruction.to, s[0], r);
    } else {
      if (operand == Scalar::kBool) BoolOp(op, s, r);
      if (operand == Scalar::kI32) IntegerOp<int32_t>(op, s, r);
      if (operand == Scalar::kU32) IntegerOp<uint32_t>(op, s, r);
      if (operand == Scalar::kI64) IntegerOp<int64_t>(op, s, r);
      if (operand == Scalar::kU64) IntegerOp<uint64_t>(op, s, r);
      if (operand == Scalar::kF32) FloatOp<float>(op, s, r);
      if (operand == Scalar::kF64) FloatOp<double>(op, s, r);
    }
  }
}

#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) void BlockEvaluator::RunWide() { RunBody(); }
void BlockEvaluator::Run() {
  static const bool is_wide = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  is_wide ? RunWide() : RunPlain();
}
#else
void BlockEvaluator::RunWide() { RunBody(); }
void BlockEvaluator::Run() { RunPlain(); }
#endif
void BlockEvaluator::RunPlain() { RunBody(); }

uint64_t EvaluateGraph(const UOp* root, absl::Span<const UOp* const> inputs,
                       absl::Span<const uint64_t> values) {
  absl::flat_hash_map<const UOp*, uint64_t> known;
  for (size_t i = 0; i < inputs.size(); ++i) known[inputs[i]] = values[i];
  for (const UOp* node : Toposort(root)) {
    if (known.contains(node)) continue;
    if (IsConst(node)) {
      known[node] = node->arg<ConstArgument>().bits;
      continue;
    }
    if (node->op() == Op::kStack) continue;
    if (node->op() == Op::kPick) {
      const UOp* table = node->source(0);
      uint64_t number = known[node->source(1)] & static_cast<uint64_t>(table->num_sources() - 1);
      known[node] = table->source(static_cast<int>(number))->arg<ConstArgument>().bits;
      continue;
    }
    uint64_t operands[3] = {};
    for (int i = 0; i < node->num_sources(); ++i) operands[i] = known[node->source(i)];
    known[node] =
        EvaluateScalar(node->op(), node->dtype(), node->source(node->num_sources() - 1)->dtype(),
                       absl::MakeConstSpan(operands, node->num_sources()));
  }
  return known[root];
}

}  // namespace svod
