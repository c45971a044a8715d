// Function and Module: a graph or kernel with the names and places that its text gave to nodes.
// Included by text, passes and tools. Holds no nodes of its own: a Module keeps their context
// alive.
#ifndef SVOD_IR_PROGRAM_H_
#define SVOD_IR_PROGRAM_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "ir/uop.h"

namespace svod {

// What text knows of a node beyond the node. Not part of its identity or hash.
struct NodeNote {
  std::string name;  // without '%'; "" prints as a number
  int line = 0;      // 0: not from text
  int column = 0;
};

// A kernel or graph: its SINK and notes. Copyable; cheap when there are few notes.
struct Function {
  const UOp* root = nullptr;
  absl::flat_hash_map<const UOp*, NodeNote> notes = {};
  std::string file = {};  // for messages; "" when built in code

  bool is_kernel() const { return root->arg<FunctionArgument>().is_kernel; }
  absl::string_view name() const { return root->arg<FunctionArgument>().name; }
  // "file:3:5: %x" as far as it is known, else "%name" or the op's text; for error messages.
  std::string Describe(const UOp* node) const;
};

// Functions in the order of the text; a graph may call kernels before it.
struct Module {
  std::shared_ptr<Context> context;
  std::vector<Function> functions;

  // Null if there is none of that name.
  const Function* Find(absl::string_view name) const;
};

// The kernel's PARAMs by slot. Errors: InvalidArgument when slots are not 0, 1, 2, ...
absl::StatusOr<std::vector<const UOp*>> ParamsOf(const UOp* sink);

// The DEFINE_VARs under a root in topological order; the first of each name (seed row T13).
std::vector<const UOp*> VariablesOf(const UOp* root);

}  // namespace svod

#endif  // SVOD_IR_PROGRAM_H_
