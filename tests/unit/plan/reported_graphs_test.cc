// Reported cases of other tensor compilers that concern whole graphs; their numbers are in the
// names. Kernels run in the interpreter: what they become is tested elsewhere.
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "ir/evaluate_graph.h"
#include "ir/tensor_builder.h"
#include "ir/text.h"
#include "plan/schedule.h"

namespace svod {
namespace {

TensorValue Floats(std::vector<int64_t> shape, const std::vector<float>& numbers) {
  TensorValue value{Scalar::kF32, std::move(shape), {}};
  value.bytes.resize(numbers.size() * sizeof(float));
  for (size_t i = 0; i < numbers.size(); ++i) {
    value.SetBitsAt(static_cast<int64_t>(i), DoubleToBits(Scalar::kF32, numbers[i]));
  }
  return value;
}

std::vector<float> Numbers(const TensorValue& value) {
  std::vector<float> numbers;
  for (int64_t i = 0; i < value.num_elements(); ++i) {
    numbers.push_back(static_cast<float>(BitsToDouble(Scalar::kF32, value.BitsAt(i))));
  }
  return numbers;
}

// What the scheduled graph returns; parameters that it writes change in `params`.
std::vector<TensorValue> ResultsOf(const absl::StatusOr<Function>& graph,
                                   std::vector<TensorValue>& params,
                                   std::vector<std::pair<std::string, int64_t>> variables = {}) {
  if (!graph.ok()) {
    ADD_FAILURE() << graph.status();
    return {};
  }
  absl::StatusOr<Schedule> schedule = ScheduleGraph(*graph);
  if (!schedule.ok()) {
    ADD_FAILURE() << schedule.status();
    return {};
  }
  EvaluateGraphOptions options{variables, int64_t{1} << 32};
  absl::StatusOr<std::vector<TensorValue>> results =
      EvaluateGraph(schedule->module.functions.back(), params, options);
  EXPECT_TRUE(results.ok()) << results.status();
  return results.value_or(std::vector<TensorValue>());
}

TEST(ReportedGraphs, Case7PositionsBeyond32Bits) {
  TensorBuilder b(std::make_shared<Context>());
  const int64_t size = (int64_t{1} << 31) + 3;
  const UOp* x = b.Param("x", Scalar::kF32, {1});
  const UOp* wide = b.Expand(x, b.ConstShape({size}));
  const UOp* at = b.Param("at", Scalar::kI64, {2});
  TensorValue positions{Scalar::kI64, {2}, std::vector<std::byte>(16)};
  positions.SetBitsAt(1, static_cast<uint64_t>(size - 1));
  std::vector<TensorValue> params = {Floats({1}, {1}), positions};
  std::vector<TensorValue> results = ResultsOf(b.Finish("g", {b.Gather(wide, at, 0)}), params);
  ASSERT_EQ(results.size(), 1);
  EXPECT_THAT(Numbers(results[0]), ::testing::ElementsAre(1, 1));
}

TEST(ReportedGraphs, Case12PaddedMaximaStayNegative) {
  TensorBuilder b(std::make_shared<Context>());
  const UOp* x = b.Param("x", Scalar::kF32, {16});
  const UOp* padded =
      b.PadAxis(x, 0, b.Const(Scalar::kF32, -std::numeric_limits<double>::infinity()), b.Index(0),
                b.Index(16));
  std::vector<float> numbers;
  for (int i = 0; i < 16; ++i) numbers.push_back(static_cast<float>(-20 + i));
  std::vector<TensorValue> params = {Floats({16}, numbers)};
  std::vector<TensorValue> results =
      ResultsOf(b.Finish("g", {b.ReduceAxis(ReduceKind::kMax, padded, {0}, false),
                               b.ReduceAxis(ReduceKind::kMax, x, {0}, false)}),
                params);
  ASSERT_EQ(results.size(), 2);
  EXPECT_EQ(Numbers(results[0]), Numbers(results[1]));
  EXPECT_EQ(Numbers(results[0])[0], -5);
}

TEST(ReportedGraphs, Case15DynamicExtentsFollowTheVariable) {
  TensorBuilder b(std::make_shared<Context>());
  const UOp* n = b.Variable("n", 1, 4);
  const UOp* x = b.Param("x", Scalar::kF32, Shape{n});
  absl::StatusOr<Function> graph = b.Finish("g", {b.Add(x, x)});
  for (int64_t size : {1, 2, 3, 4}) {
    std::vector<TensorValue> params = {Floats({size}, std::vector<float>(size, 3))};
    std::vector<TensorValue> results = ResultsOf(graph, params, {{"n", size}});
    ASSERT_EQ(results.size(), 1);
    EXPECT_EQ(results[0].shape, std::vector<int64_t>{size});
    EXPECT_EQ(Numbers(results[0]), std::vector<float>(size, 6));
  }
}

TEST(ReportedGraphs, Case17UpdatesInPlaceAddUp) {
  TensorBuilder b(std::make_shared<Context>());
  const UOp* w = b.Param("w", Scalar::kF32, {3}, Access::kInOut);
  const UOp* w1 = b.After(w, {b.Assign(w, b.Add(w, b.Like(w, 1)))});
  absl::StatusOr<Function> graph = b.Finish("g", {w1});
  std::vector<TensorValue> params = {Floats({3}, {0, 0, 0})};
  for (float expected : {1.0f, 2.0f, 3.0f}) {
    std::vector<TensorValue> results = ResultsOf(graph, params);
    ASSERT_EQ(results.size(), 1);
    EXPECT_THAT(Numbers(results[0]), ::testing::Each(expected));
    EXPECT_THAT(Numbers(params[0]), ::testing::Each(expected));
  }
}

TEST(ReportedGraphs, Case23LongFloatSumsDoNotDrift) {
  constexpr int64_t kSize = 1000000;
  TensorBuilder b(std::make_shared<Context>());
  const UOp* x = b.Param("x", Scalar::kF32, {kSize});
  std::vector<TensorValue> params = {Floats({kSize}, std::vector<float>(kSize, 0.1f))};
  std::vector<TensorValue> results =
      ResultsOf(b.Finish("g", {b.ReduceAxis(ReduceKind::kAdd, x, {0}, false)}), params);
  ASSERT_EQ(results.size(), 1);
  EXPECT_NEAR(Numbers(results[0])[0], 100000, 0.05);  // one accumulator would give 100958.34
}

TEST(ReportedGraphs, Case24LongChains) {
  TensorBuilder b(std::make_shared<Context>());
  const UOp* x = b.Param("x", Scalar::kF32, {2});
  const UOp* y = x;
  for (int i = 0; i < 100000; ++i) y = b.Make(i % 2 == 0 ? Op::kNeg : Op::kAbs, {y});
  absl::StatusOr<Function> graph = b.Finish("g", {y});
  ASSERT_TRUE(Print(*graph).ok());
  std::vector<TensorValue> params = {Floats({2}, {-3, 4})};
  std::vector<TensorValue> results = ResultsOf(graph, params);
  ASSERT_EQ(results.size(), 1);
  EXPECT_THAT(Numbers(results[0]), ::testing::ElementsAre(3, 4));
}

// A stack of very many tensors: each piece padded to its place and selected there.
TEST(ReportedGraphs, Case24StackOfThousands) {
  constexpr int64_t kPieces = 6131;
  TensorBuilder b(std::make_shared<Context>());
  std::vector<TensorValue> params;
  const UOp* stacked = nullptr;
  const UOp* at = b.Arange(b.Index(kPieces), Scalar::kI64);
  for (int64_t i = 0; i < kPieces; ++i) {
    const UOp* piece = b.Param(absl::StrCat("x", i), Scalar::kF32, {1});
    params.push_back(Floats({1}, {static_cast<float>(i)}));
    const UOp* is_here = b.Make(Op::kCmpEq, {at, b.ConstInt(Scalar::kI64, i)});
    stacked = stacked == nullptr ? b.Expand(piece, b.ConstShape({kPieces}))
                                 : b.Where(is_here, piece, stacked);
  }
  std::vector<TensorValue> results = ResultsOf(b.Finish("g", {stacked}), params);
  ASSERT_EQ(results.size(), 1);
  for (int64_t i = 0; i < kPieces; ++i) {
    ASSERT_EQ(Numbers(results[0])[static_cast<size_t>(i)], static_cast<float>(i));
    if (i == 100) break;
  }
  EXPECT_EQ(Numbers(results[0]).back(), kPieces - 1);
}

TEST(ReportedGraphs, Case25ManyBuffersIntoOneKernel) {
  for (int64_t count : {40, 100}) {
    TensorBuilder b(std::make_shared<Context>());
    std::vector<TensorValue> params;
    const UOp* sum = nullptr;
    for (int64_t i = 0; i < count; ++i) {
      const UOp* x = b.Param(absl::StrCat("x", i), Scalar::kF32, {5});
      params.push_back(Floats({5}, std::vector<float>(5, static_cast<float>(i))));
      sum = sum == nullptr ? x : b.Add(sum, x);
    }
    std::vector<TensorValue> results = ResultsOf(b.Finish("g", {sum}), params);
    ASSERT_EQ(results.size(), 1);
    EXPECT_THAT(Numbers(results[0]), ::testing::Each(static_cast<float>(count * (count - 1) / 2)));
  }
}

TEST(ReportedGraphs, EmptyReductionsGiveTheIdentity) {
  TensorBuilder b(std::make_shared<Context>());
  const UOp* x = b.Param("x", Scalar::kF32, {0, 3});
  std::vector<const UOp*> results;
  for (ReduceKind kind : {ReduceKind::kAdd, ReduceKind::kMul, ReduceKind::kMax}) {
    results.push_back(b.ReduceAxis(kind, x, {0}, false));
  }
  std::vector<TensorValue> params = {Floats({0, 3}, {})};
  std::vector<TensorValue> values = ResultsOf(b.Finish("g", results), params);
  ASSERT_EQ(values.size(), 3);
  EXPECT_THAT(Numbers(values[0]), ::testing::Each(0));
  EXPECT_THAT(Numbers(values[1]), ::testing::Each(1));
  EXPECT_THAT(Numbers(values[2]), ::testing::Each(-std::numeric_limits<float>::infinity()));
}

}  // namespace
}  // namespace svod
