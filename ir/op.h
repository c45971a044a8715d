// Op: the enum of UOp kinds and the table that describes each, expanded from op.def.
// Included by whoever reads nodes. Must not know nodes themselves.
#ifndef SVOD_IR_OP_H_
#define SVOD_IR_OP_H_

#include <cstdint>
#include <optional>

#include "absl/strings/string_view.h"

namespace svod {

enum class Op : uint8_t {
#define SVOD_OP(Enum, text, min_src, max_src, arg, cls, flags, rule, meaning) k##Enum,
#include "ir/op.def"
#undef SVOD_OP
};

// Which alternative of Argument (uop.h) a node carries.
enum class ArgumentKind : uint8_t {
  kNone,
  kConst,
  kVariable,
  kParam,
  kBuffer,
  kScratch,
  kAlignment,
  kAxis,
  kReduce,
  kFunction,
  kLanes,
  kView,
  kCustom,
  kAxes,
  kReduceAxes,
  kScatter,
};

enum class OpClass : uint8_t {
  kValue,
  kBuffer,
  kMemory,
  kControl,
  kVector,
  kConversion,
  kUnary,
  kBinary,
  kTernary,
  kDot,
  kTensor,
  kPlan,
};

enum OpFlag : uint32_t {
  kPure = 0,
  kCommutative = 1 << 0,
  kReads = 1 << 1,
  kWrites = 1 << 2,          // an effect on memory
  kEffect = 1 << 3,          // an effect in the order of the program (end, call, ...)
  kNumeric = 1 << 4,         // operands are integers or floats, not bool
  kInteger = 1 << 5,         // operands are integers, not bool
  kIntegral = 1 << 6,        // operands are integers or bool
  kFloating = 1 << 7,        // operands are floats
  kTranscendental = 1 << 8,  // a decomposition replaces it before lowering
};

// How the dtype of a node follows from its sources.
enum class DTypeRule : uint8_t {
  kExplicit,        // the builder is told
  kVoid,            // no value
  kIndex,           // index
  kFirstSource,     // that of source 0
  kSameAsOperands,  // all sources have it
  kBoolOfOperands,  // sources agree; bool with as many lanes
  kWhere,           // source 0 is bool; sources 1 and 2 have it
  kStack,           // scalar sources agree; a vector of them
  kLanes,           // source 0's scalar with as many lanes as are listed
  kPick,            // source 0's scalar with source 1's lanes
  kDot,             // that of source 2, the accumulator; sources 0 and 1 are i32 with its lanes
};

struct OpInfo {
  const char* name;  // C++ spelling, "CmpLt"
  const char* text;  // spelling in the text form, "cmplt"
  int min_sources;
  int max_sources;  // -1: any number
  ArgumentKind argument;
  OpClass op_class;
  uint32_t flags;
  DTypeRule dtype_rule;
  const char* meaning;  // one line
};

inline constexpr OpInfo kOpInfos[] = {
#define SVOD_OP(Enum, text, min_src, max_src, arg, cls, flags, rule, meaning)                   \
  {#Enum,           text,   min_src, max_src, ArgumentKind::arg, OpClass::cls, uint32_t(flags), \
   DTypeRule::rule, meaning},
#include "ir/op.def"
#undef SVOD_OP
};

inline constexpr int kNumOps = sizeof(kOpInfos) / sizeof(kOpInfos[0]);

constexpr const OpInfo& InfoOf(Op op) { return kOpInfos[static_cast<int>(op)]; }
constexpr bool HasFlag(Op op, OpFlag flag) { return (InfoOf(op).flags & flag) != 0; }
// Elementwise arithmetic: unary, binary and ternary rows and the two conversions.
constexpr bool IsElementwise(Op op) {
  OpClass c = InfoOf(op).op_class;
  return c == OpClass::kUnary || c == OpClass::kBinary || c == OpClass::kTernary ||
         c == OpClass::kConversion;
}
// Lane l of the result follows from lane l of the sources: elementwise arithmetic and dot products.
constexpr bool IsLanewise(Op op) {
  return IsElementwise(op) || InfoOf(op).op_class == OpClass::kDot;
}
// Has an effect, and so is performed even if nothing uses its value.
constexpr bool IsEffect(Op op) { return (InfoOf(op).flags & (kWrites | kEffect)) != 0; }

// The op that the text form spells `text`; nullopt if there is none.
std::optional<Op> FindOp(absl::string_view text);

}  // namespace svod

#endif  // SVOD_IR_OP_H_
