// Parser: reads a module; private to parse.cc (blocks), parse_statement.cc (lines), parse_build.cc
// (their nodes), parse_expression.cc (nested ones), parse_tensor.cc (tensors) and parse_operator.cc
// (composite operators). Included by those only. Must not print.
#ifndef SVOD_IR_PARSER_H_
#define SVOD_IR_PARSER_H_

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "ir/kernel_builder.h"
#include "ir/lexer.h"
#include "ir/parsed_statement.h"
#include "ir/program.h"
#include "ir/syntax.h"
#include "ir/tensor_builder.h"
#include "ir/text.h"

namespace svod {

// Every method that returns bool or a pointer gives false or null after the first error, which
// error() then holds.
class Parser {
 public:
  Parser(absl::string_view text, absl::string_view file, std::shared_ptr<Context> context,
         const Module* known);

  absl::StatusOr<Module> Run();
  // A single line of a graph; parameters have the slots that `slots` says.
  absl::StatusOr<GraphLine> RunLine(absl::Span<const GivenTensor> given,
                                    absl::Span<const int64_t> slots);

 private:
  using Operand = ParsedOperand;
  using Shape = ParsedShape;
  using Attribute = ParsedAttribute;
  using Statement = ParsedStatement;
  struct Value {
    const UOp* node;
    int line;
    int column;
  };

  // --- Tokens (parse.cc)
  void Advance();
  void SkipNewlines();
  bool Expect(char symbol, absl::string_view where);
  bool Accept(char symbol);
  bool Fail(const Token& token, absl::string_view message);
  const UOp* FailNode(const Token& token, absl::string_view message);
  bool FailExpected(absl::string_view expected);

  // --- Blocks (parse.cc)
  bool ParseFunction(bool is_kernel);
  bool ParseName(Token* label, std::string* name);
  bool ParseHeader();
  bool ParseParam(const Token& name);
  bool ParseOpts();
  bool ParseOpt();
  bool ParseBody();
  bool ParseRoot(const Token& word);
  bool FinishFunction(const Token& label, absl::string_view name);
  bool CheckGraphUse(const UOp* root);

  // --- Lines (parse_statement.cc)
  bool ParseStatement();
  bool ParseOp();
  // Parts up to the end of the line or, inside a call, up to its `close`, ')'.
  bool ParseParts(char close);
  bool ParsePart();
  bool ParseOperand(Operand* operand);
  bool ParseSimpleOperand(Operand* operand);
  bool ParseLiteralOperand(const Token& literal, Operand* operand);
  bool ParseValueOperand(Operand* operand);
  bool ParseList(Operand* list);
  bool ParseAttribute(const Token& name);
  bool ParseAttributeValue(const Token& name, Operand* value);
  bool IsFlag(absl::string_view word) const;
  bool ParseShape(Shape* shape);
  bool ParseShapeAfter(const Token& word, Shape* shape);
  bool CheckParts();  // parse_check.cc
  bool FinishStatement(std::vector<const UOp*> results);
  bool IsAtEndOfLine() const;

  // --- Expressions of graphs (parse_expression.cc)
  bool IsExpressionAhead() const;
  bool NextIs(char symbol) const;
  bool ParseExpressionStatement();
  bool ParseExpression(Operand* value);
  bool ParseUnary(Operand* value);
  bool ParseInfix(Operand* value, int min_precedence);
  bool ParsePrimary(Operand* value);
  // A call; all its results are in results_.
  bool ParseCall(Operand* value);
  bool TakeOneResult(const Token& call, Operand* value);
  // Whether a word without '%' names a value: in lines of the REPL.
  bool FindGiven(absl::string_view name) const;
  bool EnterBrackets(const Token& token);
  void LeaveBrackets();
  bool BuildInfix(Op op, const Token& token, Operand left, Operand right, Operand* value);
  bool Defer(Op op, const Token& token, absl::Span<const Operand> operands, Operand* value);
  bool BuildNested(Op op, const Token& token, std::vector<Operand> operands, Operand* value);

  // --- Their nodes (parse_build.cc)
  bool ResolveOperands(std::optional<DType> type);
  bool Resolve(Operand* operand, std::optional<DType> expected);
  bool ResolveSteps(Operand* operand, DType dtype);
  bool ResolveDims(std::vector<Operand>* dims, std::vector<const UOp*>* nodes);
  bool CheckElements(const Shape& shape, absl::Span<const UOp* const> dims);
  bool IntegerAttribute(absl::string_view name, int64_t min, int64_t* value);
  bool IntegerOf(const Operand& operand, int64_t min, int64_t* value);
  bool NodeAttribute(absl::string_view name, DType expected, const UOp** node);
  Attribute* FindAttribute(absl::string_view name);
  bool HasFlag(absl::string_view name) const;
  const UOp* BuildStatement();
  const UOp* BuildAccess();
  const UOp* BuildShaped();
  const UOp* BuildPlain();
  const UOp* BuildRange();
  const UOp* BuildLanes();
  const UOp* BuildView();
  const UOp* BuildVariable();
  const UOp* Build(Op op, DType dtype, absl::Span<const UOp* const> sources,
                   const Argument& argument);
  // Takes over the builder's failure, with its place.
  const UOp* TakeBuilderError();
  // A failure in the line of an earlier node, or of this line when it has none.
  const UOp* FailAt(const UOp* culprit, absl::string_view message);
  bool Define(const Token& name, const UOp* node);
  // The place of a node that has none yet, and of those below it that are as new.
  void NotePlace(const UOp* node, const Token& place);
  void NotePlaces(const UOp* node, size_t first_id, const Token& place);

  std::vector<const UOp*> OperandNodes() const;

  // --- Tensors (parse_tensor.cc)
  const UOp* BuildTensorOp();
  const UOp* BuildReduceAxis();
  const UOp* BuildTensorNode(absl::Span<const UOp* const> sources, const Argument& argument);
  bool DimsAttribute(absl::string_view name, std::vector<const UOp*>* dims);
  bool ReshapeDims(const UOp* x, std::vector<const UOp*>* sources);
  bool AxisAttribute(const UOp* tensor, int64_t* axis);
  bool AxesAttribute(const UOp* tensor, std::vector<int64_t>* axes);
  bool AxisOf(const Operand& operand, const UOp* tensor, int64_t* axis);
  // The node if what it is made of has shapes that fit; nodes that are no tensors pass.
  const UOp* CheckShape(const UOp* node);

  // --- Composite operators (parse_operator.cc)
  const AttributeInfo* FindAttributeInfo(absl::string_view name) const;
  bool CheckOperatorParts();
  bool BuildOperatorCall();
  bool ValueOf(const AttributeInfo& info, Operand* operand, AttributeValue* value);

  bool in_graph() const { return builder_ == nullptr; }

  Lexer lexer_;
  Token token_;       // the next one
  uint32_t end_ = 0;  // offset after the last one
  absl::Status error_;
  std::shared_ptr<Context> context_;
  Module module_;
  absl::flat_hash_map<absl::string_view, std::pair<const UOp*, int>>
      kernels_;                                         // label -> root, line
  absl::flat_hash_map<absl::string_view, int> labels_;  // label -> line

  // Of the function being read.
  std::unique_ptr<KernelBuilder> builder_;  // null: a graph
  TensorBuilder tensors_;                   // for graphs
  Block block_ = Block::kHeader;            // where the line stands that is read
  Function function_;
  absl::flat_hash_map<absl::string_view, Value> values_;
  std::vector<std::string> opts_;
  std::vector<std::pair<const UOp*, Token>> graph_uses_;  // what must be under a graph's root
  int64_t num_params_ = 0, num_buffers_ = 0;
  std::optional<std::vector<const UOp*>> root_;  // sources of the last line
  Statement statement_;
  std::vector<const UOp*> results_;               // of the last operator or call
  absl::flat_hash_set<absl::string_view> given_;  // what may be named without '%'
  bool is_line_ = false;                          // a line that stands alone: it defines nothing
  bool may_be_address_ = false;                   // the operand that is read next
  int depth_ = 0;                                 // brackets that are open in an expression
};

}  // namespace svod

#endif  // SVOD_IR_PARSER_H_
