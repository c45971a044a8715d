#include "plan/launch.h"

#include "gmock/gmock.h"
#include "tests/unit/plan/fake_kernels.h"

namespace svod {
namespace {

using ::testing::ElementsAre;

// n at position 0, m fixed to 5, nothing else.
std::optional<VariableSource> Lookup(absl::string_view name) {
  if (name == "n") return VariableSource{false, 0, 0};
  if (name == "m") return VariableSource{true, 5, 0};
  return std::nullopt;
}

class IndexProgramTest : public ::testing::Test {
 protected:
  const UOp* Variable(absl::string_view name) {
    return Must(context_.Make(Op::kDefineVar, {}, VariableArgument{name, -100, 100}));
  }
  const UOp* Make(Op op, std::vector<const UOp*> sources) {
    return Must(context_.Make(op, sources));
  }
  Context context_;
};

TEST_F(IndexProgramTest, ComputesAsTheInterpreterDoes) {
  const UOp* n = Variable("n");
  const UOp* seven = context_.Index(7);
  const UOp* blocks = Make(Op::kFloordiv, {Make(Op::kAdd, {n, seven}), context_.Index(8)});
  const UOp* clamped = Make(Op::kWhere, {Make(Op::kCmpLt, {n, seven}), seven, blocks});
  IndexProgram program = Must(IndexProgram::Create(clamped, Lookup));
  EXPECT_FALSE(program.is_constant());
  for (int64_t value : {-9, 0, 6, 7, 8, 9, 100}) {
    EXPECT_EQ(program.Run({value}), value < 7 ? 7 : (value + 7) / 8) << value;
  }
}

TEST_F(IndexProgramTest, FoldsWhatIsFixed) {
  IndexProgram program =
      Must(IndexProgram::Create(Make(Op::kMul, {Variable("m"), context_.Index(3)}), Lookup));
  EXPECT_TRUE(program.is_constant());
  EXPECT_EQ(program.Run({}), 15);
  EXPECT_TRUE(IndexProgram().is_constant());
  EXPECT_EQ(IndexProgram().Run({}), 1);
}

TEST_F(IndexProgramTest, BindsStandForTheirConstant) {
  const UOp* bind = Make(Op::kBind, {Variable("unknown"), context_.Index(4)});
  EXPECT_EQ(Must(IndexProgram::Create(bind, Lookup)).Run({}), 4);
  EXPECT_EQ(Must(IndexProgram::Create(Make(Op::kAdd, {bind, Variable("n")}), Lookup)).Run({3}), 7);
}

TEST_F(IndexProgramTest, RefusesWhatIsNoExtent) {
  ExpectError(IndexProgram::Create(Variable("unknown"), Lookup).status(),
              absl::StatusCode::kInvalidArgument, "variable unknown has no value");
  ExpectError(
      IndexProgram::Create(Make(Op::kAdd, {Variable("unknown"), Variable("n")}), Lookup).status(),
      absl::StatusCode::kInvalidArgument, "variable unknown has no value");
  ExpectError(IndexProgram::Create(context_.Int(Scalar::kI32, 4), Lookup).status(),
              absl::StatusCode::kInvalidArgument, "an extent of dtype i32, expected index");
  ExpectError(
      IndexProgram::Create(
          Must(context_.Make(Op::kCast, Scalar::kIndex, {context_.Float(Scalar::kF32, 1.5)})),
          Lookup)
          .status(),
      absl::StatusCode::kInvalidArgument, "a node of dtype f32 in an extent, expected an integer");
  const UOp* range = Must(context_.Make(Op::kRange, {context_.Index(4)}, AxisArgument{}));
  ExpectError(IndexProgram::Create(range, Lookup).status(), absl::StatusCode::kInvalidArgument,
              "range in an extent, expected constants, variables and arithmetic");
}

TEST_F(IndexProgramTest, DeepExpressionsDoNotRecurse) {
  const UOp* sum = Variable("n");
  for (int i = 0; i < 20000; ++i) sum = Make(Op::kAdd, {sum, context_.Index(1)});
  EXPECT_EQ(Must(IndexProgram::Create(sum, Lookup)).Run({5}), 20005);
}

TEST(LaunchSizes, MissingExtentsAreOne) {
  Context context;
  CompiledKernel kernel;
  kernel.global_size[1] = context.Index(6);
  LaunchSizes sizes = Must(LaunchSizes::Create(kernel, Lookup));
  sizes.Resolve({});
  EXPECT_FALSE(sizes.is_symbolic());
  EXPECT_THAT(sizes.global_size(), ElementsAre(1, 6, 1));
}

TEST(LaunchSizes, ErrorsNameTheExtent) {
  Context context;
  CompiledKernel kernel;
  kernel.local_size.emplace();
  (*kernel.local_size)[2] = Must(context.Make(Op::kDefineVar, {}, VariableArgument{"lost", 0, 1}));
  ExpectError(LaunchSizes::Create(kernel, Lookup).status(), absl::StatusCode::kInvalidArgument,
              "local_size[2]: variable lost has no value");
}

}  // namespace
}  // namespace svod
