#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/lexer.h"
#include "ir/linearize.h"
#include "ir/literal.h"
#include "ir/print_lines.h"
#include "ir/shape.h"
#include "ir/status_macros.h"
#include "ir/syntax.h"
#include "ir/text.h"

namespace svod {
namespace {

bool IsNumbered(absl::string_view name) {
  return std::all_of(name.begin(), name.end(), absl::ascii_isdigit);
}

// `name` with '_' for what names may not hold.
std::string Sanitized(absl::string_view name, bool (*is_name_char)(char)) {
  std::string result(name);
  for (char& c : result) {
    if (!is_name_char(c)) c = '_';
  }
  return result;
}

// Hands out names, each once.
class Names {
 public:
  std::string Unique(const std::string& wanted) {
    std::string name = wanted;
    for (int& i = suffixes_[wanted]; !taken_.insert(name).second;) {
      name = absl::StrCat(wanted, ".", ++i);
    }
    return name;
  }
  std::string Number() {
    std::string name;
    do {
      name = absl::StrCat(next_++);
    } while (!taken_.insert(name).second);
    return name;
  }

 private:
  absl::flat_hash_set<std::string> taken_;
  absl::flat_hash_map<std::string, int> suffixes_;
  int64_t next_ = 0;
};

using Notes = absl::flat_hash_map<const UOp*, NodeNote>;
using Labels = absl::flat_hash_map<const UOp*, std::string>;  // SINK of a kernel -> its name

// Whether the parser reads `opt` back from among the items of opts as it stands.
bool IsPlainOpt(absl::string_view opt) {
  Lexer lexer(opt, "");
  int depth = 0;
  bool is_first = true;
  uint32_t end = 0;
  while (true) {
    Token token = lexer.Next();
    if (token.kind == Token::Kind::kEnd) break;
    if (token.kind == Token::Kind::kError || token.kind == Token::Kind::kNewline ||
        token.kind == Token::Kind::kString || (is_first && token.offset != 0)) {
      return false;
    }
    if (token.Is('[') || token.Is('{') || token.Is(']') || token.Is('}')) return false;
    if (token.Is('(')) ++depth;
    if (token.Is(')') && --depth < 0) return false;
    if (token.Is(',') && depth == 0) return false;
    if (depth > 32) return false;
    is_first = false;
    end = token.offset + token.size;
  }
  return depth == 0 && !is_first && end == opt.size();
}

// One kernel or graph: its lines are chosen, named, then written.
class FunctionPrinter {
 public:
  FunctionPrinter(const UOp* root, const Notes* notes, const Labels& labels)
      : root_(root),
        argument_(root->arg<FunctionArgument>()),
        notes_(notes),
        labels_(labels),
        block_(argument_.is_kernel ? Block::kKernel : Block::kGraph) {}

  absl::Status Run(absl::string_view label, std::string* out) {
    SVOD_ASSIGN_OR_RETURN(text_, ChooseLines(root_));
    NameAll();
    out_ = out;
    WriteHeader(label);
    for (const PrintLine& line : text_.lines) WriteLine(line);
    absl::StrAppend(out_, "}\n");
    return status_;
  }

 private:
  void Fail(const UOp* node, absl::string_view what) {
    if (status_.ok()) {
      status_ =
          absl::InvalidArgumentError(absl::StrCat("print: ", InfoOf(node->op()).text, ": ", what));
    }
  }

  // --- Names ----------------------------------------------------------------------------------

  void NameAll() {
    for (const UOp* param : text_.params) {
      const auto& argument = param->arg<ParamArgument>();
      std::string wanted = Sanitized(argument.name, IsValueNameChar);
      if (wanted.empty()) wanted = absl::StrCat("p", argument.slot);
      names_[param] = unique_.Unique(wanted);
    }
    // Effects are named where a line names them.
    absl::flat_hash_set<const UOp*> named;
    for (const PrintLine& line : text_.lines) {
      Op op = line.node->op();
      if (op == Op::kLoad || op == Op::kStore) continue;
      size_t shown = line.implies_effects ? 1 : line.node->sources().size();
      for (const UOp* source : line.node->sources().subspan(0, shown)) {
        if (source->dtype().is_void()) named.insert(source);
      }
    }
    for (const UOp* node : text_.header) Name(node);
    for (const PrintLine& line : text_.lines) {
      if (line.node != root_ && (!line.node->dtype().is_void() || named.contains(line.node))) {
        Name(line.node);
      }
    }
  }

  void Name(const UOp* node) {
    std::string wanted;
    if (notes_ != nullptr) {
      auto it = notes_->find(node);
      if (it != notes_->end()) wanted = it->second.name;
    }
    if (wanted.empty() && node->op() == Op::kDefineVar) {
      wanted = std::string(node->arg<VariableArgument>().name);
    }
    wanted = Sanitized(wanted, IsValueNameChar);
    names_[node] = IsNumbered(wanted) ? unique_.Number() : unique_.Unique(wanted);
  }

  // --- Writing --------------------------------------------------------------------------------

  void WriteHeader(absl::string_view label) {
    absl::StrAppend(out_, block_ == Block::kKernel ? "kernel @" : "graph @", label);
    if (label != argument_.name) absl::StrAppend(out_, " ", QuoteString(argument_.name));
    absl::StrAppend(out_, "(");
    for (const UOp* node : text_.header) {
      WriteNode({node, 0});
      absl::StrAppend(out_, "; ");
    }
    for (size_t i = 0; i < text_.params.size(); ++i) {
      const auto& param = text_.params[i]->arg<ParamArgument>();
      const std::string& name = names_[text_.params[i]];
      absl::StrAppend(out_, i > 0 ? ", %" : "%", name, ": ",
                      param.access == Access::kIn ? "" : ToString(param.access),
                      param.access == Access::kIn ? "" : " ",
                      Shape(text_.params[i]->dtype(), text_.params[i]->sources()));
      if (param.slot != static_cast<int64_t>(i)) absl::StrAppend(out_, " slot=", param.slot);
      absl::string_view implied = name;
      if (name == absl::StrCat("p", param.slot)) implied = "";
      if (param.name != implied) absl::StrAppend(out_, " ", QuoteString(param.name));
    }
    absl::StrAppend(out_, ")");
    if (!argument_.opts.empty()) {
      absl::StrAppend(out_, " opts=[",
                      absl::StrJoin(argument_.opts, ", ",
                                    [](std::string* out, absl::string_view opt) {
                                      absl::StrAppend(out, IsPlainOpt(opt) ? std::string(opt)
                                                                           : QuoteString(opt));
                                    }),
                      "]");
    }
    absl::StrAppend(out_, " {\n");
  }

  void WriteLine(const PrintLine& line) {
    out_->append(2 + 2 * static_cast<size_t>(line.depth), ' ');
    WriteNode(line);
    out_->push_back('\n');
  }

  void WriteNode(const PrintLine& line) {
    const UOp* node = line.node;
    Op op = node->op();
    if (op == Op::kSink) {
      absl::StrAppend(out_, block_ == Block::kKernel ? "sink" : "return");
      WriteOperands(node, node->sources());
      return;
    }
    auto name = names_.find(node);
    if (name != names_.end()) absl::StrAppend(out_, "%", name->second, " = ");
    absl::StrAppend(out_, op == Op::kReduceAxis ? "reduce" : InfoOf(op).text);
    switch (InfoOf(op).argument) {
      case ArgumentKind::kAlignment:
        return WriteAccess(line);
      case ArgumentKind::kBuffer:
        absl::StrAppend(out_, " ", Shape(node->dtype(), node->sources()));
        return WriteId("id", node->arg<BufferArgument>().id, &num_buffers_);
      case ArgumentKind::kScratch:
        absl::StrAppend(out_, " ", ToString(node->dtype()), "[", node->arg<ScratchArgument>().size,
                        "]");
        return WriteId("id", node->arg<ScratchArgument>().id, &num_scratch_);
      case ArgumentKind::kVariable: {
        const auto& variable = node->arg<VariableArgument>();
        absl::StrAppend(out_, " ", QuoteString(variable.name), ", min=", variable.min,
                        ", max=", variable.max);
        return;
      }
      case ArgumentKind::kAxis:
        WriteOperands(node, node->sources());
        absl::StrAppend(out_, " ", ToString(node->arg<AxisArgument>().kind));
        return WriteId("axis", node->arg<AxisArgument>().axis, &num_axes_);
      case ArgumentKind::kLanes:
        WriteOperands(node, node->sources());
        absl::StrAppend(out_, ", [", absl::StrJoin(node->arg<LanesArgument>().lanes, ", "), "]");
        return;
      case ArgumentKind::kView: {
        absl::StrAppend(out_, " ", Text(node->source(0), std::nullopt));
        int64_t offset = node->arg<ViewArgument>().byte_offset;
        if (offset != 0) absl::StrAppend(out_, ", offset=", offset);
        absl::StrAppend(out_, " : ", Shape(node->dtype(), node->sources().subspan(1)));
        return;
      }
      case ArgumentKind::kCustom:
        absl::StrAppend(out_, " ", QuoteString(node->arg<CustomArgument>().kind));
        if (node->num_sources() > 0) out_->push_back(',');
        return WriteOperands(node, node->sources());
      case ArgumentKind::kReduce:
        absl::StrAppend(out_, "_", ToString(node->arg<ReduceArgument>().kind));
        return WriteOperands(node, node->sources());
      case ArgumentKind::kReduceAxes: {
        const auto& reduce = node->arg<ReduceAxesArgument>();
        absl::StrAppend(out_, "_", ToString(reduce.kind));
        WriteOperands(node, node->sources());
        return absl::StrAppend(out_, ", axes=[", absl::StrJoin(reduce.axes, ", "), "], keep");
      }
      case ArgumentKind::kScatter: {
        const auto& scatter = node->arg<ScatterArgument>();
        if (scatter.kind != ScatterKind::kSet) {
          absl::StrAppend(out_, "_", ToString(scatter.kind));
        }
        WriteOperands(node, node->sources());
        return absl::StrAppend(out_, ", axis=", scatter.axis);
      }
      case ArgumentKind::kAxes: {
        WriteOperands(node, node->sources());
        absl::Span<const int64_t> axes = node->arg<AxesArgument>().axes;
        if (op == Op::kGather) return absl::StrAppend(out_, ", axis=", axes[0]);
        return absl::StrAppend(out_, ", axes=[", absl::StrJoin(axes, ", "), "]");
      }
      case ArgumentKind::kNone:
        if (op == Op::kReshape || op == Op::kExpand || op == Op::kPad || op == Op::kShrink) {
          return WriteDims(node);
        }
        WriteOperands(node, line.implies_effects ? node->sources().subspan(0, 1) : node->sources());
        if (TakesType(op)) absl::StrAppend(out_, " : ", ToString(node->dtype()));
        return;
      case ArgumentKind::kConst:
      case ArgumentKind::kParam:
      case ArgumentKind::kFunction:
        return Fail(node, "not a line");
    }
  }

  void WriteDims(const UOp* node) {
    Op op = node->op();
    WriteOperands(node, node->sources().subspan(0, op == Op::kPad ? 2 : 1));
    if (op == Op::kReshape || op == Op::kExpand) {
      absl::StrAppend(out_, ", ", List(NewDimsOf(node)));
    } else if (op == Op::kPad) {
      absl::StrAppend(out_, ", low=", List(LowOf(node)), ", high=", List(HighOf(node)));
    } else {
      absl::StrAppend(out_, ", begin=", List(BeginOf(node)), ", size=", List(SizeOf(node)));
    }
  }

  // What follows from the order of appearance goes without saying.
  void WriteId(absl::string_view attribute, int64_t id, int64_t* next) {
    if (id != *next) absl::StrAppend(out_, ", ", attribute, "=", id);
    ++*next;
  }

  void WriteOperands(const UOp* node, absl::Span<const UOp* const> sources) {
    std::vector<std::optional<DType>> known;
    bool has_const = std::any_of(sources.begin(), sources.end(), IsConst);
    if (has_const) {
      for (const UOp* source : node->sources()) {
        known.push_back(IsConst(source) ? std::nullopt : std::optional<DType>(source->dtype()));
      }
    }
    for (size_t i = 0; i < sources.size(); ++i) {
      std::optional<DType> expected;
      if (has_const) expected = ExpectedDType(node->op(), i, known, node->dtype());
      absl::StrAppend(out_, i > 0 ? ", " : " ", Text(sources[i], expected));
    }
  }

  void WriteAccess(const PrintLine& line) {
    const UOp* node = line.node;
    const UOp* index = node->source(0);
    bool is_load = node->op() == Op::kLoad;
    DType element = index->dtype();
    DType value =
        element.is_vector() ? element : element.with_lanes(index->source(1)->dtype().lanes);
    absl::StrAppend(out_, " ", Text(line.buffer, std::nullopt), "[",
                    Text(index->source(1), DType(Scalar::kIndex)), "]");
    if (!is_load) absl::StrAppend(out_, ", ", Text(node->source(1), value));
    if (index->num_sources() > 2) {
      absl::StrAppend(out_, ", gate=", Text(index->source(2), DType(Scalar::kBool)));
    }
    if (is_load && node->num_sources() > 1) {
      absl::StrAppend(out_, ", alt=", Text(node->source(1), node->dtype()));
    }
    const auto& access = node->arg<AlignmentArgument>();
    if (access.bytes != 0) absl::StrAppend(out_, ", align=", access.bytes);
    if (access.is_stream) absl::StrAppend(out_, ", stream");
    if (line.is_exact) absl::StrAppend(out_, ", exact");
    if (is_load && node->dtype() != value) absl::StrAppend(out_, " : ", ToString(node->dtype()));
  }

  std::string Shape(DType dtype, absl::Span<const UOp* const> dims) {
    return absl::StrCat(ToString(dtype), List(dims));
  }

  std::string List(absl::Span<const UOp* const> dims) {
    return absl::StrCat("[",
                        absl::StrJoin(dims, ", ",
                                      [&](std::string* out, const UOp* dim) {
                                        absl::StrAppend(out, Text(dim, DType(Scalar::kIndex)));
                                      }),
                        "]");
  }

  // A node as an operand. `expected` is the dtype that a literal has without saying.
  std::string Text(const UOp* node, std::optional<DType> expected) {
    if (IsConst(node)) {
      std::string text = FormatLiteral(node->dtype().scalar, node->arg<ConstArgument>().bits);
      if (expected != node->dtype()) absl::StrAppend(&text, ":", ToString(node->dtype()));
      return text;
    }
    if (node->op() == Op::kSink) {
      auto label = labels_.find(node);
      if (label != labels_.end()) return absl::StrCat("@", label->second);
    }
    auto name = names_.find(node);
    if (name == names_.end()) {
      Fail(node, "an operand that has no line");
      return "%?";
    }
    return absl::StrCat("%", name->second);
  }

  const UOp* root_;
  const FunctionArgument& argument_;
  const Notes* notes_;
  const Labels& labels_;
  Block block_;
  absl::Status status_;
  PrintLines text_;
  Names unique_;
  absl::flat_hash_map<const UOp*, std::string> names_;
  int64_t num_axes_ = 0, num_scratch_ = 0, num_buffers_ = 0;
  std::string* out_ = nullptr;
};

// Functions, each after the kernels that it calls, and each once.
class ModulePrinter {
 public:
  explicit ModulePrinter(absl::Span<const Function> functions) {
    for (const Function& function : functions) notes_.emplace(function.root, &function.notes);
  }

  absl::Status Add(const UOp* root) {
    if (root->op() != Op::kSink) {
      return absl::InvalidArgumentError(
          absl::StrCat("print: root, got ", InfoOf(root->op()).text, ", expected sink"));
    }
    if (!root->arg<FunctionArgument>().is_kernel) {
      SVOD_ASSIGN_OR_RETURN(LinearKernel linear, Linearize(root));
      for (const Step& step : linear.steps) {
        if (step.node->op() == Op::kCall) SVOD_RETURN_IF_ERROR(AddOne(step.node->source(0)));
      }
    }
    return AddOne(root);
  }
  std::string Take() { return std::move(out_); }

 private:
  absl::Status AddOne(const UOp* root) {
    auto [it, is_new] = labels_.try_emplace(root);
    if (!is_new) return absl::OkStatus();
    const auto& argument = root->arg<FunctionArgument>();
    std::string wanted = Sanitized(argument.name, IsFunctionNameChar);
    if (wanted.empty()) wanted = argument.is_kernel ? "kernel" : "graph";
    std::string label = unique_.Unique(wanted);
    it->second = label;
    if (!out_.empty()) out_.push_back('\n');
    auto notes = notes_.find(root);
    return FunctionPrinter(root, notes == notes_.end() ? nullptr : notes->second, labels_)
        .Run(label, &out_);
  }

  absl::flat_hash_map<const UOp*, const Notes*> notes_;
  Labels labels_;
  Names unique_;
  std::string out_;
};

}  // namespace

absl::StatusOr<std::string> Print(const Function& function) {
  ModulePrinter printer(absl::MakeConstSpan(&function, 1));
  SVOD_RETURN_IF_ERROR(printer.Add(function.root));
  return printer.Take();
}

absl::StatusOr<std::string> Print(const Module& module) {
  ModulePrinter printer(module.functions);
  for (const Function& function : module.functions) {
    SVOD_RETURN_IF_ERROR(printer.Add(function.root));
  }
  return printer.Take();
}

absl::StatusOr<std::string> PrintCanonical(const UOp* sink) {
  ModulePrinter printer({});
  SVOD_RETURN_IF_ERROR(printer.Add(sink));
  return printer.Take();
}

std::string Summarize(const UOp* node) {
  auto literal = [](const UOp* constant) {
    return absl::StrCat(
        FormatLiteral(constant->dtype().scalar, constant->arg<ConstArgument>().bits), ":",
        ToString(constant->dtype()));
  };
  if (IsConst(node)) return absl::StrCat("const ", literal(node));
  constexpr size_t kMaxSources = 8;
  std::string text = absl::StrCat(InfoOf(node->op()).text, "(");
  for (size_t i = 0; i < node->sources().size(); ++i) {
    if (i > 0) absl::StrAppend(&text, ", ");
    if (i == kMaxSources) {
      absl::StrAppend(&text, "...");
      break;
    }
    const UOp* source = node->source(static_cast<int>(i));
    absl::StrAppend(&text, IsConst(source) ? absl::StrCat("const ", literal(source))
                                           : std::string(InfoOf(source->op()).text));
  }
  absl::StrAppend(&text, ")");
  if (!node->dtype().is_void()) absl::StrAppend(&text, " : ", ToString(node->dtype()));
  return text;
}

}  // namespace svod
