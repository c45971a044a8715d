#include "tests/unit/kernel_generator.h"

#include <cmath>
#include <cstring>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "ir/evaluate.h"
#include "ir/kernel_builder.h"
#include "ir/status_macros.h"
#include "tests/unit/ir/expressions.h"

namespace svod {
namespace {

class Generator {
 public:
  Generator(uint64_t seed, std::shared_ptr<Context> context, const GeneratorOptions& options)
      : context_(std::move(context)),
        b_(context_, absl::StrCat("generated_", seed)),
        random_(seed),
        options_(options) {}

  absl::StatusOr<GeneratedKernel> Run() {
    MakeParams();
    if (options_.scratch) MakeScratch();
    Block(/*depth=*/0);
    UseTheUnused();
    SVOD_ASSIGN_OR_RETURN(kernel_.sink, b_.Finish());
    return std::move(kernel_);
  }

 private:
  struct Memory {
    const UOp* node;
    DType element;
    int64_t size;  // elements
    bool readable;
    bool writable;
  };

  // --- What there is to work on -----------------------------------------------------------------

  DType AnyElement() {
    while (true) {
      Scalar scalar = random_.AnyScalar();
      bool is_half = scalar == Scalar::kF16 || scalar == Scalar::kBF16;
      if (scalar != Scalar::kIndex && (options_.half_floats || !is_half)) return scalar;
    }
  }

  void MakeParams() {
    if (random_.OneIn(2)) {
      int64_t min = random_.Between(0, 2), max = min + random_.Between(0, 5);
      variable_ = b_.Variable("n", min, max);
      kernel_.variables.push_back({"n", random_.Between(min, max)});
    }
    if (options_.core_id && random_.OneIn(4)) {
      core_id_ = b_.CoreId(context_->Index(random_.Between(1, 3)));
    }
    int64_t count = random_.Between(2, 4);
    for (int64_t slot = 0; slot < count; ++slot) {
      Access access = slot == 0 ? random_.Pick<Access>({Access::kOut, Access::kInOut})
                                : random_.Pick<Access>({Access::kIn, Access::kIn, Access::kInOut});
      DType element = AnyElement();
      std::vector<int64_t> dims = {random_.Between(1, 12)};
      if (random_.OneIn(3)) dims.push_back(random_.Between(1, 5));
      int64_t size = 1;
      std::vector<const UOp*> shape;
      for (int64_t dim : dims) {
        bool is_symbolic = variable_ != nullptr && random_.OneIn(5);
        if (is_symbolic) dim = kernel_.variables[0].second;
        shape.push_back(is_symbolic ? variable_ : context_->Index(dim));
        size *= dim;
      }
      const UOp* node = b_.Param(absl::StrCat("p", slot), element, shape, access);
      memories_.push_back({node, element, size, access != Access::kOut, access != Access::kIn});
      kernel_.elements.push_back(element);
      kernel_.buffers.push_back(Fill(element, size));
    }
  }

  std::vector<std::byte> Fill(DType element, int64_t size) {
    const auto bytes = static_cast<size_t>(element.size_bytes());
    std::vector<std::byte> buffer(static_cast<size_t>(size) * bytes);
    for (size_t i = 0; i < static_cast<size_t>(size); ++i) {
      uint64_t bits = random_.Bits(element);
      std::memcpy(buffer.data() + i * bytes, &bits, bytes);
    }
    return buffer;
  }

  void MakeScratch() {
    for (int64_t i = random_.Between(0, 2); i > 0; --i) {
      DType element = AnyElement();
      if (options_.vectors && random_.OneIn(3)) element = element.with_lanes(4);
      int64_t size = random_.Between(1, 4);
      memories_.push_back({b_.Reg(element, size), element, size, true, true});
    }
    if (random_.OneIn(3)) {
      DType element = AnyElement();
      int64_t size = random_.Between(1, 16);
      memories_.push_back({b_.Local(element, size), element, size, true, true});
    }
  }

  Memory* PickMemory(bool to_write, DType element) {
    std::vector<Memory*> fit;
    for (Memory& memory : memories_) {
      bool usable = to_write ? memory.writable : memory.readable;
      bool same =
          element.is_void() || memory.element == element || memory.element == element.element();
      if (usable && same) fit.push_back(&memory);
    }
    return fit.empty() ? nullptr : random_.Pick(fit);
  }

  // A parameter on which no effect depends is refused; touch it.
  void UseTheUnused() {
    absl::flat_hash_set<const UOp*> used;
    for (const UOp* store : stores_) {
      if (store == nullptr) return;  // the builder failed
      for (const UOp* node : Toposort(store)) used.insert(node);
    }
    const UOp* zero = context_->Index(0);
    for (const Memory& memory : memories_) {
      if (memory.node->op() != Op::kParam || used.contains(memory.node)) continue;
      if (memory.writable) {
        b_.Store(memory.node, zero, Constant(memory.element));
      } else {
        const Memory& out = memories_[0];
        b_.Store(out.node, zero, ConvertTo(b_.Load(memory.node, zero), out.element));
      }
    }
  }

  // --- Statements -------------------------------------------------------------------------------

  void Block(int depth) {
    for (int64_t i = random_.Between(1, options_.max_statements); i > 0; --i) {
      int64_t kind = random_.Between(0, 5);
      if (kind <= 1 && depth < 3) {
        Loop(depth);
      } else if (kind == 2) {
        values_.push_back(Value(AnyValue(), 3));  // used by what follows, or dead
      } else {
        StoreSomething();
      }
    }
  }

  const UOp* LoopEnd() {
    if (variable_ != nullptr && random_.OneIn(4)) {
      return random_.OneIn(2)
                 ? variable_
                 : b_.Make(Op::kSub, {variable_, context_->Index(random_.Between(0, 2))});
    }
    if (!ranges_.empty() && random_.OneIn(6)) return random_.Pick(ranges_);
    return context_->Index(random_.Pick<int64_t>({0, 1, 2, 3, 4, 5, 6}));
  }

  void Loop(int depth) {
    const UOp* range = b_.Range(LoopEnd());
    size_t num_values = values_.size();
    ranges_.push_back(range);
    Block(depth + 1);
    StoreSomething();  // a loop without effect is refused
    ranges_.pop_back();
    values_.resize(num_values);
    b_.End(range);
  }

  void StoreSomething() {
    const Memory& memory = *PickMemory(/*to_write=*/true, DType());
    KernelBuilder::AccessOptions options;
    DType value = memory.element;
    const UOp* position = nullptr;
    if (value.is_vector() || !options_.vectors || random_.OneIn(2)) {
      position = Position(memory.size);
      if (random_.OneIn(4)) options.gate = Value(Scalar::kBool, 1);
    } else {
      value = value.with_lanes(Lanes());
      position =
          random_.OneIn(4) ? VectorPosition(memory.size, value.lanes) : Position(memory.size);
      if (random_.OneIn(3)) options.gate = Value(DType(Scalar::kBool, GateLanes(value.lanes)), 1);
    }
    const UOp* stored = Value(value, 3);
    stores_.push_back(b_.Store(memory.node, {position}, stored, options));
  }

  // --- Positions --------------------------------------------------------------------------------

  int Lanes() { return static_cast<int>(random_.Pick<int64_t>({2, 3, 4, 4, 8})); }
  int GateLanes(int lanes) { return random_.OneIn(2) ? lanes : 1; }

  const UOp* Position(int64_t size) {
    const UOp* at = Position(size, 2);
    // Mostly inside; the rest is what bounds are for.
    return random_.OneIn(2) ? at : Arithmetic(Op::kFloormod, at, size);
  }

  const UOp* Position(int64_t size, int depth) {
    if (depth == 0 || random_.OneIn(4)) {
      if (core_id_ != nullptr && random_.OneIn(3)) return core_id_;
      if (variable_ != nullptr && random_.OneIn(6)) return variable_;
      if (!ranges_.empty() && !random_.OneIn(5)) return random_.Pick(ranges_);
      return context_->Index(random_.Between(-1, size));
    }
    if (random_.OneIn(10)) return ConvertTo(Value(Scalar::kI32, 1), Scalar::kIndex);
    const UOp* x = Position(size, depth - 1);
    // What is drawn is drawn in statements of its own: every compiler makes the same kernel.
    Op op = Op::kAdd;
    switch (random_.Between(0, 7)) {
      case 0:
        return Arithmetic(Op::kMul, x, random_.Between(-1, 4));
      case 1:
        return Arithmetic(Op::kFloordiv, x, random_.Between(1, 4));
      case 2:
        return Arithmetic(Op::kFloormod, x, random_.Between(1, 6));
      case 3:
        return Arithmetic(Op::kCmod, x, random_.Between(-3, 5));
      case 4:
        op = random_.OneIn(2) ? Op::kMax : Op::kMin;
        return b_.Make(op, {x, Position(size, depth - 1)});
      case 5:
        return Arithmetic(Op::kAdd, x, random_.Between(-2, 3));
      default:
        op = random_.OneIn(5) ? Op::kSub : Op::kAdd;
        return b_.Make(op, {x, Position(size, depth - 1)});
    }
  }

  const UOp* Arithmetic(Op op, const UOp* x, int64_t constant) {
    return b_.Make(op, {x, context_->Index(constant)});
  }

  const UOp* VectorPosition(int64_t size, int lanes) {
    std::vector<const UOp*> elements;
    for (int i = 0; i < lanes; ++i) {
      elements.push_back(context_->Index(random_.OneIn(2) ? i : random_.Between(-1, size)));
    }
    const UOp* offsets = b_.Make(Op::kStack, elements);
    const UOp* at = b_.Make(Op::kSplat, DType(Scalar::kIndex, lanes), {Position(size, 1)});
    return b_.Make(Op::kAdd, {at, offsets});
  }

  // --- Values -----------------------------------------------------------------------------------

  DType AnyValue() {
    DType dtype = random_.OneIn(8) ? DType(Scalar::kIndex) : AnyElement();
    return options_.vectors && random_.OneIn(3) ? dtype.with_lanes(Lanes()) : dtype;
  }

  const UOp* Constant(DType dtype) { return context_->Bits(dtype, random_.Bits(dtype.element())); }

  const UOp* ConvertTo(const UOp* value, DType dtype) {
    return value->dtype() == dtype ? value : b_.Make(Op::kCast, dtype, {value});
  }

  const UOp* Value(DType dtype, int depth) {
    if (depth <= 0 || random_.OneIn(5)) return LeafValue(dtype);
    if (options_.reduces && dtype.lanes <= 4 && random_.OneIn(7) && num_reduces_ < 4) {
      return Reduction(dtype);
    }
    if (dtype.is_vector() && random_.OneIn(5)) return Shuffle(dtype, depth - 1);
    if (!dtype.is_vector() && options_.vectors && random_.OneIn(8)) {
      const UOp* vector = Value(dtype.with_lanes(Lanes()), depth - 1);
      uint16_t lane = static_cast<uint16_t>(random_.Between(0, vector->dtype().lanes - 1));
      return b_.Make(Op::kLanes, {vector}, LanesArgument{{&lane, 1}});
    }
    for (int tries = 0; tries < 40; ++tries) {
      Op op = static_cast<Op>(random_.Between(0, kNumOps - 1));
      if (IsElementwise(op) && FitsOp(op, dtype)) return Elementwise(op, dtype, depth - 1);
    }
    return LeafValue(dtype);
  }

  bool FitsOp(Op op, DType dtype) {
    if (HasFlag(op, kTranscendental) && !options_.transcendentals) return false;
    if (InfoOf(op).dtype_rule == DTypeRule::kBoolOfOperands) return dtype.is_bool();
    if (op == Op::kBitcast) return !dtype.is_bool();
    if (op == Op::kCast || op == Op::kWhere) return true;
    if (HasFlag(op, kFloating) && !dtype.is_float()) return false;
    if (HasFlag(op, kInteger) && !dtype.is_integer()) return false;
    if (HasFlag(op, kIntegral) && dtype.is_float()) return false;
    return !HasFlag(op, kNumeric) || !dtype.is_bool();
  }

  const UOp* Elementwise(Op op, DType dtype, int depth) {
    if (op == Op::kCast) {
      return b_.Make(op, dtype, {Value(AnyElement().with_lanes(dtype.lanes), depth)});
    }
    if (op == Op::kBitcast) return BitcastTo(dtype, depth);
    if (op == Op::kWhere) {
      const UOp* condition = Value(DType(Scalar::kBool, dtype.lanes), depth);
      const UOp* x = Value(dtype, depth);
      return b_.Make(op, {condition, x, Value(dtype, depth)});
    }
    DType operand = dtype;
    if (InfoOf(op).dtype_rule == DTypeRule::kBoolOfOperands) {
      operand = AnyElement().with_lanes(dtype.lanes);
    }
    std::vector<const UOp*> sources;
    for (int i = 0; i < InfoOf(op).min_sources; ++i) sources.push_back(Value(operand, depth));
    return b_.Make(op, sources);
  }

  // Which NaN an op gives is not specified, so no NaN may turn into an integer.
  const UOp* BitcastTo(DType dtype, int depth) {
    std::vector<Scalar> fit;
    for (int i = 1; i < kNumScalars; ++i) {
      DType from(static_cast<Scalar>(i));
      bool is_half = from.scalar == Scalar::kF16 || from.scalar == Scalar::kBF16;
      if (from.is_bool() || from.size_bytes() != dtype.element().size_bytes()) continue;
      if (is_half && !options_.half_floats) continue;
      fit.push_back(from.scalar);
    }
    const UOp* x = Value(DType(random_.Pick(fit), dtype.lanes), depth);
    if (x != nullptr && x->dtype().is_float()) {
      const UOp* is_number = b_.Make(Op::kCmpEq, {x, x});
      x = b_.Make(Op::kWhere, {is_number, x, context_->Float(x->dtype(), 1)});
    }
    return b_.Make(Op::kBitcast, dtype, {x});
  }

  const UOp* Shuffle(DType dtype, int depth) {
    if (random_.OneIn(3)) return b_.Make(Op::kSplat, dtype, {Value(dtype.element(), depth)});
    if (random_.OneIn(2)) {
      std::vector<const UOp*> elements;
      for (int i = 0; i < dtype.lanes; ++i) elements.push_back(Value(dtype.element(), 0));
      return b_.Make(Op::kStack, elements);
    }
    const UOp* vector = Value(dtype.with_lanes(Lanes()), depth);
    if (vector == nullptr) return nullptr;
    std::vector<uint16_t> lanes;
    for (int i = 0; i < dtype.lanes; ++i) {
      lanes.push_back(static_cast<uint16_t>(random_.Between(0, vector->dtype().lanes - 1)));
    }
    return b_.Make(Op::kLanes, {vector}, LanesArgument{lanes});
  }

  const UOp* LeafValue(DType dtype) {
    if (random_.OneIn(2)) {
      std::vector<const UOp*> known;
      for (const UOp* value : values_) {
        if (value != nullptr && value->dtype() == dtype) known.push_back(value);
      }
      if (!known.empty()) return random_.Pick(known);
    }
    if (!random_.OneIn(3)) {
      if (const UOp* value = LoadOf(dtype)) return value;
    }
    if (dtype == DType(Scalar::kIndex) && random_.OneIn(2)) return Position(8, 1);
    if (!dtype.is_vector() && !ranges_.empty() && random_.OneIn(3)) {
      return ConvertTo(random_.Pick(ranges_), dtype);
    }
    return Constant(dtype);
  }

  const UOp* LoadOf(DType dtype) {
    Memory* memory = PickMemory(/*to_write=*/false, dtype);
    if (memory == nullptr) return nullptr;
    KernelBuilder::AccessOptions options;
    const UOp* position = nullptr;
    if (memory->element == dtype) {
      position = ShallowPosition(memory->size);
    } else if (random_.OneIn(4)) {
      position = VectorPosition(memory->size, dtype.lanes);
    } else {
      position = ShallowPosition(memory->size);
      options.lanes = dtype.lanes;
    }
    if (random_.OneIn(4)) {
      int gate_lanes = memory->element.is_vector() ? 1 : GateLanes(dtype.lanes);
      options.gate = Value(DType(Scalar::kBool, gate_lanes), 0);
      if (random_.OneIn(2)) options.alt = Constant(dtype);
    }
    const UOp* value = b_.Load(memory->node, {position}, options);
    values_.push_back(value);
    return value;
  }

  // Without loads, so that leaves end.
  const UOp* ShallowPosition(int64_t size) {
    const UOp* at = Position(size, 0);
    return random_.OneIn(3) ? Arithmetic(Op::kAdd, at, random_.Between(-1, 2)) : at;
  }

  // One or more reductions over one or two new loops; one of them is the value.
  const UOp* Reduction(DType dtype) {
    ++num_reduces_;
    std::vector<const UOp*> ranges, inputs;
    size_t num_values = values_.size();
    for (int64_t i = random_.Between(1, 2); i > 0; --i) {
      ranges.push_back(b_.Range(LoopEnd(), AxisKind::kReduce));
      ranges_.push_back(ranges.back());
    }
    for (int64_t i = random_.Between(1, 2); i > 0; --i) inputs.push_back(Value(dtype, 2));
    ranges_.resize(ranges_.size() - ranges.size());
    values_.resize(num_values);
    const UOp* result = nullptr;
    for (const UOp* input : inputs) {
      std::vector<ReduceKind> kinds = {ReduceKind::kAdd, ReduceKind::kMul, ReduceKind::kMax,
                                       ReduceKind::kMin};
      if (!dtype.is_float()) kinds.insert(kinds.end(), {ReduceKind::kAnd, ReduceKind::kOr});
      result = b_.Reduce(random_.Pick(kinds), input, ranges);
      results_.push_back(result);
    }
    for (const UOp* value : results_) values_.push_back(value);
    results_.clear();
    return result;
  }

  std::shared_ptr<Context> context_;
  KernelBuilder b_;
  RandomValues random_;
  GeneratorOptions options_;
  GeneratedKernel kernel_;
  std::vector<Memory> memories_;
  const UOp* variable_ = nullptr;
  const UOp* core_id_ = nullptr;
  std::vector<const UOp*> stores_;
  std::vector<const UOp*> ranges_;            // open loops
  std::vector<const UOp*> values_, results_;  // what can be used again here
  int num_reduces_ = 0;
};

}  // namespace

std::vector<absl::Span<std::byte>> GeneratedKernel::Spans(Buffers& of) const {
  std::vector<absl::Span<std::byte>> spans;
  for (std::vector<std::byte>& buffer : of) spans.push_back(absl::MakeSpan(buffer));
  return spans;
}

absl::StatusOr<GeneratedKernel> GenerateKernel(uint64_t seed, std::shared_ptr<Context> context,
                                               const GeneratorOptions& options) {
  return Generator(seed, std::move(context), options).Run();
}

absl::StatusOr<Buffers> Interpret(const UOp* sink, const GeneratedKernel& kernel) {
  Buffers buffers = kernel.buffers;
  EvaluateOptions options;
  options.variables = kernel.variables;
  options.max_steps = 100'000'000;
  SVOD_RETURN_IF_ERROR(Evaluate(sink, kernel.Spans(buffers), options));
  return buffers;
}

std::string FirstDifference(const GeneratedKernel& kernel, const Buffers& got,
                            const Buffers& expected) {
  for (size_t slot = 0; slot < expected.size(); ++slot) {
    const DType dtype = kernel.elements[slot];
    const auto bytes = static_cast<size_t>(dtype.size_bytes());
    for (size_t i = 0; i < expected[slot].size() / bytes; ++i) {
      uint64_t a = 0, b = 0;
      std::memcpy(&a, got[slot].data() + i * bytes, bytes);
      std::memcpy(&b, expected[slot].data() + i * bytes, bytes);
      if (!SameLanes(dtype, {a}, {b})) {
        return absl::StrCat("buffer ", slot, " element ", i, " : ", ToString(dtype), ", got 0x",
                            absl::Hex(a), ", expected 0x", absl::Hex(b));
      }
    }
  }
  return "";
}

}  // namespace svod
