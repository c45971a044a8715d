// Scheduling: kernels of a graph, against the interpreter of tensor graphs.
#include "plan/schedule.h"

#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "ir/evaluate_graph.h"
#include "ir/operators/shaping.h"
#include "ir/tensor_builder.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "plan/find_pieces.h"

namespace svod {
namespace {

using ::testing::HasSubstr;

// Small integers, so that sums are exact in every order.
TensorValue Iota(DType dtype, std::vector<int64_t> shape, int64_t modulus = 7) {
  TensorValue value;
  value.dtype = dtype;
  value.shape = std::move(shape);
  int64_t elements = value.num_elements();
  value.bytes.resize(static_cast<size_t>(elements * dtype.size_bytes()));
  for (int64_t i = 0; i < elements; ++i) {
    int64_t element = (i * 5 + 3) % modulus - modulus / 2;
    value.SetBitsAt(i, dtype.is_float() ? DoubleToBits(dtype.scalar, static_cast<double>(element))
                                        : static_cast<uint64_t>(element));
  }
  return value;
}

class ScheduleTest : public ::testing::Test {
 protected:
  std::shared_ptr<Context> context_ = std::make_shared<Context>();
  TensorBuilder b_{context_};

  // Schedules the graph and compares the kernels with the tensor ops, bit for bit or, for floats
  // that round, to `tolerance` relative to the largest element. The number of kernels.
  int Check(std::vector<const UOp*> results, std::vector<TensorValue> params, double tolerance = 0,
            std::vector<std::pair<std::string, int64_t>> variables = {},
            ScheduleOptions options = {}) {
    absl::StatusOr<Function> graph = b_.Finish("g", results);
    if (!graph.ok()) {
      ADD_FAILURE() << graph.status();
      return -1;
    }
    schedule_ = absl::StatusOr<Schedule>(ScheduleGraph(*graph, options));
    if (!schedule_.ok()) {
      ADD_FAILURE() << schedule_.status();
      return -1;
    }
    const Module& module = schedule_->module;
    for (const Function& function : module.functions) {
      absl::Status verified = Verify(function);
      if (!verified.ok()) ADD_FAILURE() << verified << "\n" << Print(function).value_or("");
    }
    text_ = Print(module).value_or("");
    EvaluateGraphOptions evaluate{variables, int64_t{1} << 32};
    std::vector<TensorValue> expected_params = params;
    absl::StatusOr<std::vector<TensorValue>> expected =
        EvaluateGraph(*graph, expected_params, evaluate);
    std::vector<TensorValue> got_params = params;
    absl::StatusOr<std::vector<TensorValue>> got =
        EvaluateGraph(module.functions.back(), got_params, evaluate);
    EXPECT_TRUE(expected.ok()) << expected.status();
    EXPECT_TRUE(got.ok()) << got.status() << "\n" << text_;
    if (!expected.ok() || !got.ok()) return -1;
    EXPECT_EQ(expected->size(), got->size());
    for (size_t i = 0; i < std::min(expected->size(), got->size()); ++i) {
      Compare((*expected)[i], (*got)[i], tolerance);
    }
    for (size_t i = 0; i < params.size(); ++i)
      Compare(expected_params[i], got_params[i], tolerance);
    return static_cast<int>(module.functions.size()) - 1;
  }

  void Compare(const TensorValue& expected, const TensorValue& got, double tolerance) {
    ASSERT_EQ(expected.shape, got.shape) << text_;
    if (tolerance == 0) {
      ASSERT_EQ(expected.bytes, got.bytes) << text_;
      return;
    }
    double largest = 0;
    for (int64_t i = 0; i < expected.num_elements(); ++i) {
      largest =
          std::max(largest, std::fabs(BitsToDouble(expected.dtype.scalar, expected.BitsAt(i))));
    }
    for (int64_t i = 0; i < expected.num_elements(); ++i) {
      ASSERT_NEAR(BitsToDouble(expected.dtype.scalar, expected.BitsAt(i)),
                  BitsToDouble(got.dtype.scalar, got.BitsAt(i)), tolerance * largest)
          << i << "\n"
          << text_;
    }
  }

  const UOp* Softmax(const UOp* x) {
    const UOp* m = b_.ReduceAxis(ReduceKind::kMax, x, {-1}, true);
    const UOp* e = b_.Make(Op::kExp, {b_.Sub(x, m)});
    return b_.Make(Op::kFdiv, {e, b_.ReduceAxis(ReduceKind::kAdd, e, {-1}, true)});
  }
  // [..., i, k] times [..., k, j].
  const UOp* Matmul(const UOp* x, const UOp* y) {
    const UOp* left = b_.Unsqueeze(x, -2);
    const UOp* right = b_.Unsqueeze(b_.Transpose(y, -1, -2), -3);
    return b_.ReduceAxis(ReduceKind::kAdd, b_.Mul(left, right), {-1}, false);
  }

  // x + 2, x + 3, ... of one row each: so many that what is put together from them is not chosen
  // from element by element.
  std::vector<const UOp*> Rows(const UOp* x, int num_rows) {
    std::vector<const UOp*> rows;
    for (int i = 0; i < num_rows; ++i) rows.push_back(b_.Add(x, b_.Like(x, i + 2)));
    return rows;
  }

  absl::StatusOr<Schedule> schedule_ = absl::UnknownError("");
  std::string text_;
};

TEST_F(ScheduleTest, AnElementwiseChainIsOneKernel) {
  const UOp* x = b_.Param("x", Scalar::kF32, {3, 5});
  const UOp* y = b_.Param("y", Scalar::kF32, {5});
  const UOp* z = b_.Add(b_.Mul(x, y), b_.Like(x, 2));
  z = b_.Make(Op::kMax, {b_.Transpose(z, 0, 1), b_.Like(x, 0)});
  EXPECT_EQ(Check({z}, {Iota(Scalar::kF32, {3, 5}), Iota(Scalar::kF32, {5})}), 1);
}

TEST_F(ScheduleTest, SoftmaxIsOneKernelWithARowInScratch) {
  const UOp* x = b_.Param("x", Scalar::kF32, {6, 37});
  EXPECT_EQ(Check({Softmax(x)}, {Iota(Scalar::kF32, {6, 37})}, 1e-6), 1);
  EXPECT_THAT(text_, HasSubstr("local f32[37]"));
}

TEST_F(ScheduleTest, SoftmaxOfAVectorIsOneKernel) {
  const UOp* x = b_.Param("x", Scalar::kF32, {37});
  EXPECT_EQ(Check({Softmax(x)}, {Iota(Scalar::kF32, {37})}, 1e-6), 1);
}

TEST_F(ScheduleTest, MatmulWithItsEpilogueIsOneKernel) {
  const UOp* x = b_.Param("x", Scalar::kF32, {4, 7});
  const UOp* w = b_.Param("w", Scalar::kF32, {7, 5});
  const UOp* bias = b_.Param("bias", Scalar::kF32, {5});
  const UOp* y = b_.Make(Op::kMax, {b_.Add(Matmul(x, w), bias), b_.Like(x, 0)});
  y = b_.Cast(y, Scalar::kF16);
  EXPECT_EQ(
      Check({y}, {Iota(Scalar::kF32, {4, 7}), Iota(Scalar::kF32, {7, 5}), Iota(Scalar::kF32, {5})}),
      1);
}

TEST_F(ScheduleTest, TwoMatmulsAreTwoKernels) {
  const UOp* x = b_.Param("x", Scalar::kF32, {40, 70});
  const UOp* w = b_.Param("w", Scalar::kF32, {70, 50});
  const UOp* v = b_.Param("v", Scalar::kF32, {50, 60});
  const UOp* y = b_.Make(Op::kMax, {Matmul(x, w), b_.Like(x, 0)});
  EXPECT_EQ(Check({Matmul(y, v)}, {Iota(Scalar::kF32, {40, 70}), Iota(Scalar::kF32, {70, 50}),
                                   Iota(Scalar::kF32, {50, 60})}),
            2);
}

TEST_F(ScheduleTest, AttentionIsOneKernelWithoutTheScoreMatrix) {
  const UOp* q = b_.Param("q", Scalar::kF32, {2, 3, 11, 8});
  const UOp* k = b_.Param("k", Scalar::kF32, {2, 3, 13, 8});
  const UOp* v = b_.Param("v", Scalar::kF32, {2, 3, 13, 8});
  const UOp* mask = b_.Param("mask", Scalar::kF32, {11, 13});
  const UOp* scores = b_.Add(b_.Mul(Matmul(q, b_.Transpose(k, -1, -2)), b_.Like(q, 0.25)), mask);
  EXPECT_EQ(Check({Matmul(Softmax(scores), v)},
                  {Iota(Scalar::kF32, {2, 3, 11, 8}), Iota(Scalar::kF32, {2, 3, 13, 8}),
                   Iota(Scalar::kF32, {2, 3, 13, 8}), Iota(Scalar::kF32, {11, 13})},
                  1e-5),
            1);
  EXPECT_THAT(text_, HasSubstr("local f32[13]"));
}

TEST_F(ScheduleTest, LayernormIsOneKernel) {
  const UOp* x = b_.Param("x", Scalar::kF32, {6, 37});
  const UOp* n = b_.Like(x, 37);
  const UOp* mean = b_.Make(Op::kFdiv, {b_.ReduceAxis(ReduceKind::kAdd, x, {-1}, true), n});
  const UOp* d = b_.Sub(x, mean);
  const UOp* var =
      b_.Make(Op::kFdiv, {b_.ReduceAxis(ReduceKind::kAdd, b_.Mul(d, d), {-1}, true), n});
  const UOp* y = b_.Make(Op::kFdiv, {d, b_.Make(Op::kSqrt, {b_.Add(var, b_.Like(x, 1e-5))})});
  EXPECT_EQ(Check({y}, {Iota(Scalar::kF32, {6, 37})}, 1e-6), 1);
}

TEST_F(ScheduleTest, GroupnormIsOneKernel) {
  const UOp* x = b_.Param("x", Scalar::kF32, {2, 6, 5, 7});
  const UOp* gamma = b_.Param("gamma", Scalar::kF32, {6, 1, 1});
  const UOp* groups = b_.Reshape(x, {2, 3, 70});
  const UOp* n = b_.Like(x, 70);
  const UOp* mean = b_.Make(Op::kFdiv, {b_.ReduceAxis(ReduceKind::kAdd, groups, {-1}, true), n});
  const UOp* d = b_.Sub(groups, mean);
  const UOp* var =
      b_.Make(Op::kFdiv, {b_.ReduceAxis(ReduceKind::kAdd, b_.Mul(d, d), {-1}, true), n});
  const UOp* y = b_.Make(Op::kFdiv, {d, b_.Make(Op::kSqrt, {b_.Add(var, b_.Like(x, 1e-5))})});
  y = b_.Mul(b_.Reshape(y, {2, 6, 5, 7}), gamma);
  EXPECT_EQ(Check({y}, {Iota(Scalar::kF32, {2, 6, 5, 7}), Iota(Scalar::kF32, {6, 1, 1})}, 1e-6), 1);
}

TEST_F(ScheduleTest, ReshapesOfResultsAreViews) {
  const UOp* x = b_.Param("x", Scalar::kF32, {6, 4});
  EXPECT_EQ(Check({b_.Reshape(x, {3, -1})}, {Iota(Scalar::kF32, {6, 4})}), 0);
  EXPECT_EQ(Check({b_.Reshape(b_.Add(x, x), {24})}, {Iota(Scalar::kF32, {6, 4})}), 1);
}

TEST_F(ScheduleTest, PadFlipShrinkAndGather) {
  const UOp* x = b_.Param("x", Scalar::kI32, {6, 4});
  const UOp* p = b_.Param("p", Scalar::kI32, {9, 4});
  const UOp* y = b_.PadAxis(x, 0, b_.ConstInt(Scalar::kI32, 9), b_.Index(2), b_.Index(1));
  y = b_.Flip(b_.ShrinkAxis(y, 1, b_.Index(1), b_.Index(3)), {0});
  const UOp* g = b_.Gather(b_.Mul(x, x), p, 0);
  EXPECT_EQ(Check({y, g}, {Iota(Scalar::kI32, {6, 4}), Iota(Scalar::kI32, {9, 4}, 11)}), 3);
}

TEST_F(ScheduleTest, ScatterFoldsInOrder) {
  const UOp* x = b_.Param("x", Scalar::kI32, {6});
  const UOp* p = b_.Param("p", Scalar::kI32, {9});
  const UOp* u = b_.Param("u", Scalar::kI32, {9});
  std::vector<const UOp*> results;
  for (ScatterKind kind : {ScatterKind::kSet, ScatterKind::kAdd, ScatterKind::kMax}) {
    results.push_back(b_.Scatter(kind, x, p, b_.Mul(u, u), 0));
  }
  EXPECT_EQ(Check(results, {Iota(Scalar::kI32, {6}), Iota(Scalar::kI32, {9}, 11),
                            Iota(Scalar::kI32, {9}, 5)}),
            3);
}

TEST_F(ScheduleTest, UpdatesInPlaceReadBeforeTheyWrite) {
  const UOp* w = b_.Param("w", Scalar::kI32, {6}, Access::kInOut);
  const UOp* flipped = b_.Flip(w, {0});
  const UOp* w1 = b_.After(w, {b_.Assign(w, b_.Add(w, flipped))});
  // The old and the new state in one value.
  const UOp* both = b_.Sub(w1, b_.Mul(w, b_.ConstInt(Scalar::kI32, 3)));
  Check({both, w1}, {Iota(Scalar::kI32, {6})});
}

TEST_F(ScheduleTest, AssignsToParts) {
  const UOp* w = b_.Param("w", Scalar::kI32, {6, 4}, Access::kInOut);
  const UOp* row = b_.ShrinkAxis(w, 0, b_.Index(2), b_.Index(1));
  const UOp* w1 = b_.After(w, {b_.Assign(row, b_.ConstInt(Scalar::kI32, 7))});
  const UOp* column = b_.ShrinkAxis(w1, 1, b_.Index(0), b_.Index(2));
  const UOp* other = b_.ShrinkAxis(w1, 1, b_.Index(2), b_.Index(2));
  const UOp* w2 = b_.After(w1, {b_.Assign(column, b_.Add(other, column))});
  Check({w2}, {Iota(Scalar::kI32, {6, 4})});
}

TEST_F(ScheduleTest, DynamicSizes) {
  const UOp* n = b_.Variable("n", 1, 9);
  const UOp* x = b_.Param("x", Scalar::kF32, Shape{n, b_.Index(5)});
  const UOp* flat = b_.Reshape(x, Shape{b_.dims().Mul(n, b_.Index(5))});
  const UOp* sum = b_.ReduceAxis(ReduceKind::kAdd, flat, {0}, false);
  const UOp* y = Softmax(b_.Transpose(x, 0, 1));
  for (int64_t size : {1, 4, 9}) {
    EXPECT_EQ(Check({sum, y}, {Iota(Scalar::kF32, {size, 5})}, 1e-6, {{"n", size}}), 2);
  }
}

TEST_F(ScheduleTest, LargeReductionsAreTrees) {
  const UOp* x = b_.Param("x", Scalar::kF32, {300001});
  EXPECT_EQ(Check({b_.ReduceAxis(ReduceKind::kAdd, x, {0}, false)}, {Iota(Scalar::kF32, {300001})}),
            2);
}

// A core that has some of the values alone would compute all that they have in common.
TEST_F(ScheduleTest, LoopsThatChooseBetweenValuesStayOnOneCore) {
  const UOp* x = b_.Param("x", Scalar::kF32, {64, 512});
  const UOp* row = b_.Reshape(x, {1, 64, 512});
  const UOp* number = b_.Reshape(b_.Arange(b_.Index(4), Scalar::kI32), {4, 1, 1});
  const UOp* value = row;
  for (int64_t i = 0; i < 3; ++i) {
    const UOp* is_it = b_.Make(Op::kCmpEq, {number, b_.ConstInt(Scalar::kI32, i)});
    value = b_.Where(is_it, b_.Make(Op::kSqrt, {b_.Add(row, b_.Like(row, i + 9.0))}), value);
  }
  EXPECT_EQ(Check({value}, {Iota(Scalar::kF32, {64, 512})}), 1);
  EXPECT_THAT(text_, HasSubstr("core_id"));
  EXPECT_THAT(text_, HasSubstr("range 4 loop"));
}

TEST_F(ScheduleTest, PiecesAreFoundWhereTheyLieOneAfterTheOther) {
  const UOp* x = b_.Param("x", Scalar::kF32, {1, 3, 2});
  auto kept = [&](std::initializer_list<const UOp*> values) {
    std::vector<const UOp*> result;
    for (const UOp* value : values) result.push_back(b_.Contiguous(value));
    return result;
  };
  ShapeAnalysis shapes(*context_);
  const UOp* small = b_.ShrinkAxis(x, 1, b_.Index(0), b_.Index(1));
  const std::vector<const UOp*> values = kept({x, small, b_.Mul(x, x)});
  std::vector<Piece> pieces = FindPieces(b_.Contiguous(Concatenate(b_, values, 1)), shapes);
  ASSERT_EQ(pieces.size(), 3u);
  for (size_t i = 0; i < pieces.size(); ++i) EXPECT_EQ(pieces[i].value, values[i]);
  EXPECT_EQ(pieces[0].begin, 0);
  EXPECT_EQ(pieces[1].begin, 6);
  EXPECT_EQ(pieces[2].begin, 8);
  EXPECT_EQ(FindPieces(Concatenate(b_, values, 1), shapes).size(), 3u);
  // Rows that take turns, values that are in no memory, sizes that are not known, other choices.
  EXPECT_TRUE(FindPieces(Concatenate(b_, kept({x, b_.Mul(x, x)}), 2), shapes).empty());
  EXPECT_TRUE(FindPieces(Concatenate(b_, {x, b_.Mul(x, x)}, 1), shapes).empty());
  const UOp* n = b_.Param("n", Scalar::kF32, Shape{b_.Variable("n", 1, 5)});
  EXPECT_TRUE(FindPieces(Concatenate(b_, kept({n, b_.Mul(n, n)}), 0), shapes).empty());
  const UOp* chosen = b_.Where(b_.Make(Op::kCmpLt, {x, b_.Like(x, 3)}), values[0], values[2]);
  EXPECT_TRUE(FindPieces(chosen, shapes).empty());
  EXPECT_TRUE(FindPieces(x, shapes).empty());
}

TEST_F(ScheduleTest, ManyPiecesAreComputedInTheirPlaces) {
  const UOp* x = b_.Param("x", Scalar::kF32, {5});
  const UOp* all = Concatenate(b_, Rows(x, 40), 0);
  // One kernel that knows its number when it is called, and no other moves anything.
  EXPECT_EQ(Check({all}, {Iota(Scalar::kF32, {5})}), 1);
  EXPECT_THAT(text_, HasSubstr("buffer_view"));
  // What else reads the whole comes after all of it; a piece may be a result by itself.
  const std::vector<const UOp*> rows = Rows(x, 20);
  const UOp* whole = Concatenate(b_, rows, 0);
  const UOp* sum = b_.ReduceAxis(ReduceKind::kAdd, b_.Mul(whole, whole), {0}, false);
  Check({sum, whole, rows[3], b_.Reshape(whole, {20, 5})}, {Iota(Scalar::kF32, {5})});
}

TEST_F(ScheduleTest, PiecesThatAreInMemoryAlreadyAreCopied) {
  const UOp* x = b_.Param("x", Scalar::kF32, {5});
  std::vector<const UOp*> rows = Rows(x, 20);
  rows[7] = x;
  Check({Concatenate(b_, rows, 0)}, {Iota(Scalar::kF32, {5})});
  EXPECT_THAT(text_, HasSubstr("copy "));
  // One value cannot be in two places.
  rows[9] = x;
  Check({Concatenate(b_, rows, 0)}, {Iota(Scalar::kF32, {5})});
  const std::vector<const UOp*> rest(rows.begin() + 1, rows.end());
  Check({Concatenate(b_, rows, 0), Concatenate(b_, rest, 0)}, {Iota(Scalar::kF32, {5})});
}

TEST_F(ScheduleTest, KernelsThatDifferInNumbersAloneAreOne) {
  const UOp* x = b_.Param("x", Scalar::kF32, {5});
  auto scaled = [&](int begin, int end) {
    std::vector<const UOp*> results;
    for (int i = begin; i < end; ++i) {
      const UOp* sum = b_.Add(b_.Mul(x, b_.Like(x, i + 0.25)), b_.Like(x, 3 * i + 0.5));
      results.push_back(b_.Make(Op::kMax, {sum, b_.Like(x, 0)}));
    }
    return results;
  };
  EXPECT_EQ(Check(scaled(2, 9), {Iota(Scalar::kF32, {5})}), 7);
  EXPECT_EQ(Check(scaled(2, 10), {Iota(Scalar::kF32, {5})}), 1);
  EXPECT_THAT(text_, HasSubstr("bind %constant0, "));
  EXPECT_THAT(text_, HasSubstr("max %7, 0.0"));
}

TEST_F(ScheduleTest, NumbersThatShapeTheCodeStayInIt) {
  const UOp* x = b_.Param("x", Scalar::kF32, {5});
  std::vector<const UOp*> divided, doubles;
  for (int i = 2; i < 12; ++i) divided.push_back(b_.Make(Op::kFdiv, {x, b_.Like(x, i)}));
  EXPECT_EQ(Check(divided, {Iota(Scalar::kF32, {5})}), 10);
  const UOp* y = b_.Cast(x, Scalar::kF64);
  for (int i = 2; i < 12; ++i) doubles.push_back(b_.Mul(y, b_.Like(y, i)));
  EXPECT_EQ(Check(doubles, {Iota(Scalar::kF32, {5})}), 10);
}

// A core with some of a few rows would read all of the other operand for them.
TEST_F(ScheduleTest, CoresGetColumnsOfProductsOfFewRows) {
  const UOp* x = b_.Param("x", Scalar::kF32, {8, 256});
  const UOp* y = b_.Param("y", Scalar::kF32, {256, 512});
  EXPECT_EQ(Check({Matmul(x, y)}, {Iota(Scalar::kF32, {8, 256}), Iota(Scalar::kF32, {256, 512})}),
            1);
  EXPECT_THAT(text_, HasSubstr("core_id 2"));
  EXPECT_THAT(text_, HasSubstr("range 8 loop"));
  EXPECT_THAT(text_, HasSubstr("range 256 loop"));
}

}  // namespace
}  // namespace svod
