// The page of documentation that the operator table gives.
// Included by tests that hold docs/operators.md against it. Must not build nodes.
#ifndef SVOD_IR_OPERATORS_OPERATOR_DOCS_H_
#define SVOD_IR_OPERATORS_OPERATOR_DOCS_H_

#include <string>

namespace svod {

// docs/operators.md, in Markdown: every operator under its heading, with operands, attributes,
// shapes and meaning.
std::string OperatorsMarkdown();

}  // namespace svod

#endif  // SVOD_IR_OPERATORS_OPERATOR_DOCS_H_
