// BlockEvaluator: runs a graph of scalar elementwise nodes on blocks of inputs, node by node, at a
// speed that lets a test visit every f32. Means the same as EvaluateScalar, bit for bit.
// Included by the tests of the math decompositions.
#ifndef SVOD_TESTS_UNIT_IR_BLOCK_EVALUATOR_H_
#define SVOD_TESTS_UNIT_IR_BLOCK_EVALUATOR_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "ir/uop.h"

namespace svod {

class BlockEvaluator {
 public:
  static constexpr int kBlock = 1024;

  // `inputs` are leaves under `root` of any op; they get their values from input(i).
  // Errors: Unimplemented for a node that is no elementwise op on 32 or 64 bits, and for
  // transcendentals: those are what is tested.
  static absl::StatusOr<BlockEvaluator> Create(const UOp* root,
                                               absl::Span<const UOp* const> inputs);

  // kBlock values of type T, the C++ type of the node's dtype: write inputs, Run, read the result.
  template <typename T>
  T* input(int i) {
    return reinterpret_cast<T*>(Slot(inputs_[i]));
  }
  template <typename T>
  const T* result() {
    return reinterpret_cast<const T*>(Slot(result_));
  }
  void Run();

  int num_instructions() const { return static_cast<int>(program_.size()); }

 private:
  struct Slab {
    alignas(64) std::byte bytes[kBlock * 8];
  };
  struct Instruction {
    Op op;
    Scalar to;       // dtype of the result
    Scalar operand;  // dtype of the last source
    int sources[3];
    int result;
  };

  std::byte* Slot(int slot) { return slots_[slot].bytes; }
  void RunWide();
  void RunPlain();
  void RunBody();

  std::vector<Instruction> program_;
  std::vector<std::vector<uint32_t>> tables_;  // of picks
  std::vector<Slab> slots_;
  std::vector<int> inputs_;
  int result_ = 0;
};

// The value of a graph of scalar elementwise nodes by EvaluateScalar. Slow.
// Inputs as for BlockEvaluator; `values` are their bits.
uint64_t EvaluateGraph(const UOp* root, absl::Span<const UOp* const> inputs,
                       absl::Span<const uint64_t> values);

}  // namespace svod

#endif  // SVOD_TESTS_UNIT_IR_BLOCK_EVALUATOR_H_
