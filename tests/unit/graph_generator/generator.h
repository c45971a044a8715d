// Generator: the pool of values that a random graph grows from, and one method a kind of growth.
// Included by the sources of graph_generator alone.
#ifndef SVOD_TESTS_UNIT_GRAPH_GENERATOR_GENERATOR_H_
#define SVOD_TESTS_UNIT_GRAPH_GENERATOR_GENERATOR_H_

#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "ir/tensor_builder.h"
#include "tests/unit/graph_generator/graph_generator.h"

namespace svod {

// splitmix64 (Steele, Lea and Flood, OOPSLA 2014): the same numbers on every machine.
class SeededRandom {
 public:
  explicit SeededRandom(uint64_t seed) : state_(seed) {}
  uint64_t Next() {
    uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  // Both ends included.
  int64_t Pick(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(Next() % static_cast<uint64_t>(high - low + 1));
  }
  bool OneIn(int64_t n) { return Pick(1, n) == 1; }
  double Unit() { return static_cast<double>(Next() >> 11) * 0x1p-53; }
  template <typename List>
  const auto& Of(const List& list) {
    return list[static_cast<size_t>(Pick(0, static_cast<int64_t>(std::size(list)) - 1))];
  }

 private:
  uint64_t state_;
};

// A value of the pool and what is known of its floats.
struct Item {
  const UOp* node = nullptr;
  // Whole numbers of at most this magnitude; infinity where they may be anything.
  double bound = std::numeric_limits<double>::infinity();
  // What another order of folding may change it by, see ResultBound; 0: nothing.
  double error = 0;
  const UOp* magnitude = nullptr;  // f64, of the same shape; null while error is 0
  bool positive = false;           // a sum of positive terms, so that magnitude and value are one
  bool exact() const { return error == 0; }
};

class Generator {
 public:
  Generator(uint64_t seed, std::shared_ptr<Context> context, const GraphGeneratorOptions& options)
      : b_(std::move(context)), random_(seed), options_(options) {}

  absl::StatusOr<GeneratedGraph> Run();

 private:
  // --- What is given
  DType AnyDType();
  const UOp* AnyDimension();
  Shape AnyShape();
  Item NewParam(DType dtype, ShapeSpan shape, Access access = Access::kIn);
  Item NewParam(DType dtype, ShapeSpan shape, Access access, const ParamSpec& spec);
  Item AnyConst(DType dtype);
  const Item& AnyItem();
  // An item of that dtype whose shape broadcasts with the one given; made when there is none.
  Item Partner(DType dtype, const Item& with, bool must_be_exact);

  // --- Growth; each may find that it does not fit and add nothing.
  void Grow();
  void GrowUnary();
  void GrowBinary();
  void GrowTernary();
  void GrowConversion();
  void GrowMovement();
  void GrowReshape(const Item& x);
  void GrowPad(const Item& x);
  void GrowShrink(const Item& x);
  void GrowReduce();
  void GrowArange();
  void GrowGather();
  void GrowScatter();
  void GrowAssign();
  void GrowMatmul();
  void GrowSoftmax();
  Item AnyPositions(ShapeSpan shape, const UOp* along);

  // --- What is known
  double MaxElements(ShapeSpan shape);
  bool IsSmall(ShapeSpan shape) {
    return MaxElements(shape) <= static_cast<double>(options_.max_elements);
  }
  bool Broadcasts(const Item& x, const Item& y);
  const UOp* Magnitude(const Item& x);
  // The same op on the value and on its magnitude, whose error and bound stay.
  template <typename Fn>
  void AddMoved(const Item& x, Fn fn) {
    Item item = x;
    item.node = fn(x.node);
    if (!x.exact()) item.magnitude = fn(x.magnitude);
    Add(item);
  }
  Item Reduced(ReduceKind kind, const Item& x, absl::Span<const int64_t> axes, bool keep);
  Item Binary(Op op, const Item& x, const Item& y);
  void Add(const Item& item);

  TensorBuilder b_;
  SeededRandom random_;
  GraphGeneratorOptions options_;
  std::vector<Item> pool_;
  std::vector<ParamSpec> specs_;
  std::vector<const UOp*> variables_;
  // Parameters that assignments may go to: first and latest state.
  struct Target {
    const UOp* param;
    Item state;
  };
  std::vector<Target> targets_;
  absl::flat_hash_map<int64_t, int64_t> slots_;  // old -> new
};

// The largest whole number up to which a float dtype holds all of them; infinity for others.
double ExactLimit(DType dtype);
// Half the distance of 1 to the next float.
double UnitRoundoff(DType dtype);
double MinNormal(DType dtype);

}  // namespace svod

#endif  // SVOD_TESTS_UNIT_GRAPH_GENERATOR_GENERATOR_H_
