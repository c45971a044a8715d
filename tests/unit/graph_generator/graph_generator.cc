#include "tests/unit/graph_generator/graph_generator.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/evaluate.h"
#include "ir/status_macros.h"
#include "tests/unit/graph_generator/generator.h"
#include "tests/unit/ir/tensor_values.h"

namespace svod {

double ExactLimit(DType dtype) {
  if (!dtype.is_float()) return std::numeric_limits<double>::infinity();
  return 1 / UnitRoundoff(dtype);
}

double UnitRoundoff(DType dtype) {
  if (dtype == Scalar::kF16) return 0x1p-11;
  if (dtype == Scalar::kBF16) return 0x1p-8;
  return dtype == Scalar::kF32 ? 0x1p-24 : 0x1p-53;
}

double MinNormal(DType dtype) {
  if (dtype == Scalar::kF16) return 0x1p-14;
  return dtype == Scalar::kF64 ? 0x1p-1022 : 0x1p-126;
}

// --- What is given ------------------------------------------------------------------------------

DType Generator::AnyDType() {
  constexpr Scalar kCommon[] = {Scalar::kF32, Scalar::kF32, Scalar::kF32, Scalar::kI32,
                                Scalar::kF64, Scalar::kI64, Scalar::kBool};
  constexpr Scalar kHalf[] = {Scalar::kF16, Scalar::kBF16};
  constexpr Scalar kRare[] = {Scalar::kI8,  Scalar::kI16, Scalar::kU8,
                              Scalar::kU16, Scalar::kU32, Scalar::kU64};
  if (options_.half_floats && random_.OneIn(6)) return random_.Of(kHalf);
  return random_.OneIn(5) ? random_.Of(kRare) : random_.Of(kCommon);
}

const UOp* Generator::AnyDimension() {
  if (!variables_.empty() && random_.OneIn(3)) {
    const UOp* n = random_.Of(variables_);
    if (random_.OneIn(5)) return b_.dims().Add(n, b_.Index(random_.Pick(1, 2)));
    if (random_.OneIn(6)) return b_.dims().Mul(n, b_.Index(2));
    return n;
  }
  constexpr int64_t kSizes[] = {1, 1, 2, 2, 3, 3, 4, 5, 7, 8, 13, 16, 17, 31};
  if (options_.large_sizes && random_.OneIn(2)) {
    constexpr int64_t kLarge[] = {64, 100, 127, 256, 257, 1000, 1024, 1025, 2049, 5000, 140000};
    return b_.Index(random_.Of(kLarge));
  }
  return b_.Index(random_.OneIn(25) ? 0 : random_.Of(kSizes));
}

Shape Generator::AnyShape() {
  while (true) {
    Shape shape;
    int64_t rank = random_.OneIn(12) ? 0 : random_.Pick(1, random_.OneIn(4) ? 4 : 3);
    for (int64_t i = 0; i < rank; ++i) shape.push_back(AnyDimension());
    if (IsSmall(shape)) return shape;
  }
}

double Generator::MaxElements(ShapeSpan shape) {
  double elements = 1;
  for (const UOp* dimension : shape) {
    elements *= static_cast<double>(b_.dims().RangeOf(dimension).max);
  }
  return elements;
}

Item Generator::NewParam(DType dtype, ShapeSpan shape, Access access) {
  ParamSpec spec{dtype, ParamSpec::Fill::kWhole};
  if (dtype.is_float() && random_.OneIn(options_.rounded_reductions ? 2 : 3)) {
    spec.fill = random_.OneIn(3) ? ParamSpec::Fill::kAny : ParamSpec::Fill::kModerate;
  }
  if (dtype.is_unsigned()) spec.low = 0;
  if (dtype.is_integer() && random_.OneIn(4)) {
    // All bits, so that arithmetic wraps.
    spec.low = MinValue(dtype);
    spec.high = MaxValue(dtype);
  }
  return NewParam(dtype, shape, access, spec);
}

Item Generator::NewParam(DType dtype, ShapeSpan shape, Access access, const ParamSpec& spec) {
  Item item;
  auto slot = static_cast<int64_t>(specs_.size());
  item.node = b_.Param(absl::StrCat("p", slot), dtype, shape, access, slot);
  specs_.push_back(spec);
  if (dtype.is_float() && spec.fill == ParamSpec::Fill::kWhole) {
    item.bound = static_cast<double>(std::max(std::abs(spec.low), std::abs(spec.high)));
  }
  Add(item);
  return item;
}

Item Generator::AnyConst(DType dtype) {
  Item item;
  int64_t value =
      dtype.is_bool() ? random_.Pick(0, 1) : random_.Pick(dtype.is_unsigned() ? 0 : -2, 3);
  if (!dtype.is_float()) {
    item.node = b_.ConstInt(dtype, value);
  } else if (random_.OneIn(8)) {
    constexpr double kSpecial[] = {-0.0, 0.5, std::numeric_limits<double>::infinity(),
                                   std::numeric_limits<double>::quiet_NaN()};
    item.node = b_.Const(dtype, random_.Of(kSpecial));
  } else {
    item.node = b_.Const(dtype, static_cast<double>(value));
    item.bound = std::abs(static_cast<double>(value));
  }
  return item;
}

const Item& Generator::AnyItem() {
  // The newest are favoured, so that graphs grow deep as well as wide.
  auto last = static_cast<int64_t>(pool_.size()) - 1;
  if (random_.OneIn(2))
    return pool_[static_cast<size_t>(random_.Pick(std::max<int64_t>(0, last - 2), last))];
  return random_.Of(pool_);
}

bool Generator::Broadcasts(const Item& x, const Item& y) {
  ShapeSpan shapes[] = {b_.ShapeOf(x.node), b_.ShapeOf(y.node)};
  absl::StatusOr<Shape> shape = BroadcastShapes(shapes, b_.dims(), "");
  return shape.ok() && IsSmall(*shape);
}

Item Generator::Partner(DType dtype, const Item& with, bool must_be_exact) {
  if (random_.OneIn(6)) return AnyConst(dtype);
  for (int attempt = 0; attempt < 12; ++attempt) {
    const Item& item = AnyItem();
    if (item.node->dtype() == dtype && (item.exact() || !must_be_exact) && Broadcasts(item, with)) {
      return item;
    }
  }
  ShapeSpan given = b_.ShapeOf(with.node);
  Shape shape(given.begin(), given.end());
  for (const UOp*& dimension : shape) {
    if (random_.OneIn(4)) dimension = b_.Index(1);
  }
  if (!shape.empty() && random_.OneIn(4)) shape.erase(shape.begin());
  return NewParam(dtype, shape);
}

// --- The whole graph ----------------------------------------------------------------------------

void Generator::Add(const Item& item) {
  if (!b_.ok() || item.node == nullptr) return;
  if (IsSmall(b_.ShapeOf(item.node))) pool_.push_back(item);
}

const UOp* Generator::Magnitude(const Item& x) {
  if (!x.exact()) return x.magnitude;
  // Whatever lies below the smallest normal number rounds by what that one rounds by.
  const UOp* size = b_.Make(Op::kAbs, {b_.Cast(x.node, Scalar::kF64)});
  return b_.Add(size, b_.Const(Scalar::kF64, MinNormal(x.node->dtype())));
}

void Generator::Grow() {
  switch (random_.Pick(0, 23)) {
    case 0:
    case 1:
    case 2:
      return GrowUnary();
    case 3:
    case 4:
    case 5:
    case 6:
      return GrowBinary();
    case 7:
      return GrowTernary();
    case 8:
      return GrowConversion();
    case 9:
      return GrowArange();
    case 10:
      return options_.positions ? GrowGather() : GrowBinary();
    case 11:
      return options_.positions ? GrowScatter() : GrowUnary();
    case 12:
    case 13:
      return options_.assigns ? GrowAssign() : GrowMovement();
    case 14:
    case 15:
    case 16:
      return GrowReduce();
    case 17:
      return random_.OneIn(2) ? GrowMatmul() : GrowSoftmax();
    default:
      return GrowMovement();
  }
}

absl::StatusOr<GeneratedGraph> Generator::Run() {
  GeneratedGraph result;
  result.context = b_.shared_context();
  if (options_.symbolic && random_.OneIn(2)) {
    constexpr int64_t kLeast[] = {0, 1, 1, 2, 3};
    constexpr const char* kNames[] = {"n", "m"};
    VariableList least, largest, between;
    for (const char* name : absl::MakeSpan(kNames).first(static_cast<size_t>(random_.Pick(1, 2)))) {
      int64_t min = random_.Of(kLeast), max = min + random_.Pick(0, 7);
      variables_.push_back(b_.Variable(name, min, max));
      least.emplace_back(name, min);
      largest.emplace_back(name, max);
      between.emplace_back(name, random_.Pick(min, max));
    }
    result.variables = {least, largest, between};
  } else {
    result.variables = {{}};
  }
  int64_t inputs = random_.Pick(1, 3);
  for (int64_t i = 0; i < inputs; ++i) {
    Shape shape = AnyShape();
    if (options_.assigns && random_.OneIn(3)) {
      Item item = NewParam(AnyDType(), shape, Access::kInOut);
      targets_.push_back({item.node, item});
    } else {
      NewParam(AnyDType(), shape);
    }
  }
  int64_t ops = random_.Pick(1, options_.max_ops);
  for (int64_t i = 0; i < ops && b_.ok(); ++i) Grow();
  SVOD_RETURN_IF_ERROR(b_.status());

  std::vector<const UOp*> results, magnitudes;
  auto add_result = [&](const Item& item) {
    results.push_back(item.node);
    ResultBound bound;
    if (!item.exact()) {
      bound.relative_error = item.error;
      bound.magnitude = static_cast<int>(magnitudes.size());
      magnitudes.push_back(item.magnitude);
    }
    result.bounds.push_back(bound);
  };
  add_result(pool_.back());
  for (int64_t more = random_.Pick(0, 3); more > 0; --more) add_result(AnyItem());
  for (const Target& target : targets_) {
    if (target.state.node != target.param) add_result(target.state);
  }
  // Parameters that no result needs go, and the others are numbered anew.
  auto numbered = [&](const std::vector<const UOp*>& roots,
                      absl::string_view name) -> absl::StatusOr<const UOp*> {
    SVOD_ASSIGN_OR_RETURN(Function graph, b_.Finish(name, roots));
    absl::flat_hash_map<const UOp*, const UOp*> made;
    for (const UOp* node : Toposort(graph.root)) {
      std::vector<const UOp*> sources;
      for (const UOp* source : node->sources()) sources.push_back(made.at(source));
      Argument argument = node->argument();
      std::string param_name;
      if (auto* param = std::get_if<ParamArgument>(&argument)) {
        auto [it, is_new] = slots_.try_emplace(param->slot, static_cast<int64_t>(slots_.size()));
        if (is_new) result.params.push_back(specs_[static_cast<size_t>(param->slot)]);
        param_name = absl::StrCat("p", it->second);
        *param = {it->second, param->access, param_name};
      }
      SVOD_ASSIGN_OR_RETURN(made[node],
                            b_.context().Make(node->op(), node->dtype(), sources, argument));
    }
    return made.at(graph.root);
  };
  SVOD_ASSIGN_OR_RETURN(result.graph.root, numbered(results, "generated"));
  if (!magnitudes.empty()) {
    SVOD_ASSIGN_OR_RETURN(result.magnitudes.root, numbered(magnitudes, "magnitudes"));
  }
  return result;
}

absl::StatusOr<GeneratedGraph> GenerateGraph(uint64_t seed, std::shared_ptr<Context> context,
                                             const GraphGeneratorOptions& options) {
  return Generator(seed, std::move(context), options).Run();
}

// --- Data ---------------------------------------------------------------------------------------

namespace {

uint64_t AnyBits(const ParamSpec& spec, SeededRandom& random) {
  DType dtype = spec.dtype;
  if (spec.fill == ParamSpec::Fill::kWhole) {
    if (dtype.is_bool()) return static_cast<uint64_t>(random.Pick(0, 1));
    // The span of i64 does not fit; its bits do.
    bool is_all = dtype.is_integer() && spec.low == MinValue(dtype) && spec.high == MaxValue(dtype);
    auto value = is_all ? random.Next() : static_cast<uint64_t>(random.Pick(spec.low, spec.high));
    if (dtype.is_float())
      return DoubleToBits(dtype.scalar, static_cast<double>(static_cast<int64_t>(value)));
    return EvaluateScalar(Op::kCast, dtype, Scalar::kI64, {&value, 1});
  }
  double value = (random.Unit() - 0.5) * 4;
  if (spec.fill == ParamSpec::Fill::kAny) {
    constexpr double kInf = std::numeric_limits<double>::infinity();
    constexpr double kSpecial[] = {0.0, -0.0, kInf, -kInf,
                                   std::numeric_limits<double>::quiet_NaN()};
    if (random.OneIn(12)) return DoubleToBits(dtype.scalar, random.Of(kSpecial));
    value = std::ldexp(value, static_cast<int>(random.Pick(-8, 8)));
  }
  return DoubleToBits(dtype.scalar, value);
}

std::string Shown(const TensorValue& value, int64_t i) {
  return absl::StrCat(NumberAt(value, i), " (0x", absl::Hex(value.BitsAt(i)), ")");
}

}  // namespace

absl::StatusOr<std::vector<TensorValue>> MakeInputs(const GeneratedGraph& graph,
                                                    const VariableList& variables, uint64_t seed) {
  std::vector<TensorValue> inputs(graph.params.size());
  for (const UOp* node : Toposort(graph.graph.root)) {
    if (node->op() != Op::kParam) continue;
    auto slot = static_cast<size_t>(node->arg<ParamArgument>().slot);
    std::vector<int64_t> shape;
    for (const UOp* dimension : node->sources()) {
      SVOD_ASSIGN_OR_RETURN(int64_t size, EvaluateIndex(dimension, variables));
      shape.push_back(size);
    }
    inputs[slot] = ZeroTensor(node->dtype(), std::move(shape));
    SeededRandom random(seed * 1000003 + slot);
    for (int64_t i = 0; i < inputs[slot].num_elements(); ++i) {
      inputs[slot].SetBitsAt(i, AnyBits(graph.params[slot], random));
    }
  }
  return inputs;
}

std::string FirstDifference(const TensorValue& got, const TensorValue& expected,
                            const std::string& what) {
  return FirstDifference(got, expected, what, {}, {});
}

std::string FirstDifference(const TensorValue& got, const TensorValue& expected,
                            const std::string& what, const ResultBound& bound,
                            const TensorValue& magnitude) {
  if (got.dtype != expected.dtype || got.shape != expected.shape) {
    return absl::StrCat(what, ": got ", ToString(got.dtype), "[", absl::StrJoin(got.shape, ", "),
                        "], expected ", ToString(expected.dtype), "[",
                        absl::StrJoin(expected.shape, ", "), "]");
  }
  for (int64_t i = 0; i < got.num_elements(); ++i) {
    if (got.BitsAt(i) == expected.BitsAt(i)) continue;
    double a = NumberAt(got, i), b = NumberAt(expected, i);
    if (got.dtype.is_float() && std::isnan(a) && std::isnan(b)) continue;
    if (bound.relative_error > 0) {
      double size = NumberAt(magnitude, i);
      double largest = got.dtype == Scalar::kF16 ? 65504.0 : 0x1p126;
      if (!std::isfinite(size) || size > largest / 2) continue;
      if (std::abs(a - b) <= bound.relative_error * size) continue;
    }
    return absl::StrCat(
        what, ": element ", i, ", got ", Shown(got, i), ", expected ", Shown(expected, i),
        bound.relative_error > 0
            ? absl::StrCat(" within ", bound.relative_error, " of ", NumberAt(magnitude, i))
            : "");
  }
  return "";
}

}  // namespace svod
