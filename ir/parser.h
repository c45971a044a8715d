// Parser: reads a module; private to parse.cc (blocks), parse_statement.cc (lines), parse_build.cc
// (their nodes) and parse_tensor.cc (tensors). Included by those only. Must not print.
#ifndef SVOD_IR_PARSER_H_
#define SVOD_IR_PARSER_H_

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "ir/kernel_builder.h"
#include "ir/lexer.h"
#include "ir/program.h"
#include "ir/syntax.h"
#include "ir/tensor_builder.h"

namespace svod {

// Every method that returns bool or a pointer gives false or null after the first error, which
// error() then holds.
class Parser {
 public:
  Parser(absl::string_view text, absl::string_view file, std::shared_ptr<Context> context,
         const Module* known);

  absl::StatusOr<Module> Run();

 private:
  struct Operand {
    enum class Kind : uint8_t { kNode, kLiteral, kKernel, kList };
    Token token;
    Kind kind = Kind::kNode;
    const UOp* node = nullptr;  // null for literals whose type is not known yet
    std::optional<DType> dtype;
    std::vector<Operand> items = {};  // of a list, whose token is its '['
  };
  // "f32[64, %n]"
  struct Shape {
    Token token;
    DType dtype;
    bool has_dims = false;
    std::vector<Operand> dims;
  };
  struct Attribute {
    Token name;
    Operand value;
  };
  // One line, read by one grammar for all ops; which parts an op has is checked afterwards.
  struct Statement {
    std::optional<Token> name;
    Token op_token;
    Op op = Op::kConst;
    ReduceKind reduce = ReduceKind::kAdd;
    ScatterKind scatter = ScatterKind::kSet;
    std::optional<Token> string;
    std::optional<Shape> shape;  // before the operands: reg f32[4]
    std::vector<Operand> operands;
    std::optional<Token> address;  // the '[' of %x[...]
    std::vector<Operand> coordinates;
    std::optional<Operand> list;   // [0, 2]
    std::optional<Token> keyword;  // loop, reduce
    std::vector<Attribute> attributes;
    std::vector<Token> flags;   // bare words: exact, keep
    std::optional<Shape> type;  // after ':'
  };
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
  bool ParseStatement(Block block);
  bool ParseOp(Block block);
  bool ParseParts();
  bool ParsePart();
  bool ParseOperand(Operand* operand);
  bool ParseLiteralOperand(const Token& literal, Operand* operand);
  bool ParseValueOperand(Operand* operand);
  bool ParseList(Operand* list);
  bool ParseAttribute(const Token& name);
  bool ParseShape(Shape* shape);
  bool ParseShapeAfter(const Token& word, Shape* shape);
  bool CheckParts();

  // --- Their nodes (parse_build.cc)
  bool ResolveOperands(std::optional<DType> type);
  bool Resolve(Operand* operand, std::optional<DType> expected);
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

  std::vector<const UOp*> OperandNodes() const;

  // --- Tensors (parse_tensor.cc)
  const UOp* BuildTensorOp();
  const UOp* BuildReduceAxis();
  const UOp* BuildTensorNode(absl::Span<const UOp* const> sources, const Argument& argument);
  bool DimsAttribute(absl::string_view name, std::vector<const UOp*>* dims);
  bool AxisAttribute(const UOp* tensor, int64_t* axis);
  bool AxesAttribute(const UOp* tensor, std::vector<int64_t>* axes);
  bool AxisOf(const Operand& operand, const UOp* tensor, int64_t* axis);
  // The node if what it is made of has shapes that fit; nodes that are no tensors pass.
  const UOp* CheckShape(const UOp* node);

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
  Function function_;
  absl::flat_hash_map<absl::string_view, Value> values_;
  std::vector<std::string> opts_;
  std::vector<std::pair<const UOp*, Token>> graph_uses_;  // what must be under a graph's root
  int64_t num_params_ = 0, num_buffers_ = 0;
  std::optional<std::vector<const UOp*>> root_;  // sources of the last line
  Statement statement_;
};

}  // namespace svod

#endif  // SVOD_IR_PARSER_H_
