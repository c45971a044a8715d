// Evaluate: a kernel's linear steps become instructions on one dense array of 64-bit slots, a slot
// a lane, so that the loop that runs them neither hashes nor allocates.
#include "ir/evaluate.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "ir/linearize.h"
#include "ir/program.h"
#include "ir/ranges.h"
#include "ir/status_macros.h"

namespace svod {
namespace {

// Slots and scratch memory beyond this are refused rather than asked of the system [bytes].
constexpr int64_t kMaxBytes = int64_t{1} << 30;

using Variables = absl::Span<const std::pair<std::string, int64_t>>;

absl::Status MissingValue(const UOp* node) {
  if (node->op() != Op::kDefineVar) {
    return absl::InvalidArgumentError(
        absl::StrCat("evaluate: operand, got ", InfoOf(node->op()).text, ", expected a value"));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("evaluate: variable '", node->arg<VariableArgument>().name, "' has no value"));
}

// Nothing for a variable without a value; that is an error only where it is read, which a BIND does
// not do.
absl::StatusOr<std::optional<int64_t>> VariableValue(const UOp* node, Variables variables) {
  const auto& variable = node->arg<VariableArgument>();
  for (const auto& [name, value] : variables) {
    if (name != variable.name) continue;
    if (value < variable.min || value > variable.max) {
      return absl::OutOfRangeError(absl::StrCat("evaluate: variable '", variable.name, "', got ",
                                                value, ", expected ", variable.min, " to ",
                                                variable.max));
    }
    return value;
  }
  return std::nullopt;
}

struct Memory {
  std::byte* data = nullptr;
  uint64_t num_elements = 0;
  DType element;
};

enum class Code : uint8_t {
  kElementwise,
  kGather,     // dst[i] = slots[gathers[src[0] + i]]: stack, splat, lanes
  kPick,       // src: table of operand.lanes lanes, numbers
  kLoad,       // src: position, gate, alt
  kStore,      // src: position, gate, value
  kLoopBegin,  // dst: counter, src[0]: extent; goes to target, past the loop, when it is empty
  kLoopEnd,    // goes to target, the loop's first instruction, while the counter is below
  kInit,       // dst: accumulator of a REDUCE
  kFold,       // src[0]: value
  kFinish,     // src[0]: accumulator; rounds f32 accumulators of f16 and bf16
};

constexpr uint32_t kNone = ~uint32_t{0};

struct Instruction {
  Code code;
  Op op;
  DType dtype;    // of what it computes, stores or, for kInit and kFold, accumulates
  DType operand;  // elementwise: see EvaluateScalar; kFold and kFinish: what it reads
  uint16_t num_sources = 0;
  uint16_t position_lanes = 1, gate_lanes = 1;
  uint32_t memory = kNone;
  uint32_t dst = kNone;
  uint32_t src[3] = {kNone, kNone, kNone};
  uint32_t target = kNone;
  uint64_t identity = 0;
};

// f16 and bf16 reductions accumulate in f32.
DType AccumulatorOf(DType dtype) {
  bool narrow = dtype.scalar == Scalar::kF16 || dtype.scalar == Scalar::kBF16;
  return narrow ? DType(Scalar::kF32, dtype.lanes) : dtype;
}

uint64_t ReadScalar(const Memory& memory, uint64_t index) {
  const int size = InfoOf(memory.element.scalar).size_bytes;
  uint64_t bits = 0;
  std::memcpy(&bits, memory.data + index * static_cast<uint64_t>(size), static_cast<size_t>(size));
  return memory.element.is_bool() ? bits != 0 : bits;
}

void WriteScalar(const Memory& memory, uint64_t index, uint64_t bits) {
  const int size = InfoOf(memory.element.scalar).size_bytes;
  std::memcpy(memory.data + index * static_cast<uint64_t>(size), &bits, static_cast<size_t>(size));
}

class Machine {
 public:
  absl::Status Load(const UOp* sink, absl::Span<const absl::Span<std::byte>> buffers,
                    const EvaluateOptions& options);
  absl::Status Run(const EvaluateOptions& options);

 private:
  absl::Status AddStep(const Step& step, const EvaluateOptions& options);
  absl::Status AddLoop(const UOp* range);
  absl::Status EndLoop(const UOp* range);
  absl::Status AddAccess(const UOp* node);
  absl::StatusOr<uint32_t> AddSlots(int lanes);
  absl::StatusOr<uint32_t> SlotOf(const UOp* node) const;
  absl::StatusOr<uint32_t> MemoryOf(const UOp* node);
  absl::Status AddParam(const UOp* param, absl::Span<std::byte> bytes, Variables variables);
  absl::Status AddScratch(const UOp* scratch);
  absl::Status RunCore(int64_t max_steps);
  void Access(const Instruction& in);

  std::vector<Instruction> code_;
  std::vector<uint64_t> slots_;
  std::vector<uint32_t> gathers_;
  std::vector<Memory> memories_;
  std::vector<std::vector<std::byte>> scratch_;
  int64_t scratch_bytes_ = 0;
  absl::flat_hash_map<const UOp*, uint32_t> slot_of_;
  absl::flat_hash_map<const UOp*, uint32_t> memory_of_;
  absl::flat_hash_map<const UOp*, uint32_t> begin_of_;        // RANGE -> its kLoopBegin
  absl::flat_hash_map<const UOp*, uint32_t> accumulator_of_;  // REDUCE -> slot
  // The reductions that start where a RANGE begins and those that fold where it ends.
  absl::flat_hash_map<const UOp*, std::vector<const UOp*>> starts_, folds_;
  const UOp* core_id_ = nullptr;
  int64_t num_cores_ = 1;
  int64_t steps_ = 0;
};

absl::StatusOr<uint32_t> Machine::AddSlots(int lanes) {
  size_t first = slots_.size();
  if ((first + static_cast<size_t>(lanes)) * sizeof(uint64_t) > size_t{kMaxBytes}) {
    return absl::ResourceExhaustedError("evaluate: the kernel's values need more than 1 GiB");
  }
  slots_.resize(first + static_cast<size_t>(lanes));
  return static_cast<uint32_t>(first);
}

absl::StatusOr<uint32_t> Machine::SlotOf(const UOp* node) const {
  auto it = slot_of_.find(node);
  if (it != slot_of_.end()) return it->second;
  return MissingValue(node);
}

absl::Status Machine::AddParam(const UOp* param, absl::Span<std::byte> bytes, Variables variables) {
  SVOD_RETURN_IF_ERROR(MaxElements(param).status());  // so that the product below fits
  int64_t elements = 1;
  for (const UOp* dimension : param->sources()) {
    SVOD_ASSIGN_OR_RETURN(int64_t size, EvaluateIndex(dimension, variables));
    elements *= std::max<int64_t>(size, 0);
  }
  int64_t expected = elements * param->dtype().size_bytes();
  if (static_cast<int64_t>(bytes.size()) < expected) {
    const auto& argument = param->arg<ParamArgument>();
    return absl::InvalidArgumentError(absl::StrCat("evaluate: buffer ", argument.slot, " ('",
                                                   argument.name, "'), got ", bytes.size(),
                                                   " bytes, expected at least ", expected));
  }
  memory_of_[param] = static_cast<uint32_t>(memories_.size());
  memories_.push_back({bytes.data(), static_cast<uint64_t>(elements), param->dtype()});
  return absl::OkStatus();
}

absl::Status Machine::AddScratch(const UOp* scratch) {
  int64_t size = scratch->arg<ScratchArgument>().size;
  // A size is at most 2^40 elements of 8 KiB, so that the product fits.
  int64_t bytes = size * scratch->dtype().size_bytes();
  scratch_bytes_ += bytes;
  if (bytes > kMaxBytes || scratch_bytes_ > kMaxBytes) {
    return absl::ResourceExhaustedError("evaluate: the kernel's scratch needs more than 1 GiB");
  }
  memory_of_[scratch] = static_cast<uint32_t>(memories_.size());
  scratch_.emplace_back(static_cast<size_t>(bytes));
  memories_.push_back({scratch_.back().data(), static_cast<uint64_t>(size), scratch->dtype()});
  return absl::OkStatus();
}

absl::StatusOr<uint32_t> Machine::MemoryOf(const UOp* node) {
  const UOp* base = BaseBuffer(node);
  auto it = memory_of_.find(base);
  if (it != memory_of_.end()) return it->second;
  if (base->op() != Op::kReg && base->op() != Op::kLocal) {
    return absl::InvalidArgumentError(absl::StrCat("evaluate: a kernel cannot access a ",
                                                   InfoOf(base->op()).text,
                                                   ", expected param, reg or local"));
  }
  SVOD_RETURN_IF_ERROR(AddScratch(base));
  return memory_of_[base];
}

absl::Status Machine::Load(const UOp* sink, absl::Span<const absl::Span<std::byte>> buffers,
                           const EvaluateOptions& options) {
  SVOD_ASSIGN_OR_RETURN(std::vector<const UOp*> params, ParamsOf(sink));
  if (buffers.size() < params.size()) {
    return absl::InvalidArgumentError(absl::StrCat("evaluate: number of buffers, got ",
                                                   buffers.size(), ", expected ", params.size()));
  }
  for (size_t i = 0; i < params.size(); ++i) {
    SVOD_RETURN_IF_ERROR(AddParam(params[i], buffers[i], options.variables));
  }

  SVOD_ASSIGN_OR_RETURN(LinearKernel linear, Linearize(sink));
  // A reduction starts with the outermost of its loops and folds at the end of the innermost.
  std::vector<const UOp*> reduces;
  absl::flat_hash_map<const UOp*, size_t> begins;
  for (size_t i = 0; i < linear.steps.size(); ++i) {
    const Step& step = linear.steps[i];
    if (step.kind == Step::Kind::kLoopBegin) begins[step.node] = i;
    if (step.kind == Step::Kind::kCompute && step.node->op() == Op::kReduce) {
      reduces.push_back(step.node);
    }
  }
  for (const UOp* reduce : reduces) {
    auto order = [&](const UOp* a, const UOp* b) { return begins[a] < begins[b]; };
    auto ranges = reduce->sources().subspan(1);
    starts_[*std::min_element(ranges.begin(), ranges.end(), order)].push_back(reduce);
    folds_[*std::max_element(ranges.begin(), ranges.end(), order)].push_back(reduce);
  }
  for (const Step& step : linear.steps) SVOD_RETURN_IF_ERROR(AddStep(step, options));
  return absl::OkStatus();
}

absl::Status Machine::AddLoop(const UOp* range) {
  for (const UOp* reduce : starts_[range]) {
    DType accumulator = AccumulatorOf(reduce->dtype());
    SVOD_ASSIGN_OR_RETURN(uint32_t slot, AddSlots(accumulator.lanes));
    accumulator_of_[reduce] = slot;
    Instruction in{Code::kInit, Op::kReduce, accumulator, accumulator};
    in.dst = slot;
    in.identity = ReduceIdentity(reduce->arg<ReduceArgument>().kind, accumulator);
    code_.push_back(in);
  }
  SVOD_ASSIGN_OR_RETURN(uint32_t counter, AddSlots(1));
  slot_of_[range] = counter;
  begin_of_[range] = static_cast<uint32_t>(code_.size());
  Instruction in{Code::kLoopBegin, Op::kRange, Scalar::kIndex, Scalar::kIndex};
  in.dst = counter;
  SVOD_ASSIGN_OR_RETURN(in.src[0], SlotOf(range->source(0)));
  code_.push_back(in);
  return absl::OkStatus();
}

absl::Status Machine::EndLoop(const UOp* range) {
  for (const UOp* reduce : folds_[range]) {
    DType accumulator = AccumulatorOf(reduce->dtype());
    Instruction in{Code::kFold, ReduceOp(reduce->arg<ReduceArgument>().kind), accumulator,
                   reduce->dtype()};
    in.dst = accumulator_of_[reduce];
    SVOD_ASSIGN_OR_RETURN(in.src[0], SlotOf(reduce->source(0)));
    code_.push_back(in);
  }
  uint32_t begin = begin_of_[range];
  Instruction in{Code::kLoopEnd, Op::kRange, Scalar::kIndex, Scalar::kIndex};
  in.dst = code_[begin].dst;
  in.src[0] = code_[begin].src[0];
  in.target = begin + 1;
  code_.push_back(in);
  code_[begin].target = static_cast<uint32_t>(code_.size());
  return absl::OkStatus();
}

absl::Status Machine::AddAccess(const UOp* node) {
  const UOp* index = node->source(0);
  bool is_load = node->op() == Op::kLoad;
  Instruction in{is_load ? Code::kLoad : Code::kStore, node->op(),
                 is_load ? node->dtype() : node->source(1)->dtype(), Scalar::kIndex};
  SVOD_ASSIGN_OR_RETURN(in.memory, MemoryOf(index));
  SVOD_ASSIGN_OR_RETURN(in.src[0], SlotOf(index->source(1)));
  in.position_lanes = index->source(1)->dtype().lanes;
  if (index->num_sources() == 3) {
    SVOD_ASSIGN_OR_RETURN(in.src[1], SlotOf(index->source(2)));
    in.gate_lanes = index->source(2)->dtype().lanes;
  }
  if (node->num_sources() == 2) {
    SVOD_ASSIGN_OR_RETURN(in.src[2], SlotOf(node->source(1)));
  }
  if (is_load) {
    SVOD_ASSIGN_OR_RETURN(in.dst, AddSlots(in.dtype.lanes));
    slot_of_[node] = in.dst;
  }
  code_.push_back(in);
  return absl::OkStatus();
}

absl::Status Machine::AddStep(const Step& step, const EvaluateOptions& options) {
  const UOp* node = step.node;
  if (step.kind == Step::Kind::kLoopBegin) return AddLoop(node);
  if (step.kind == Step::Kind::kLoopEnd) return EndLoop(node);
  const Op op = node->op();
  const OpClass op_class = InfoOf(op).op_class;
  if (op_class == OpClass::kPlan) {
    return absl::InvalidArgumentError(
        absl::StrCat("evaluate: a kernel cannot hold a ", InfoOf(op).text));
  }
  if (op == Op::kLoad || op == Op::kStore) return AddAccess(node);
  bool has_value = op_class == OpClass::kValue || op_class == OpClass::kVector ||
                   op == Op::kReduce || IsLanewise(op);
  if (!has_value) return absl::OkStatus();

  if (op == Op::kDefineVar) {
    SVOD_ASSIGN_OR_RETURN(std::optional<int64_t> value, VariableValue(node, options.variables));
    if (!value.has_value()) return absl::OkStatus();
    SVOD_ASSIGN_OR_RETURN(uint32_t slot, AddSlots(1));
    slot_of_[node] = slot;
    slots_[slot] = static_cast<uint64_t>(*value);
    return absl::OkStatus();
  }
  SVOD_ASSIGN_OR_RETURN(uint32_t dst, AddSlots(node->dtype().lanes));
  slot_of_[node] = dst;
  const auto lanes = static_cast<size_t>(node->dtype().lanes);
  if (op == Op::kConst) {
    std::fill_n(slots_.begin() + dst, lanes, node->arg<ConstArgument>().bits);
    return absl::OkStatus();
  }
  if (op == Op::kBind) {
    slots_[dst] = static_cast<uint64_t>(ConstInt(node->source(1)));
    return absl::OkStatus();
  }
  if (op == Op::kCoreId) {
    if (core_id_ != nullptr) {
      return absl::InvalidArgumentError("evaluate: a kernel has one core_id, got a second");
    }
    core_id_ = node;
    SVOD_ASSIGN_OR_RETURN(num_cores_, EvaluateIndex(node->source(0), options.variables));
    return absl::OkStatus();
  }
  Instruction in{Code::kElementwise, op, node->dtype(), node->sources().back()->dtype()};
  in.dst = dst;
  in.num_sources = static_cast<uint16_t>(node->num_sources());
  if (op == Op::kPick) {
    in.code = Code::kPick;
    in.operand = node->source(0)->dtype();
    for (int i = 0; i < 2; ++i) {
      SVOD_ASSIGN_OR_RETURN(in.src[i], SlotOf(node->source(i)));
    }
  } else if (op_class == OpClass::kVector) {
    in.code = Code::kGather;
    in.src[0] = static_cast<uint32_t>(gathers_.size());
    for (size_t i = 0; i < lanes; ++i) {
      const UOp* source = node->source(op == Op::kStack ? static_cast<int>(i) : 0);
      SVOD_ASSIGN_OR_RETURN(uint32_t from, SlotOf(source));
      if (op == Op::kLanes) from += node->arg<LanesArgument>().lanes[i];
      gathers_.push_back(from);
    }
  } else if (op == Op::kReduce) {
    in.code = Code::kFinish;
    in.operand = AccumulatorOf(node->dtype());
    in.src[0] = accumulator_of_[node];
  } else {
    for (int i = 0; i < node->num_sources(); ++i) {
      SVOD_ASSIGN_OR_RETURN(in.src[i], SlotOf(node->source(i)));
    }
  }
  code_.push_back(in);
  return absl::OkStatus();
}

// Lane by lane: an element outside reads as alt or 0 and is not written.
void Machine::Access(const Instruction& in) {
  const Memory& memory = memories_[in.memory];
  const auto element_lanes = static_cast<uint64_t>(memory.element.lanes);
  for (uint64_t lane = 0; lane < static_cast<uint64_t>(in.dtype.lanes); ++lane) {
    bool inside = in.src[1] == kNone || slots_[in.src[1] + (in.gate_lanes > 1 ? lane : 0)] != 0;
    uint64_t element = slots_[in.src[0] + (in.position_lanes > 1 ? lane : 0)];
    if (in.position_lanes == 1 && element_lanes == 1) element += lane;
    inside = inside && element < memory.num_elements;  // negative positions are huge
    uint64_t at = element_lanes == 1 ? element : element * element_lanes + lane;
    if (in.code == Code::kStore) {
      if (inside) WriteScalar(memory, at, slots_[in.src[2] + lane]);
    } else if (inside) {
      slots_[in.dst + lane] = ReadScalar(memory, at);
    } else {
      slots_[in.dst + lane] = in.src[2] == kNone ? 0 : slots_[in.src[2] + lane];
    }
  }
}

absl::Status Machine::RunCore(int64_t max_steps) {
  uint64_t* slots = slots_.data();
  size_t pc = 0;
  while (pc < code_.size()) {
    const Instruction& in = code_[pc++];
    const uint32_t lanes = in.dtype.lanes;
    steps_ += lanes;
    if (steps_ > max_steps) {
      return absl::ResourceExhaustedError(
          absl::StrCat("evaluate: more than ", max_steps, " steps"));
    }
    switch (in.code) {
      case Code::kElementwise:
        for (uint32_t lane = 0; lane < lanes; ++lane) {
          uint64_t operands[3] = {};
          for (int i = 0; i < in.num_sources; ++i) operands[i] = slots[in.src[i] + lane];
          slots[in.dst + lane] =
              EvaluateScalar(in.op, in.dtype, in.operand, {operands, in.num_sources});
        }
        break;
      case Code::kGather:
        for (uint32_t lane = 0; lane < lanes; ++lane) {
          slots[in.dst + lane] = slots[gathers_[in.src[0] + lane]];
        }
        break;
      case Code::kPick:
        for (uint32_t lane = 0; lane < lanes; ++lane) {
          uint64_t number = slots[in.src[1] + lane] & static_cast<uint64_t>(in.operand.lanes - 1);
          slots[in.dst + lane] = slots[in.src[0] + number];
        }
        break;
      case Code::kLoad:
      case Code::kStore:
        Access(in);
        break;
      case Code::kLoopBegin:
        slots[in.dst] = 0;
        if (static_cast<int64_t>(slots[in.src[0]]) <= 0) pc = in.target;
        break;
      case Code::kLoopEnd:
        if (++slots[in.dst] < slots[in.src[0]]) pc = in.target;
        break;
      case Code::kInit:
        std::fill_n(slots + in.dst, lanes, in.identity);
        break;
      case Code::kFold:
        for (uint32_t lane = 0; lane < lanes; ++lane) {
          uint64_t value = slots[in.src[0] + lane];
          if (in.operand != in.dtype) {
            value = EvaluateScalar(Op::kCast, in.dtype, in.operand, {value});
          }
          slots[in.dst + lane] =
              EvaluateScalar(in.op, in.dtype, in.dtype, {slots[in.dst + lane], value});
        }
        break;
      case Code::kFinish:
        for (uint32_t lane = 0; lane < lanes; ++lane) {
          uint64_t value = slots[in.src[0] + lane];
          slots[in.dst + lane] = in.operand == in.dtype
                                     ? value
                                     : EvaluateScalar(Op::kCast, in.dtype, in.operand, {value});
        }
        break;
    }
  }
  return absl::OkStatus();
}

absl::Status Machine::Run(const EvaluateOptions& options) {
  int64_t first = 0, last = num_cores_;
  if (options.core_id >= 0) {
    if (options.core_id >= num_cores_) {
      return absl::OutOfRangeError(absl::StrCat("evaluate: core id, got ", options.core_id,
                                                ", expected less than the launch size ",
                                                num_cores_));
    }
    first = options.core_id;
    last = first + 1;
  }
  for (int64_t core = first; core < last; ++core) {
    if (core_id_ != nullptr) slots_[slot_of_[core_id_]] = static_cast<uint64_t>(core);
    for (std::vector<std::byte>& scratch : scratch_) {
      std::fill(scratch.begin(), scratch.end(), std::byte{0});
      steps_ += static_cast<int64_t>(scratch.size() / 64);
    }
    ++steps_;  // so that a huge launch of an empty kernel ends too
    SVOD_RETURN_IF_ERROR(RunCore(options.max_steps));
    if (steps_ > options.max_steps) {
      return absl::ResourceExhaustedError(
          absl::StrCat("evaluate: more than ", options.max_steps, " steps"));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Evaluate(const UOp* sink, absl::Span<const absl::Span<std::byte>> buffers,
                      const EvaluateOptions& options) {
  if (sink == nullptr || sink->op() != Op::kSink) {
    return absl::InvalidArgumentError("evaluate: root, expected the sink of a kernel");
  }
  Machine machine;
  SVOD_RETURN_IF_ERROR(machine.Load(sink, buffers, options));
  return machine.Run(options);
}

absl::StatusOr<int64_t> EvaluateIndex(const UOp* node, Variables variables) {
  if (node->dtype() != DType(Scalar::kIndex)) {
    return absl::InvalidArgumentError(absl::StrCat("evaluate: index expression, got a ",
                                                   ToString(node->dtype()), ", expected index"));
  }
  absl::flat_hash_map<const UOp*, uint64_t> values;
  for (const UOp* step : Toposort(node)) {
    const Op op = step->op();
    if (step->dtype().is_vector()) {
      return absl::InvalidArgumentError("evaluate: index expression, got a vector");
    }
    if (op == Op::kConst) {
      values[step] = step->arg<ConstArgument>().bits;
    } else if (op == Op::kBind) {
      values[step] = values[step->source(1)];
    } else if (op == Op::kDefineVar) {
      SVOD_ASSIGN_OR_RETURN(std::optional<int64_t> value, VariableValue(step, variables));
      if (value.has_value()) values[step] = static_cast<uint64_t>(*value);
    } else if (IsElementwise(op)) {
      std::vector<uint64_t> operands;
      for (const UOp* source : step->sources()) {
        auto it = values.find(source);
        if (it == values.end()) return MissingValue(source);
        operands.push_back(it->second);
      }
      values[step] = EvaluateScalar(op, step->dtype(), step->sources().back()->dtype(), operands);
    } else {
      return absl::InvalidArgumentError(
          absl::StrCat("evaluate: index expression, got a ", InfoOf(op).text,
                       ", expected constants, variables and arithmetic"));
    }
  }
  auto it = values.find(node);
  if (it == values.end()) return MissingValue(node);
  return static_cast<int64_t>(it->second);
}

}  // namespace svod
