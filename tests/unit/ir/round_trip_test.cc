// parse(print(g)) is g: on the examples, on kernels written for one rule each, on random kernels
// and on graphs of a million nodes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <random>
#include <sstream>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "ir/evaluate.h"
#include "ir/kernel_builder.h"
#include "ir/linearize.h"
#include "ir/text.h"
#include "ir/verify.h"

namespace svod {
namespace {

// Prints, parses into the same context and compares the roots; returns the text.
std::string ExpectRoundTrip(const Module& module) {
  absl::StatusOr<std::string> printed = Print(module);
  EXPECT_TRUE(printed.ok()) << printed.status();
  if (!printed.ok()) return "";
  absl::StatusOr<Module> again = ParseModule(*printed, "printed.uop", module.context);
  EXPECT_TRUE(again.ok()) << again.status() << "\n" << printed->substr(0, 4000);
  if (!again.ok()) return "";
  EXPECT_EQ(again->functions.size(), module.functions.size());
  EXPECT_EQ(again->functions.back().root, module.functions.back().root) << printed->substr(0, 4000);
  absl::StatusOr<std::string> twice = Print(*again);
  EXPECT_EQ(*twice, *printed);

  // The canonical text is the same from a context that made its nodes in another order.
  auto other = std::make_shared<Context>();
  absl::StatusOr<std::string> canonical = PrintCanonical(module.functions.back().root);
  absl::StatusOr<Module> elsewhere = ParseModule(*canonical, "canonical.uop", other);
  EXPECT_TRUE(elsewhere.ok()) << elsewhere.status();
  if (!elsewhere.ok()) return *printed;
  EXPECT_EQ(elsewhere->functions.back().root->hash(), module.functions.back().root->hash());
  EXPECT_EQ(*PrintCanonical(elsewhere->functions.back().root), *canonical);
  return *printed;
}

std::string ExpectTextRoundTrip(absl::string_view text) {
  absl::StatusOr<Module> module = ParseModule(text, "t.uop", std::make_shared<Context>());
  EXPECT_TRUE(module.ok()) << module.status();
  return module.ok() ? ExpectRoundTrip(*module) : "";
}

TEST(RoundTrip, EveryExample) {
  int num_examples = 0;
  // tests/data need not exist: step out of it by name.
  std::filesystem::path root = std::filesystem::path(SVOD_TEST_DATA).parent_path().parent_path();
  std::filesystem::path folder = root / "examples";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".uop") continue;
    SCOPED_TRACE(entry.path().string());
    std::stringstream text;
    text << std::ifstream(entry.path()).rdbuf();
    ExpectTextRoundTrip(text.str());
    ++num_examples;
  }
  EXPECT_GE(num_examples, 7);
}

// --- Random kernels ---------------------------------------------------------------------------

// Writes a random kernel through the builder and, beside it, what the same statements do when they
// are simply performed one after another.
class RandomKernel {
 public:
  struct Options {
    // Also accesses that are exact or name their state: their order may not be the program's.
    bool odd_orders = false;
  };

  RandomKernel(std::shared_ptr<Context> context, uint32_t seed, const Options& options)
      : builder_(std::move(context), "random"), random_(seed), options_(options) {}

  const UOp* Build() {
    buffers_ = {builder_.Param("y", Scalar::kI32, {6}, Access::kInOut),
                builder_.Param("z", Scalar::kI32, {2, 3}, Access::kInOut),
                builder_.Param("x", Scalar::kI32, {6}, Access::kIn), builder_.Reg(Scalar::kI32, 3),
                builder_.Local(Scalar::kI32, 4)};
    Emit(Statement{.kind = Kind::kConst, .number = 7});
    Emit(Statement{.kind = Kind::kLoad, .buffer = 2});
    Emit(Statement{.kind = Kind::kStore, .buffer = 0, .a = 1});
    Emit(Statement{.kind = Kind::kStore, .buffer = 1, .a = 0});
    Body(&top_, 10, /*may_store=*/true);
    absl::StatusOr<const UOp*> sink = builder_.Finish();
    EXPECT_TRUE(sink.ok()) << sink.status();
    return sink.ok() ? *sink : nullptr;
  }

  // Performs the statements on y, z and x.
  void Perform(std::vector<int32_t>* y, std::vector<int32_t>* z, const std::vector<int32_t>& x) {
    memory_ = {*y, *z, x, std::vector<int32_t>(3), std::vector<int32_t>(4)};
    Perform(top_);
    *y = memory_[0];
    *z = memory_[1];
  }

 private:
  enum class Kind { kConst, kLoad, kStore, kAdd, kMul, kLoop, kReduce };
  struct Statement {
    Kind kind;
    int result = -1;
    int buffer = 0;
    int a = 0, b = 0;    // values
    int loop = -1;       // position: + the counter of this loop
    int dynamic = -1;    // position: + this value
    int64_t number = 0;  // position: + this; constants; trips of a loop
    int lanes = 1;
    std::vector<Statement> body = {};
  };

  int Random(int n) { return static_cast<int>(random_() % static_cast<uint32_t>(n)); }
  int RandomValue() {
    return visible_[static_cast<size_t>(Random(static_cast<int>(visible_.size())))];
  }

  const UOp* Position(const Statement& s) {
    const UOp* position = builder_.context().Index(s.number);
    if (s.loop >= 0) position = builder_.Make(Op::kAdd, {counters_[s.loop], position});
    if (s.dynamic >= 0) {
      const UOp* value = builder_.Make(Op::kCast, Scalar::kIndex, {values_[s.dynamic]});
      position = builder_.Make(Op::kAdd, {value, position});
    }
    return position;
  }

  // Builds one statement that is not a loop, and keeps it.
  void Emit(Statement s) { Emit(&top_, std::move(s)); }
  void Emit(std::vector<Statement>* list, Statement s) {
    const UOp* node = nullptr;
    KernelBuilder::AccessOptions access;
    if (options_.odd_orders) access.exact = Random(4) == 0;
    const UOp* buffer = buffers_[static_cast<size_t>(s.buffer)];
    if (options_.odd_orders && !effects_.empty() && Random(4) == 0) {
      buffer = builder_.After(
          buffer, {effects_[static_cast<size_t>(Random(static_cast<int>(effects_.size())))]});
    }
    switch (s.kind) {
      case Kind::kConst:
        node = builder_.context().Int(Scalar::kI32, s.number);
        break;
      case Kind::kLoad:
        access.lanes = s.lanes;
        node = builder_.Load(buffer, {Position(s)}, access);
        if (s.lanes == 2) {
          uint16_t first[] = {0}, second[] = {1};
          node =
              builder_.Make(Op::kAdd, {builder_.Make(Op::kLanes, {node}, LanesArgument{first}),
                                       builder_.Make(Op::kLanes, {node}, LanesArgument{second})});
        }
        break;
      case Kind::kStore: {
        const UOp* value = values_[s.a];
        if (s.lanes > 1) value = builder_.Make(Op::kSplat, DType(Scalar::kI32, s.lanes), {value});
        const UOp* store = builder_.Store(buffer, {Position(s)}, value, access);
        effects_.push_back(store);
        list->push_back(std::move(s));
        return;
      }
      case Kind::kAdd:
        node = builder_.Make(Op::kAdd, {values_[s.a], values_[s.b]});
        break;
      case Kind::kMul:
        node = builder_.Make(Op::kMul, {values_[s.a], values_[s.b]});
        break;
      case Kind::kLoop:
      case Kind::kReduce:
        return;
    }
    ASSERT_NE(node, nullptr) << builder_.status();
    s.result = NewValue(node);
    list->push_back(std::move(s));
  }

  int NewValue(const UOp* node) {
    values_.push_back(node);
    visible_.push_back(static_cast<int>(values_.size()) - 1);
    return visible_.back();
  }

  void Body(std::vector<Statement>* list, int num_statements, bool may_store) {
    for (int i = 0; i < num_statements && builder_.status().ok(); ++i) {
      int choice = Random(may_store ? 12 : 7);
      Statement s{.kind = Kind::kLoad, .buffer = Random(5)};
      s.number = Random(5) - 1;
      s.lanes = 1 + Random(2);
      if (!counters_.empty() && Random(2) == 0) s.loop = Random(static_cast<int>(counters_.size()));
      if (Random(4) == 0) s.dynamic = RandomValue();
      if (choice < 4) {
        Emit(list, s);
      } else if (choice < 6) {
        Emit(list, {.kind = choice == 4 ? Kind::kAdd : Kind::kMul,
                    .a = RandomValue(),
                    .b = RandomValue()});
      } else if (choice == 6) {
        if (counters_.size() < 4) Loop(list, /*is_reduce=*/true);
      } else if (choice < 10) {
        s.kind = Kind::kStore;
        if (s.buffer == 2) s.buffer = 0;
        s.a = RandomValue();
        Emit(list, s);
      } else if (counters_.size() < 4) {
        Loop(list, /*is_reduce=*/false);
      }
    }
  }

  void Loop(std::vector<Statement>* list, bool is_reduce) {
    Statement loop{.kind = is_reduce ? Kind::kReduce : Kind::kLoop};
    loop.number = Random(4);
    size_t num_visible = visible_.size();
    size_t num_effects = effects_.size();
    const UOp* range = builder_.Range(loop.number, is_reduce ? AxisKind::kReduce : AxisKind::kLoop);
    counters_.push_back(range);
    Body(&loop.body, 2 + Random(4), !is_reduce);
    if (!is_reduce) {
      Emit(&loop.body, {.kind = Kind::kStore,
                        .buffer = 1,
                        .a = RandomValue(),
                        .loop = static_cast<int>(counters_.size()) - 1});
    }
    int values[] = {RandomValue(), RandomValue()};
    counters_.pop_back();
    visible_.resize(num_visible);
    effects_.resize(num_effects);
    if (!is_reduce) {
      const UOp* end = builder_.End(range);
      ASSERT_NE(end, nullptr) << builder_.status();
      effects_.push_back(end);
      list->push_back(std::move(loop));
      return;
    }
    // Two sums over one loop.
    loop.a = values[0];
    loop.b = values[1];
    loop.result = NewValue(builder_.Reduce(ReduceKind::kAdd, values_[loop.a], {range}));
    NewValue(builder_.Reduce(ReduceKind::kMax, values_[loop.b], {range}));
    list->push_back(std::move(loop));
  }

  // --- Performing -----------------------------------------------------------------------------

  int32_t* Element(const Statement& s, int lane) {
    int64_t position = s.number + lane;
    if (s.loop >= 0) position += trips_[static_cast<size_t>(s.loop)];
    if (s.dynamic >= 0) position += numbers_[s.dynamic];
    std::vector<int32_t>& memory = memory_[static_cast<size_t>(s.buffer)];
    bool is_inside = position >= 0 && position < static_cast<int64_t>(memory.size());
    return is_inside ? &memory[static_cast<size_t>(position)] : nullptr;
  }

  static int32_t Wrap(int64_t value) { return static_cast<int32_t>(static_cast<uint64_t>(value)); }

  void Perform(const std::vector<Statement>& list) {
    for (const Statement& s : list) {
      switch (s.kind) {
        case Kind::kConst:
          numbers_[s.result] = static_cast<int32_t>(s.number);
          break;
        case Kind::kLoad: {
          int64_t sum = 0;
          for (int lane = 0; lane < s.lanes; ++lane) {
            if (int32_t* element = Element(s, lane)) sum += *element;
          }
          numbers_[s.result] = Wrap(sum);
          break;
        }
        case Kind::kStore:
          for (int lane = 0; lane < s.lanes; ++lane) {
            if (int32_t* element = Element(s, lane)) *element = numbers_[s.a];
          }
          break;
        case Kind::kAdd:
          numbers_[s.result] = Wrap(int64_t{numbers_[s.a]} + numbers_[s.b]);
          break;
        case Kind::kMul:
          numbers_[s.result] = Wrap(int64_t{numbers_[s.a]} * numbers_[s.b]);
          break;
        case Kind::kLoop:
        case Kind::kReduce: {
          int64_t sum = 0;
          int32_t largest = std::numeric_limits<int32_t>::min();
          trips_.push_back(0);
          for (int64_t i = 0; i < s.number; ++i) {
            trips_.back() = i;
            Perform(s.body);
            if (s.kind == Kind::kReduce) {
              sum = Wrap(sum + numbers_[s.a]);
              largest = std::max(largest, numbers_[s.b]);
            }
          }
          trips_.pop_back();
          if (s.kind == Kind::kReduce) {
            numbers_[s.result] = static_cast<int32_t>(sum);
            numbers_[s.result + 1] = largest;
          }
          break;
        }
      }
    }
  }

  KernelBuilder builder_;
  std::mt19937 random_;
  Options options_;
  std::vector<const UOp*> buffers_, counters_, effects_, values_;
  std::vector<int> visible_;
  std::vector<Statement> top_;
  std::vector<std::vector<int32_t>> memory_;
  std::vector<int64_t> trips_;
  std::map<int, int32_t> numbers_;
};

// The graph means what the sequence of statements means: the interpreter, which only follows the
// graph, computes what the statements do one after another.
void CheckStatementsInOrder(uint32_t num_seeds) {
  uint32_t num_explicit = 0;
  for (uint32_t seed = 0; seed < num_seeds && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    auto context = std::make_shared<Context>();
    RandomKernel kernel(context, seed, {});
    const UOp* sink = kernel.Build();
    ASSERT_NE(sink, nullptr);
    Function function{sink, {}, ""};
    std::string text = ExpectRoundTrip(Module{context, {function}});
    absl::Status verified = Verify(function);
    EXPECT_TRUE(verified.ok()) << verified << "\n" << text;
    if (text.find("after") != std::string::npos) ++num_explicit;

    std::vector<int32_t> x = {3, -1, 4, 1, -5, 9}, y = {2, 7, 1, 8, 2, 8}, z = {1, 0, 2, 1, 0, 3};
    std::vector<int32_t> expected_y = y, expected_z = z;
    kernel.Perform(&expected_y, &expected_z, x);
    absl::Span<std::byte> buffers[] = {
        {reinterpret_cast<std::byte*>(y.data()), y.size() * sizeof(int32_t)},
        {reinterpret_cast<std::byte*>(z.data()), z.size() * sizeof(int32_t)},
        {reinterpret_cast<std::byte*>(x.data()), x.size() * sizeof(int32_t)}};
    absl::Status status = Evaluate(sink, buffers);
    ASSERT_TRUE(status.ok()) << status << "\n" << text;
    EXPECT_EQ(y, expected_y) << text;
    EXPECT_EQ(z, expected_z) << text;
  }
  // The builder's own order goes without saying, but for loads that it had to take for used: they
  // are gone from the graph, and the text shows what is ordered after them.
  EXPECT_LE(num_explicit, num_seeds / 20);
}

TEST(RoundTrip, RandomKernelsMeanTheirStatementsInOrder) { CheckStatementsInOrder(300); }
TEST(RoundTripSlow, RandomKernelsMeanTheirStatementsInOrder) { CheckStatementsInOrder(20000); }

// Any order of accesses that a graph may have survives the text, also one that the builder would
// not have made.
void CheckOddOrders(uint32_t num_seeds) {
  uint32_t num_ordered = 0;
  for (uint32_t seed = 0; seed < num_seeds && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    auto context = std::make_shared<Context>();
    RandomKernel kernel(context, seed, {.odd_orders = true});
    const UOp* sink = kernel.Build();
    ASSERT_NE(sink, nullptr);
    // Statements that are taken out of their loops may not fit together any more.
    if (!Linearize(sink).ok()) continue;
    ++num_ordered;
    ExpectRoundTrip(Module{context, {Function{sink, {}, ""}}});
  }
  EXPECT_GE(num_ordered, num_seeds / 2);
}

TEST(RoundTrip, RandomKernelsWithOddOrders) { CheckOddOrders(300); }
TEST(RoundTripSlow, RandomKernelsWithOddOrders) { CheckOddOrders(20000); }

// --- Size -------------------------------------------------------------------------------------

double SecondsOf(absl::FunctionRef<void()> work) {
  auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Prints and parses a kernel; the times are a net for what is not linear, wide enough for a slow
// build on a busy machine.
void ExpectLargeRoundTrip(const std::shared_ptr<Context>& context, const UOp* sink) {
  std::string text;
  double print = SecondsOf([&] { text = PrintCanonical(sink).value_or(""); });
  EXPECT_FALSE(text.empty());
  absl::StatusOr<Module> again;
  double parse = SecondsOf([&] { again = ParseModule(text, "large.uop", context); });
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->functions.back().root, sink);
  EXPECT_LT(print, 120);
  EXPECT_LT(parse, 120);
  ::testing::Test::RecordProperty("print_ms", static_cast<int>(print * 1000));
  ::testing::Test::RecordProperty("parse_ms", static_cast<int>(parse * 1000));
}

// Reported case 24: no recursion on the depth of a graph.
void CheckChain(int num_nodes) {
  auto context = std::make_shared<Context>();
  KernelBuilder builder(context, "chain");
  const UOp* y = builder.Param("y", Scalar::kF32, {1}, Access::kInOut);
  const UOp* value = builder.Load(y, context->Index(0));
  for (int i = 0; i < num_nodes; ++i) {
    value = builder.Make(i % 2 == 0 ? Op::kNeg : Op::kSqrt, {value});
  }
  builder.Store(y, context->Index(0), value);
  ExpectLargeRoundTrip(context, builder.Finish().value());
}

TEST(RoundTrip, AChainOfManyNodes) { CheckChain(100000); }
TEST(RoundTripSlow, AChainOfAMillionNodes) { CheckChain(1000000); }

void CheckAccesses(int num_accesses) {
  auto context = std::make_shared<Context>();
  KernelBuilder builder(context, "accesses");
  const UOp* y = builder.Param("y", Scalar::kF32, {int64_t{num_accesses}}, Access::kInOut);
  const UOp* x = builder.Param("x", Scalar::kF32, {int64_t{num_accesses}}, Access::kIn);
  const UOp* n = builder.Variable("n", 0, num_accesses - 1);
  for (int i = 0; i < num_accesses; ++i) {
    const UOp* position = context->Index(i);
    const UOp* sum = builder.Make(Op::kAdd, {builder.Load(y, position), builder.Load(x, position)});
    builder.Store(y, position, sum);
  }
  // One that comes after all of them, and one more after that.
  builder.Store(y, n, context->Float(Scalar::kF32, 0));
  builder.Store(y, context->Index(7), builder.Load(y, n));
  ExpectLargeRoundTrip(context, builder.Finish().value());
}

TEST(RoundTrip, AKernelOfManyAccesses) { CheckAccesses(20000); }
TEST(RoundTripSlow, AKernelOfManyAccesses) { CheckAccesses(300000); }

void CheckLoops(int num_loops) {
  auto context = std::make_shared<Context>();
  KernelBuilder builder(context, "loops");
  const UOp* y = builder.Param("y", Scalar::kF32, {64}, Access::kInOut);
  for (int i = 0; i < num_loops; ++i) {
    const UOp* range = builder.Range(64);
    const UOp* value = builder.Load(y, range);
    builder.Store(y, range, builder.Make(Op::kNeg, {value}));
    builder.End(range);
  }
  ExpectLargeRoundTrip(context, builder.Finish().value());
}

TEST(RoundTrip, ManyLoopsInSequence) { CheckLoops(5000); }
TEST(RoundTripSlow, ManyLoopsInSequence) { CheckLoops(200000); }

void CheckCalls(int num_calls) {
  std::string text =
      "kernel @k(%y: inout f32[4]) {\n  store %y[0], 1.0\n}\n\n"
      "graph @g() {\n  %0 = buffer f32[4]\n";
  for (int i = 0; i < num_calls; ++i) {
    absl::StrAppend(&text, "  %", 2 * i + 1, " = call @k, %", 2 * i, "\n  %", 2 * i + 2,
                    " = after %", 2 * i, ", %", 2 * i + 1, "\n");
  }
  absl::StrAppend(&text, "  return %", 2 * num_calls, "\n}\n");
  absl::StatusOr<Module> module = ParseModule(text, "", std::make_shared<Context>());
  ASSERT_TRUE(module.ok()) << module.status();
  EXPECT_EQ(*Print(*module), text);
}

TEST(RoundTrip, AGraphOfManyCalls) { CheckCalls(20000); }
TEST(RoundTripSlow, AGraphOfAMillionNodes) { CheckCalls(500000); }

}  // namespace
}  // namespace svod
