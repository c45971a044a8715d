// Expressions: random values and constants, and the value of an expression on given leaves.
// Included by tests of rules and passes only.
#ifndef SVOD_TESTS_UNIT_IR_EXPRESSIONS_H_
#define SVOD_TESTS_UNIT_IR_EXPRESSIONS_H_

#include <cmath>
#include <random>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "ir/evaluate.h"
#include "ir/uop.h"

namespace svod {

using Lanes = std::vector<uint64_t>;
// Values of LOAD, DEFINE_VAR and RANGE nodes.
using Leaves = absl::flat_hash_map<const UOp*, Lanes>;

// The lanes of an expression of constants, leaves, elementwise ops, stacks, splats and lanes.
inline Lanes EvaluateExpression(const UOp* root, const Leaves& leaves) {
  absl::flat_hash_map<const UOp*, Lanes> values(leaves);
  for (const UOp* node : Toposort(root)) {
    if (values.contains(node)) continue;
    Lanes lanes(node->dtype().lanes);
    for (size_t lane = 0; lane < lanes.size(); ++lane) {
      if (IsConst(node)) {
        lanes[lane] = node->arg<ConstArgument>().bits;
      } else if (node->op() == Op::kStack) {
        lanes[lane] = values[node->source(static_cast<int>(lane))][0];
      } else if (node->op() == Op::kSplat) {
        lanes[lane] = values[node->source(0)][0];
      } else if (node->op() == Op::kLanes) {
        lanes[lane] = values[node->source(0)][node->arg<LanesArgument>().lanes[lane]];
      } else if (node->op() == Op::kPick) {
        const Lanes& table = values[node->source(0)];
        lanes[lane] = table[values[node->source(1)][lane] & (table.size() - 1)];
      } else if (IsElementwise(node->op())) {
        Lanes operands;
        for (const UOp* source : node->sources()) operands.push_back(values[source][lane]);
        lanes[lane] = EvaluateScalar(node->op(), node->dtype().element(),
                                     node->sources().back()->dtype().element(), operands);
      }
    }
    values[node] = lanes;
  }
  return values[root];
}

// Bit for bit, but that all NaN are equal.
inline bool SameLanes(DType dtype, const Lanes& a, const Lanes& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    bool both_nan = dtype.is_float() && std::isnan(BitsToDouble(dtype.scalar, a[i])) &&
                    std::isnan(BitsToDouble(dtype.scalar, b[i]));
    if (a[i] != b[i] && !both_nan) return false;
  }
  return true;
}

// A seeded source of values; the same on every machine.
class RandomValues {
 public:
  explicit RandomValues(uint64_t seed) : engine_(seed) {}

  uint64_t Next() { return engine_(); }
  int64_t Between(int64_t min, int64_t max) {
    return min + static_cast<int64_t>(engine_() % static_cast<uint64_t>(max - min + 1));
  }
  bool OneIn(int64_t n) { return Between(1, n) == 1; }
  template <typename T>
  const T& Pick(const std::vector<T>& from) {
    return from[static_cast<size_t>(Between(0, static_cast<int64_t>(from.size()) - 1))];
  }

  Scalar AnyScalar() { return static_cast<Scalar>(Between(1, kNumScalars - 1)); }
  Scalar IntegerScalar() {
    return Pick<Scalar>({Scalar::kI8, Scalar::kI16, Scalar::kI32, Scalar::kI64, Scalar::kU8,
                         Scalar::kU16, Scalar::kU32, Scalar::kU64, Scalar::kIndex});
  }

  // The edges of a dtype, small numbers, and random bits.
  uint64_t Bits(DType dtype) {
    uint64_t bits = Next();
    if (dtype.is_float()) {
      const double inf = std::numeric_limits<double>::infinity();
      if (!OneIn(4)) {
        double value = Pick<double>({0.0, -0.0, 1.0, -1.0, 0.5, 3.0, -2.5, 100.0, 1e-8, 65504.0,
                                     3e9, 1e38, inf, -inf, std::nan("")});
        return DoubleToBits(dtype.scalar, value);
      }
    } else if (!OneIn(4)) {
      bits = static_cast<uint64_t>(
          Pick<int64_t>({0, 1, 2, 3, 4, 7, 8, -1, -2, -3, -8, 100, MinValue(dtype), MaxValue(dtype),
                         MinValue(dtype) + 1, MaxValue(dtype) - 1, MaxValue(dtype) / 2}));
    }
    if (dtype.is_bool()) return bits & 1;
    return dtype.bits() == 64 ? bits : bits & ((uint64_t{1} << dtype.bits()) - 1);
  }

 private:
  std::mt19937_64 engine_;
};

// Random values for every leaf under `root`; counters and variables stay in their bounds.
inline Leaves RandomLeaves(const UOp* root, RandomValues& random) {
  Leaves leaves;
  for (const UOp* node : Toposort(root)) {
    if (node->op() == Op::kLoad) {
      for (int i = 0; i < node->dtype().lanes; ++i) {
        leaves[node].push_back(random.Bits(node->dtype().element()));
      }
    } else if (node->op() == Op::kDefineVar) {
      const auto& variable = node->arg<VariableArgument>();
      leaves[node] = {static_cast<uint64_t>(random.Between(variable.min, variable.max))};
    } else if (node->op() == Op::kRange) {
      leaves[node] = {static_cast<uint64_t>(random.Between(0, ConstInt(node->source(0)) - 1))};
    }
  }
  return leaves;
}

}  // namespace svod

#endif  // SVOD_TESTS_UNIT_IR_EXPRESSIONS_H_
