#include "plan/describe_schedule.h"

#include <algorithm>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/linearize.h"
#include "ir/ranges.h"
#include "ir/shape.h"
#include "ir/status_macros.h"
#include "plan/graph_order.h"

namespace svod {
namespace {

// "x", "h", or "b3" for a buffer without a name.
std::string NameOf(const Function& graph, const UOp* buffer) {
  if (const auto* param = std::get_if<ParamArgument>(&buffer->argument())) {
    return param->name.empty() ? absl::StrCat("p", param->slot) : std::string(param->name);
  }
  auto note = graph.notes.find(buffer);
  if (note != graph.notes.end() && !note->second.name.empty()) return note->second.name;
  if (buffer->op() == Op::kBuffer) return absl::StrCat("b", buffer->arg<BufferArgument>().id);
  return absl::StrCat("part of ", NameOf(graph, BaseBuffer(buffer->source(0))));
}

absl::string_view CalleeOf(const UOp* op) {
  if (op->op() == Op::kCall) return op->source(0)->arg<FunctionArgument>().name;
  if (op->op() == Op::kCustomFunction) return op->arg<CustomArgument>().kind;
  return InfoOf(op->op()).text;
}

std::string Count(size_t number, absl::string_view what) {
  return absl::StrCat(number, " ", what, number == 1 ? "" : "s");
}

}  // namespace

absl::StatusOr<std::string> DescribeLoops(const UOp* sink) {
  SVOD_ASSIGN_OR_RETURN(LinearKernel linear, Linearize(sink));
  std::string text;
  std::vector<bool> has_inner;  // by open loop
  bool is_first = true;         // in the loop that is open
  for (const Step& step : linear.steps) {
    if (step.node->op() == Op::kCoreId) {
      text = absl::StrCat("cores ", ToString(step.node->source(0)), ": ", text);
    }
    if (step.kind == Step::Kind::kLoopBegin) {
      if (!is_first) {
        text += "; ";
      } else if (!has_inner.empty()) {
        text += " { ";
      }
      if (!has_inner.empty()) has_inner.back() = true;
      bool is_reduce = step.node->arg<AxisArgument>().kind == AxisKind::kReduce;
      absl::StrAppend(&text, is_reduce ? "reduce " : "loop ", ToString(step.node->source(0)));
      has_inner.push_back(false);
      is_first = true;
    } else if (step.kind == Step::Kind::kLoopEnd) {
      if (has_inner.back()) text += " }";
      has_inner.pop_back();
      is_first = false;
    }
  }
  return text.empty() ? "once" : text;
}

absl::StatusOr<std::string> DescribeSchedule(const Schedule& schedule, absl::string_view name,
                                             const MemoryPlan& memory, const Function* source) {
  const Function& graph = *schedule.module.Find(name);
  SVOD_ASSIGN_OR_RETURN(GraphOps ops, OrderGraph(graph));
  std::vector<std::vector<size_t>> levels;
  std::vector<size_t> level_of(ops.ops.size());
  for (size_t i = 0; i < ops.ops.size(); ++i) {
    for (size_t before : ops.ops[i].after)
      level_of[i] = std::max(level_of[i], level_of[before] + 1);
    levels.resize(std::max(levels.size(), level_of[i] + 1));
    levels[level_of[i]].push_back(i);
  }

  std::string kernels;
  absl::flat_hash_set<const UOp*> seen;
  for (const GraphOp& op : ops.ops) {
    if (op.node->op() != Op::kCall || !seen.insert(op.node->source(0)).second) continue;
    SVOD_ASSIGN_OR_RETURN(std::string loops, DescribeLoops(op.node->source(0)));
    absl::StrAppend(&kernels, "  ", CalleeOf(op.node), ": ", loops, "\n");
  }
  std::string text = absl::StrCat("graph @", name, ": ", Count(seen.size(), "kernel"), ", ",
                                  Count(ops.ops.size(), "op"), ", ", Count(levels.size(), "level"),
                                  "; intermediate values take ", memory.peak_bytes(), " bytes, ",
                                  memory.sum_bytes, " without sharing\n");
  if (!kernels.empty()) absl::StrAppend(&text, "kernels\n", kernels);
  for (size_t level = 0; level < levels.size(); ++level) {
    absl::StrAppend(&text, "level ", level, "\n");
    for (size_t i : levels[level]) {
      std::vector<std::string> written, read;
      for (const GraphOp::Operand& operand : ops.ops[i].operands) {
        (operand.writes ? written : read).push_back(NameOf(graph, operand.buffer));
      }
      absl::StrAppend(&text, "  ", CalleeOf(ops.ops[i].node), ": ", absl::StrJoin(written, ", "),
                      " <- ", absl::StrJoin(read, ", "), "\n");
    }
  }
  if (!memory.buffers.empty()) text += "buffers\n";
  for (const BufferPlacement& buffer : memory.buffers) {
    absl::StrAppend(&text, "  ", NameOf(graph, buffer.buffer), ": ",
                    ShapeToString(buffer.buffer->dtype(), DimensionsOf(buffer.buffer)), ", ",
                    buffer.bytes, " bytes, levels ", buffer.first_level, " to ", buffer.last_level);
    if (buffer.offset < 0) {
      text += ", memory of its own";
    } else {
      absl::StrAppend(&text, ", arena at ", buffer.offset);
    }
    if (buffer.reuses != nullptr) {
      absl::StrAppend(&text, ", in place of ", NameOf(graph, buffer.reuses));
    }
    text += "\n";
  }
  if (!schedule.places.empty()) text += "values\n";
  for (const PlaceNote& place : schedule.places) {
    std::string value(InfoOf(place.value->op()).text);
    if (source != nullptr) {
      auto note = source->notes.find(place.value);
      if (note != source->notes.end() && !note->second.name.empty()) {
        value = absl::StrCat("%", note->second.name);
      }
    }
    absl::StrAppend(&text, "  ", value, ": ", ToString(place.place), " in ", place.kernel, "; ",
                    place.reason, "\n");
  }
  return text;
}

}  // namespace svod
