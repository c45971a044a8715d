// Which kernels write a parameter whole and which may work in place; and those that do, run on one
// buffer, against the kernels that they are made of, run on two.
#include "plan/in_place.h"

#include <cstring>

#include "gmock/gmock.h"
#include "ir/evaluate.h"
#include "ir/text.h"
#include "tests/unit/plan/fake_kernels.h"

namespace svod {
namespace {

struct Case {
  const char* name;
  const char* header;  // parameters 0 (written) and 1 (read) and others
  const char* body;
  bool writes_whole;
  bool in_place;
};

const Case kCases[] = {
    {"Elementwise", "%y: out f32[6], %x: f32[6]",
     "%i = range 6 loop\n%v = load %x[%i]\n%w = add %v, 1.0\nstore %y[%i], %w\nend %i", true, true},
    {"LoadTwiceBeforeTheStore", "%y: out f32[6], %x: f32[6]",
     "%i = range 6 loop\n%v = load %x[%i]\n%u = load %x[%i]\n%w = add %v, %u\nstore %y[%i], %w\n"
     "end %i",
     true, true},
    {"Reversed", "%y: out f32[6], %x: f32[6]",
     "%i = range 6 loop\n%j = sub 5, %i\n%v = load %x[%j]\nstore %y[%i], %v\nend %i", true, false},
    {"ReversedBoth", "%y: out f32[6], %x: f32[6]",
     "%i = range 6 loop\n%j = sub 5, %i\n%v = load %x[%j]\nstore %y[%j], %v\nend %i", false, false},
    {"RowsAndColumns", "%y: out f32[2, 3], %x: f32[2, 3]",
     "%i = range 2 loop\n%j = range 3 loop\n%v = load %x[%i, %j]\nstore %y[%i, %j], %v\nend %j\n"
     "end %i",
     true, true},
    {"Transposed", "%y: out f32[3, 3], %x: f32[3, 3]",
     "%i = range 3 loop\n%j = range 3 loop\n%v = load %x[%j, %i]\nstore %y[%i, %j], %v\nend %j\n"
     "end %i",
     true, false},
    {"OtherShape", "%y: out f32[2, 3], %x: f32[6]",
     "%i = range 6 loop\n%v = load %x[%i]\nstore %y[%i], %v\nend %i", true, true},
    {"Longer", "%y: out f32[6], %x: f32[7]",
     "%i = range 6 loop\n%v = load %x[%i]\nstore %y[%i], %v\nend %i", true, false},
    {"OtherSize", "%y: out f64[6], %x: f32[6]",
     "%i = range 6 loop\n%v = load %x[%i]\n%w = cast %v : f64\nstore %y[%i], %w\nend %i", true,
     false},
    {"OtherTypeOfTheSameSize", "%y: out i32[6], %x: f32[6]",
     "%i = range 6 loop\n%v = load %x[%i]\n%w = cast %v : i32\nstore %y[%i], %w\nend %i", true,
     true},
    {"BoolFromBytes", "%y: out u8[6], %x: bool[6]",
     "%i = range 6 loop\n%v = load %x[%i]\n%w = cast %v : u8\nstore %y[%i], %w\nend %i", true,
     false},
    {"LoadAgainInAnotherLoop", "%y: out f32[6], %x: f32[6], %z: out f32[6]",
     "%i = range 6 loop\n%v = load %x[%i]\nstore %y[%i], %v\nend %i\n"
     "%j = range 6 loop\n%u = load %x[%j]\nstore %z[%j], %u\nend %j",
     true, false},
    {"LoadThatIsNotStored", "%y: out f32[6], %x: f32[6], %z: out f32[6]",
     "%i = range 6 loop\n%v = load %x[%i]\nstore %y[%i], 2.0\nstore %z[%i], %v\nend %i", true,
     true},
    {"OuterLoopThatRepeatsTheStore", "%y: out f32[6], %x: f32[6], %z: f32[4]",
     "%r = range 4 loop\n%c = load %z[%r]\n%i = range 6 loop\n%v = load %x[%i]\n%w = add %v, %c\n"
     "store %y[%i], %w\nend %i\nend %r",
     true, false},
    {"SumsOverTheSameElements", "%y: out f32[6], %x: f32[6]",
     "%i = range 6 loop\n%j = range 6 reduce\n%v = load %x[%j]\n%s = reduce_add %v, %j\n"
     "store %y[%i], %s\nend %i",
     true, false},
    {"NormalisesByTheSum", "%y: out f32[6], %x: f32[6]",
     "%j = range 6 reduce\n%v = load %x[%j]\n%s = reduce_add %v, %j\n"
     "%i = range 6 loop\n%u = load %x[%i]\n%w = fdiv %u, %s\nstore %y[%i], %w\nend %i",
     true, false},
    {"GatedStore", "%y: out f32[6], %x: f32[6]",
     "%i = range 6 loop\n%g = cmplt %i, 5\n%v = load %x[%i]\nstore %y[%i], %v, gate=%g\nend %i",
     false, false},
    {"GatedLoad", "%y: out f32[6], %x: f32[6]",
     "%i = range 6 loop\n%g = cmplt %i, 5\n%v = load %x[%i], gate=%g\nstore %y[%i], %v\nend %i",
     true, false},
    {"StoresAPart", "%y: out f32[6], %x: f32[6]",
     "%i = range 5 loop\n%v = load %x[%i]\nstore %y[%i], %v\nend %i", false, false},
    {"StoresEverySecond", "%y: out f32[6], %x: f32[6]",
     "%i = range 3 loop\n%j = mul %i, 2\n%v = load %x[%j]\nstore %y[%j], %v\nend %i", false, false},
    {"StoresTheFirstTwice", "%y: out f32[6], %x: f32[6]",
     "%i = range 6 loop\n%v = load %x[%i]\nstore %y[%i], %v\nend %i\nstore %y[0], 1.0", true,
     false},
    {"LoopThatMayNotRun", "%y: out f32[6], %x: f32[6]",
     "%n = define_var \"n\", min=0, max=3\n%r = range %n loop\n%i = range 6 loop\n"
     "%v = load %x[%i]\n%q = cast %r : f32\n%w = add %v, %q\nstore %y[%i], %w\nend %i\nend %r",
     false, false},
    {"LoopThatRunsAtLeastOnce", "%y: out f32[6], %x: f32[6]",
     "%n = define_var \"n\", min=1, max=3\n%r = range %n loop\n%i = range 6 loop\n"
     "%v = load %x[%i]\n%q = cast %r : f32\n%w = add %v, %q\nstore %y[%i], %w\nend %i\nend %r",
     true, false},
    {"Triangle", "%y: out f32[6], %x: f32[6]",
     "%i = range 3 loop\n%j = range %i loop\n%p = add %i, %j\n%v = load %x[%p]\nstore %y[%p], %v\n"
     "end %j\nend %i",
     false, false},
    {"SplitByCores", "%y: out f32[6], %x: f32[6]",
     "%c = core_id 2\n%b = mul %c, 3\n%i = range 3 loop\n%p = add %b, %i\n%v = load %x[%p]\n"
     "store %y[%p], %v\nend %i",
     true, true},
    {"EveryCoreStoresAll", "%y: out f32[6], %x: f32[6], %z: out f32[2]",
     "%c = core_id 2\nstore %z[%c], 1.0\n%i = range 6 loop\n%v = load %x[%i]\n"
     "%w = cast %c : f32\n%u = add %v, %w\nstore %y[%i], %u\nend %i",
     true, false},
    {"CoresWhoseLastHasLess", "%y: out f32[7], %x: f32[7]",
     "%c = core_id 3\n%b = mul %c, 3\n%l = sub 7, %b\n%m = min 3, %l\n%i = range %m loop\n"
     "%p = add %b, %i\n%v = load %x[%p]\nstore %y[%p], %v\nend %i",
     true, true},
    {"CoresThatDoNotReachTheEnd", "%y: out f32[7], %x: f32[7]",
     "%c = core_id 2\n%b = mul %c, 3\n%l = sub 7, %b\n%m = min 3, %l\n%i = range %m loop\n"
     "%p = add %b, %i\n%v = load %x[%p]\nstore %y[%p], %v\nend %i",
     false, false},
    {"TwoLoopsAsOne", "%y: out f32[2, 3, 5], %x: f32[2, 3, 5]",
     "%i = range 6 loop\n%a = floordiv %i, 3\n%b = floormod %i, 3\n%j = range 5 loop\n"
     "%v = load %x[%a, %b, %j]\nstore %y[%a, %b, %j], %v\nend %j\nend %i",
     true, true},
    {"TwoLoopsAsOneChanged", "%y: out f32[3, 2], %x: f32[3, 2]",
     "%i = range 6 loop\n%a = floordiv %i, 3\n%b = floormod %i, 3\n"
     "%v = load %x[%b, %a]\nstore %y[%b, %a], %v\nend %i",
     false, false},
    {"NoDimensions", "%y: out f32[1], %x: f32[1]", "%v = load %x[0]\nstore %y[0], %v", true, true},
    {"NoElements", "%y: out f32[0], %x: f32[0]",
     "%i = range 0 loop\n%v = load %x[%i]\nstore %y[%i], %v\nend %i", true, true},
};

// Loads from the fourth lane on and a position of a vector are beyond what is looked into.
const Case kVectorCases[] = {
    {"Lanes", "%y: out f32[8], %x: f32[8]",
     "%i = range 2 loop\n%p = mul %i, 4\n%v = load %x[%p] : f32x4\nstore %y[%p], %v\nend %i", true,
     true},
    {"LanesThatOverlap", "%y: out f32[8], %x: f32[8]",
     "%i = range 5 loop\n%v = load %x[%i] : f32x4\nstore %y[%i], %v\nend %i", false, false},
};

Function ParseKernel(const Case& c, Module& module) {
  std::string text = absl::StrCat("kernel @k(", c.header, ") {\n", c.body, "\n}\n");
  module = Must(ParseModule(text, "t.uop", std::make_shared<Context>()));
  return module.functions[0];
}

std::vector<std::byte> Numbers(const UOp* param, int seed) {
  auto size = static_cast<size_t>(*MaxElements(param) * param->dtype().size_bytes());
  std::vector<std::byte> bytes(size);
  for (size_t i = 0; i + 4 <= size; i += 4) {
    float value = static_cast<float>(static_cast<int>(i) - 8 + seed) * 0.5f;
    memcpy(&bytes[i], &value, 4);
  }
  return bytes;
}

// Runs both forms and compares every buffer that is written.
void CompareInPlace(const Function& kernel, const Function& merged) {
  std::vector<const UOp*> params = Must(ParamsOf(kernel.root));
  std::vector<std::vector<std::byte>> apart, together;
  for (size_t i = 0; i < params.size(); ++i) {
    apart.push_back(Numbers(params[i], static_cast<int>(i)));
    // What was read is the buffer that is written; what was written has no memory any more.
    if (i != 0) together.push_back(apart.back());
  }
  auto run = [](const UOp* sink, std::vector<std::vector<std::byte>>& buffers) {
    std::vector<absl::Span<std::byte>> spans;
    for (std::vector<std::byte>& buffer : buffers) spans.push_back(absl::MakeSpan(buffer));
    SVOD_EXPECT_OK(Evaluate(sink, spans));
  };
  run(kernel.root, apart);
  run(merged.root, together);
  EXPECT_EQ(together[0], apart[0]);
  for (size_t i = 2; i < apart.size(); ++i) EXPECT_EQ(together[i - 1], apart[i]) << i;
}

void Check(const Case& c) {
  SCOPED_TRACE(c.name);
  Module module;
  Function kernel = ParseKernel(c, module);
  KernelAccesses accesses = Must(KernelAccesses::Create(kernel.root));
  EXPECT_EQ(accesses.WritesWhole(0), c.writes_whole);
  EXPECT_EQ(accesses.InPlace(1, 0), c.in_place);
  EXPECT_FALSE(accesses.InPlace(0, 1));
  if (!c.in_place) return;
  Function merged = Must(MergeParams(kernel, {{1, 0}}, "k2", *module.context));
  EXPECT_EQ(merged.name(), "k2");
  std::vector<const UOp*> params = Must(ParamsOf(merged.root));
  ASSERT_EQ(params.size(), accesses.params().size() - 1);
  EXPECT_EQ(params[0]->arg<ParamArgument>().access, Access::kInOut);
  EXPECT_EQ(params[0]->arg<ParamArgument>().name, "y");
  CompareInPlace(kernel, merged);
  // What it prints is it.
  Module printed;
  printed.context = module.context;
  printed.functions = {merged};
  std::string text = Must(Print(printed));
  Module again = Must(ParseModule(text, "t.uop", module.context));
  EXPECT_EQ(again.functions[0].root, merged.root) << text;
}

TEST(InPlace, OnlyWhatReadsEachElementBeforeItIsReplaced) {
  for (const Case& c : kCases) Check(c);
  for (const Case& c : kVectorCases) Check(c);
}

TEST(InPlace, DynamicSizesAreWholeWhateverTheirValue) {
  Module module = Must(ParseModule(R"(
kernel @k(%n = define_var "n", min=0, max=9; %y: out f32[%n, 3], %x: f32[%n, 3]) {
  %i = range %n loop
  %j = range 3 loop
  %v = load %x[%i, %j]
  store %y[%i, %j], %v
  end %j
  end %i
}
kernel @wide(%n = define_var "n", min=0, max=9; %y: out f32[3, %n], %x: f32[3, %n]) {
  %i = range 3 loop
  %j = range %n loop
  %v = load %x[%i, %j]
  store %y[%i, %j], %v
  end %j
  end %i
}
kernel @cores(%n = define_var "n", min=0, max=9; %y: out f32[%n, 3], %x: f32[%n, 3]) {
  %c = core_id 4
  %m = add %n, 3
  %k = floordiv %m, 4
  %b = mul %c, %k
  %l = sub %n, %b
  %e = min %k, %l
  %i = range %e loop
  %r = add %b, %i
  %j = range 3 loop
  %v = load %x[%r, %j]
  store %y[%r, %j], %v
  end %j
  end %i
}
kernel @less(%n = define_var "n", min=0, max=9; %y: out f32[9], %x: f32[9]) {
  %i = range %n loop
  %v = load %x[%i]
  store %y[%i], %v
  end %i
}
)",
                                   "t.uop", std::make_shared<Context>()));
  for (const Function& kernel : module.functions) {
    KernelAccesses accesses = Must(KernelAccesses::Create(kernel.root));
    EXPECT_EQ(accesses.WritesWhole(0), kernel.name() != "less") << kernel.name();
    EXPECT_EQ(accesses.InPlace(1, 0), kernel.name() != "less") << kernel.name();
  }
}

TEST(InPlace, SeveralPairsMergeAtOnce) {
  Module module = Must(ParseModule(R"(
kernel @k(%a: f32[4], %p: out f32[4], %b: f32[4], %q: out f32[4], %c: f32[4]) {
  %i = range 4 loop
  %x = load %a[%i]
  %y = load %b[%i]
  %z = load %c[%i]
  %s = add %x, %z
  %d = sub %y, %x
  store %p[%i], %s
  store %q[%i], %d
  end %i
}
)",
                                   "t.uop", std::make_shared<Context>()));
  Function merged =
      Must(MergeParams(module.functions[0], {{0, 1}, {2, 3}}, "both", *module.context));
  std::vector<float> p = {1, 2, 3, 4}, q = {10, 20, 30, 40}, c = {100, 200, 300, 400};
  auto bytes = [](std::vector<float>& values) {
    return absl::MakeSpan(reinterpret_cast<std::byte*>(values.data()), values.size() * 4);
  };
  SVOD_ASSERT_OK(Evaluate(merged.root, {bytes(p), bytes(q), bytes(c)}));
  EXPECT_THAT(p, testing::ElementsAre(101, 202, 303, 404));
  EXPECT_THAT(q, testing::ElementsAre(9, 18, 27, 36));
}

}  // namespace
}  // namespace svod
