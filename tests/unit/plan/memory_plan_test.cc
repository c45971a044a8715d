// Memory plans of written and generated graphs: the same results, no two live buffers on one byte,
// no longer chains of ops.
#include "plan/memory_plan.h"

#include <cstring>
#include <random>

#include "absl/container/flat_hash_set.h"
#include "gmock/gmock.h"
#include "ir/evaluate.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "plan/graph_order.h"
#include "plan/schedule.h"
#include "tests/unit/plan/fake_kernels.h"

namespace svod {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

using Bytes = std::vector<std::byte>;
using Values = std::vector<std::pair<std::string, int64_t>>;

Module Parse(absl::string_view text) {
  return Must(ParseModule(text, "t.uop", std::make_shared<Context>()));
}

const Function& GraphOf(const Module& module) { return *module.Find("main"); }

// The longest chain of ops by what AFTERs alone say.
int NumLevels(const GraphOps& ops) {
  std::vector<int> level(ops.ops.size(), 1);
  int most = 0;
  for (size_t i = 0; i < level.size(); ++i) {
    for (size_t j : ops.ops[i].after) level[i] = std::max(level[i], level[j] + 1);
    most = std::max(most, level[i]);
  }
  return most;
}

// Runs a graph on memory that holds `garbage` where nothing was written, its ops in an order that
// AFTERs allow and `random` chooses; gives the bytes of what it returns. Parameters hold numbers.
class GraphRun {
 public:
  GraphRun(const Function& graph, uint32_t seed, const Values& variables)
      : ops_(Must(OrderGraph(graph))), random_(seed), variables_(variables) {
    for (const UOp* buffer : ops_.buffers) {
      if (buffer->op() == Op::kBufferView) continue;
      Bytes& bytes = memory_[buffer];
      bytes.resize(static_cast<size_t>(Must(MaxBytes(buffer))));
      // An arena holds anything, every other BUFFER zeros.
      bool is_arena = buffer->dtype() == Scalar::kU8;
      if (is_arena) std::fill(bytes.begin(), bytes.end(), std::byte{0xa5});
      if (buffer->op() == Op::kParam) Number(bytes, buffer->arg<ParamArgument>().slot);
    }
    std::vector<size_t> missing(ops_.ops.size());
    std::vector<std::vector<size_t>> users(ops_.ops.size());
    std::vector<size_t> ready;
    for (size_t i = 0; i < missing.size(); ++i) {
      missing[i] = ops_.ops[i].after.size();
      for (size_t j : ops_.ops[i].after) users[j].push_back(i);
      if (missing[i] == 0) ready.push_back(i);
    }
    while (!ready.empty()) {
      size_t at = random_() % ready.size();
      size_t op = ready[at];
      ready.erase(ready.begin() + static_cast<ptrdiff_t>(at));
      Run(ops_.ops[op]);
      for (size_t user : users[op]) {
        if (--missing[user] == 0) ready.push_back(user);
      }
    }
    for (const UOp* state : graph.root->sources()) {
      absl::Span<std::byte> bytes = BytesOf(BaseBuffer(state));
      results.emplace_back(bytes.begin(), bytes.end());
    }
  }

  std::vector<Bytes> results;

 private:
  static void Number(Bytes& bytes, int64_t slot) {
    for (size_t i = 0; i + 4 <= bytes.size(); i += 4) {
      float value = static_cast<float>(i % 61) * 0.25f - 3.0f + static_cast<float>(slot);
      memcpy(&bytes[i], &value, 4);
    }
  }
  absl::Span<std::byte> BytesOf(const UOp* buffer) {
    size_t offset = 0;
    auto size = static_cast<size_t>(Must(MaxBytes(buffer)));
    while (buffer->op() == Op::kBufferView) {
      offset += static_cast<size_t>(buffer->arg<ViewArgument>().byte_offset);
      buffer = BaseBuffer(buffer->source(0));
    }
    return absl::MakeSpan(memory_.at(buffer)).subspan(offset, size);
  }
  void Run(const GraphOp& op) {
    std::vector<absl::Span<std::byte>> spans;
    for (const GraphOp::Operand& operand : op.operands) spans.push_back(BytesOf(operand.buffer));
    if (op.node->op() == Op::kCopy) {
      memcpy(spans[0].data(), spans[1].data(), spans[0].size());
    } else {
      SVOD_EXPECT_OK(Evaluate(op.node->source(0), spans, {.variables = variables_}));
    }
  }

  GraphOps ops_;
  std::mt19937 random_;
  const Values& variables_;
  absl::flat_hash_map<const UOp*, Bytes> memory_;
};

// Where the buffers of a plan lie, against its own words and against each other.
void CheckPlacement(const Module& module, const MemoryPlan& plan) {
  GraphOps was = Must(OrderGraph(GraphOf(module)));
  GraphOps is = Must(OrderGraph(GraphOf(plan.module)));
  ASSERT_EQ(is.ops.size(), was.ops.size());
  EXPECT_EQ(NumLevels(is), NumLevels(was));
  int64_t sum = 0, own = 0;
  for (const BufferPlacement& buffer : plan.buffers) {
    sum += buffer.bytes;
    if (buffer.offset < 0) {
      own += buffer.bytes;
      continue;
    }
    EXPECT_EQ(buffer.offset % 64, 0);
    EXPECT_LE(buffer.offset + buffer.bytes, plan.arena_bytes);
  }
  EXPECT_EQ(plan.sum_bytes, sum);
  EXPECT_EQ(plan.own_bytes, own);
  EXPECT_LE(plan.peak_bytes(), sum + 63 * static_cast<int64_t>(plan.buffers.size()));
  for (const BufferPlacement& a : plan.buffers) {
    for (const BufferPlacement& b : plan.buffers) {
      if (&a == &b || a.offset < 0 || b.offset < 0) continue;
      bool in_space = a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
      bool in_time = a.first_level <= b.last_level && b.first_level <= a.last_level;
      if (!in_space || !in_time) continue;
      // Only what takes over in place meets the buffer that it took over.
      bool takes_over = (a.reuses == b.buffer && a.first_level == b.last_level) ||
                        (b.reuses == a.buffer && b.first_level == a.last_level);
      EXPECT_TRUE(takes_over) << a.offset << " and " << b.offset;
      EXPECT_EQ(a.offset, b.offset);
    }
  }
}

// Plans the graph and runs both forms, in several orders.
MemoryPlan Check(absl::string_view text, const std::vector<Values>& variables = {{}}) {
  Module module = Parse(text);
  MemoryPlan plan = Must(PlanMemory(module, "main"));
  CheckPlacement(module, plan);
  for (const Function& function : plan.module.functions) SVOD_EXPECT_OK(Verify(function));
  std::string printed = Must(Print(plan.module));
  Module again = Must(ParseModule(printed, "t.uop", plan.module.context));
  EXPECT_EQ(GraphOf(again).root, GraphOf(plan.module).root) << printed;
  for (const Values& values : variables) {
    std::vector<Bytes> expected = GraphRun(GraphOf(module), 0, values).results;
    for (uint32_t seed = 1; seed <= 3; ++seed) {
      EXPECT_EQ(GraphRun(GraphOf(plan.module), seed, values).results, expected) << text << "\n"
                                                                                << printed;
    }
  }
  MemoryPlan off = Must(PlanMemory(module, "main", MemoryMode::kOff));
  EXPECT_EQ(GraphOf(off.module).root, GraphOf(module).root);
  EXPECT_EQ(off.arena_bytes, 0);
  EXPECT_EQ(off.own_bytes, plan.sum_bytes);
  return plan;
}

std::string Linear(int size) {
  return absl::StrCat("kernel @linear(%y: out f32[", size, "], %x: f32[", size, "], %w: f32[", size,
                      ", ", size, "]) {\n  %i = range ", size, " loop\n  %j = range ", size,
                      " reduce\n  %v = load %x[%j]\n  %u = load %w[%i, %j]\n  %p = mul %v, %u\n"
                      "  %s = reduce_add %p, %j\n  %r = max %s, 0.0\n  store %y[%i], %r\n"
                      "  end %i\n}\n");
}

std::string Double(int size) {
  return absl::StrCat("kernel @double(%y: out f32[", size, "], %x: f32[", size,
                      "]) {\n  %i = range ", size, " loop\n  %v = load %x[%i]\n  %s = add %v, %v\n",
                      "  store %y[%i], %s\n  end %i\n}\n");
}

TEST(MemoryPlan, TwelveEqualLayersTakeTwoActivations) {
  std::string text = Linear(32);
  absl::StrAppend(&text, "graph @main(%x: f32[32], %w: f32[32, 32]) {\n");
  std::string state = "%x";
  for (int i = 0; i < 12; ++i) {
    absl::StrAppend(&text, "%b", i, " = buffer f32[32]\n%c", i, " = call @linear, %b", i, ", ",
                    state, ", %w\n%s", i, " = after %b", i, ", %c", i, "\n");
    state = absl::StrCat("%s", i);
  }
  absl::StrAppend(&text, "return ", state, "\n}\n");
  MemoryPlan plan = Check(text);
  EXPECT_EQ(plan.arena_bytes, 2 * 32 * 4);
  EXPECT_EQ(plan.own_bytes, 0);
  EXPECT_EQ(plan.sum_bytes, 11 * 32 * 4);
}

TEST(MemoryPlan, ElementwiseChainsAreInPlace) {
  std::string text = Double(7);
  absl::StrAppend(&text, R"(
graph @main(%x: f32[7]) {
  %a = buffer f32[7]
  %c0 = call @double, %a, %x
  %a1 = after %a, %c0
  %b = buffer f32[7]
  %c1 = call @double, %b, %a1
  %b1 = after %b, %c1
  %c = buffer f32[7]
  %c2 = call @double, %c, %b1
  %d1 = after %c, %c2
  %y = buffer f32[7]
  %c3 = call @double, %y, %d1
  %y1 = after %y, %c3
  return %y1
}
)");
  MemoryPlan plan = Check(text);
  EXPECT_EQ(plan.arena_bytes, 64);
  ASSERT_EQ(plan.buffers.size(), 3u);
  EXPECT_EQ(plan.buffers[0].reuses, nullptr);
  EXPECT_EQ(plan.buffers[1].reuses, plan.buffers[0].buffer);
  EXPECT_EQ(plan.buffers[2].reuses, plan.buffers[1].buffer);
  // One kernel in place serves both calls.
  std::vector<std::string> names;
  for (const Function& f : plan.module.functions) names.emplace_back(f.name());
  EXPECT_THAT(names, ElementsAre("double", "double_in_place", "main"));
  EXPECT_THAT(Must(Print(plan.module)), HasSubstr(R"(graph @main(%x: f32[7]) {
  %y = buffer f32[7], id=3
  %arena = buffer u8[64], id=4
  %a = buffer_view %arena : f32[7]
  %c0 = call @double, %a, %x
  %a1 = after %a, %c0
  %c1 = call @double_in_place, %a1
  %b1 = after %a, %c1
)"));
}

TEST(MemoryPlan, WhatIsStillReadIsNotReplaced) {
  std::string text = Double(7);
  absl::StrAppend(&text, R"(
kernel @add(%y: out f32[7], %x: f32[7], %z: f32[7]) {
  %i = range 7 loop
  %v = load %x[%i]
  %u = load %z[%i]
  %s = add %v, %u
  store %y[%i], %s
  end %i
}
graph @main(%x: f32[7]) {
  %a = buffer f32[7]
  %c0 = call @double, %a, %x
  %a1 = after %a, %c0
  %b = buffer f32[7]
  %c1 = call @double, %b, %a1
  %b1 = after %b, %c1
  %c = buffer f32[7]
  %c2 = call @add, %c, %a1, %b1
  %d1 = after %c, %c2
  %e = buffer f32[7]
  %c3 = call @add, %e, %d1, %d1
  %e1 = after %e, %c3
  return %e1
}
)");
  MemoryPlan plan = Check(text);
  ASSERT_EQ(plan.buffers.size(), 3u);
  EXPECT_EQ(plan.buffers[1].reuses, nullptr);
  EXPECT_EQ(plan.buffers[2].reuses, plan.buffers[0].buffer);
  EXPECT_EQ(plan.arena_bytes, 128);
}

// The second chain of ops must not come to depend on the first where they may run side by side.
TEST(MemoryPlan, OpsOfOneLevelShareNothing) {
  std::string text = Linear(16);
  absl::StrAppend(&text, "graph @main(%x: f32[16], %w: f32[16, 16]) {\n");
  for (char chain : {'a', 'b'}) {
    std::string state = "%x";
    for (int i = 0; i < 4; ++i) {
      std::string name = absl::StrCat(std::string(1, chain), i);
      absl::StrAppend(&text, "%", name, " = buffer f32[16]\n%c", name, " = call @linear, %", name,
                      ", ", state, ", %w\n%s", name, " = after %", name, ", %c", name, "\n");
      state = absl::StrCat("%s", name);
    }
  }
  absl::StrAppend(&text, "return %sa3, %sb3\n}\n");
  EXPECT_EQ(Check(text).arena_bytes, 4 * 64);
}

TEST(MemoryPlan, OtherTypesOfTheSameSizeAreInPlaceToo) {
  MemoryPlan plan = Check(R"(
kernel @round(%y: out i32[5], %x: f32[5]) {
  %i = range 5 loop
  %v = load %x[%i]
  %r = cast %v : i32
  store %y[%i], %r
  end %i
}
kernel @back(%y: out f32[5], %x: i32[5]) {
  %i = range 5 loop
  %v = load %x[%i]
  %r = cast %v : f32
  store %y[%i], %r
  end %i
}
kernel @half(%y: out f32[5], %x: f32[5]) {
  %i = range 5 loop
  %v = load %x[%i]
  %r = mul %v, 0.5
  store %y[%i], %r
  end %i
}
graph @main(%x: f32[5]) {
  %a = buffer f32[5]
  %c0 = call @half, %a, %x
  %a1 = after %a, %c0
  %b = buffer i32[5]
  %c1 = call @round, %b, %a1
  %b1 = after %b, %c1
  %c = buffer f32[5]
  %c2 = call @back, %c, %b1
  %d1 = after %c, %c2
  %y = buffer f32[5]
  %c3 = call @half, %y, %d1
  %y1 = after %y, %c3
  return %y1
}
)");
  EXPECT_EQ(plan.arena_bytes, 64);
  EXPECT_EQ(plan.buffers[2].reuses, plan.buffers[1].buffer);
}

// What nobody writes is zero, and what a graph keeps is its own.
TEST(MemoryPlan, BuffersThatMayHoldMoreThanTheirFirstOpWritesKeepTheirMemory) {
  MemoryPlan plan = Check(absl::StrCat(Double(8), R"(
kernel @part(%y: out f32[8], %x: f32[8]) {
  %i = range 5 loop
  %v = load %x[%i]
  store %y[%i], %v
  end %i
}
kernel @count(%y: inout f32[8]) {
  %i = range 8 loop
  %v = load %y[%i]
  %s = add %v, 1.0
  store %y[%i], %s
  end %i
}
kernel @four(%y: out f32[4], %x: f32[8]) {
  %i = range 4 loop
  %v = load %x[%i]
  store %y[%i], %v
  end %i
}
graph @main(%x: f32[8]) {
  %a = buffer f32[8]
  %c0 = call @part, %a, %x
  %a1 = after %a, %c0
  %b = buffer f32[8]
  %c1 = call @count, %b
  %b1 = after %b, %c1
  %c = buffer f32[8]
  %h = buffer_view %c, offset=16 : f32[4]
  %c2 = call @four, %h, %b1
  %d1 = after %c, %c2
  %y0 = buffer f32[8]
  %c3 = call @double, %y0, %a1
  %y1 = after %y0, %c3
  %z0 = buffer f32[8]
  %c4 = call @double, %z0, %d1
  %z1 = after %z0, %c4
  return %y1, %z1
}
)"));
  ASSERT_EQ(plan.buffers.size(), 3u);
  for (const BufferPlacement& buffer : plan.buffers) EXPECT_EQ(buffer.offset, -1);
  EXPECT_EQ(plan.arena_bytes, 0);
  EXPECT_EQ(plan.peak_bytes(), 96);
}

TEST(MemoryPlan, CopiesAndViewsMoveIntoTheArena) {
  MemoryPlan plan = Check(absl::StrCat(Double(8), R"(
kernel @four(%y: out f32[4], %x: f32[4]) {
  %i = range 4 loop
  %v = load %x[%i]
  store %y[%i], %v
  end %i
}
graph @main(%x: f32[8]) {
  %a = buffer f32[8]
  %c0 = copy %a, %x
  %a1 = after %a, %c0
  %b = buffer f32[8]
  %c1 = call @double, %b, %a1
  %b1 = after %b, %c1
  %v = buffer_view %b1, offset=16 : f32[4]
  %y = buffer f32[4]
  %c2 = call @four, %y, %v
  %y1 = after %y, %c2
  return %y1
}
)"));
  EXPECT_EQ(plan.arena_bytes, 64);
  EXPECT_EQ(plan.buffers[1].reuses, plan.buffers[0].buffer);
}

TEST(MemoryPlan, DynamicSizesTakeTheirLargest) {
  std::vector<Values> values;
  for (int64_t n : {0, 1, 5, 20}) values.push_back({{"n", n}});
  MemoryPlan plan = Check(R"(
kernel @scale(%n = define_var "n", min=0, max=20; %y: out f32[%n, 3], %x: f32[%n, 3]) {
  %i = range %n loop
  %j = range 3 loop
  %v = load %x[%i, %j]
  %s = mul %v, 3.0
  store %y[%i, %j], %s
  end %j
  end %i
}
kernel @flip(%n = define_var "n", min=0, max=20; %y: out f32[%n, 3], %x: f32[%n, 3]) {
  %i = range %n loop
  %j = range 3 loop
  %k = sub 2, %j
  %v = load %x[%i, %k]
  store %y[%i, %j], %v
  end %j
  end %i
}
graph @main(%n = define_var "n", min=0, max=20; %x: f32[%n, 3]) {
  %a = buffer f32[%n, 3]
  %c0 = call @scale, %a, %x
  %a1 = after %a, %c0
  %b = buffer f32[%n, 3]
  %c1 = call @scale, %b, %a1
  %b1 = after %b, %c1
  %c = buffer f32[%n, 3]
  %c2 = call @flip, %c, %b1
  %d1 = after %c, %c2
  %y = buffer f32[%n, 3]
  %c3 = call @flip, %y, %d1
  %y1 = after %y, %c3
  return %y1
}
)",
                          values);
  EXPECT_EQ(plan.arena_bytes, 2 * 256);
  EXPECT_EQ(plan.sum_bytes, 3 * 240);
}

// Graphs of kernels that read in place, reversed or summed, of two outputs and other types, with
// copies, over buffers of several sizes.
class GraphGenerator {
 public:
  explicit GraphGenerator(uint32_t seed) : random_(seed) {}

  std::string Run(int num_ops) {
    std::string kernels, body;
    std::vector<Value> values = {{"%x0", 0}, {"%x1", 1}, {"%x2", 2}};
    // A result of its own reads every parameter.
    kernels = R"(kernel @all(%y: out f32[1], %a: f32[4], %b: f32[23], %c: f32[64]) {
%u = load %a[3]
%v = load %b[20]
%w = load %c[2]
%p = add %u, %v
%q = add %p, %w
store %y[0], %q
}
)";
    body =
        "%all = buffer f32[1]\n%call = call @all, %all, %x0, %x1, %x2\n%sum = after %all, %call\n";
    std::vector<bool> is_made(64);
    for (int i = 0; i < num_ops; ++i) {
      // Recent values, so that older ones die.
      const Value x = values[values.size() - 1 - random_() % std::min<size_t>(values.size(), 5)];
      used_.insert(x.name);
      Value y{absl::StrCat("%s", i), x.size};
      std::string buffer = absl::StrCat("%b", i);
      unsigned kind = random_() % 7;
      if (kind == 0) {
        Append(&body, "%b", i, " = buffer f32[", kSizes[x.size], "]\n%c", i, " = copy ", buffer,
               ", ", x.name, "\n");
      } else {
        unsigned to = kind == 3 ? random_() % 3 : static_cast<unsigned>(x.size);
        y.size = static_cast<int>(to);
        size_t kernel = kind * 9 + static_cast<size_t>(x.size) * 3 + to;
        if (!is_made[kernel]) kernels += Kernel(kind, kernel, kSizes[x.size], kSizes[to]);
        is_made[kernel] = true;
        std::string more;
        if (kind == 2) more = absl::StrCat(", ", Another(values, x.size));
        if (kind == 5) {
          Append(&body, "%e", i, " = buffer f32[", kSizes[to], "]\n");
          more = absl::StrCat(", %e", i);
          values.push_back({absl::StrCat("%t", i), y.size});
        }
        Append(&body, "%b", i, " = buffer f32[", kSizes[to], "]\n%c", i, " = call @k", kernel, ", ",
               buffer, ", ", x.name, more, "\n");
        if (kind == 5) Append(&body, "%t", i, " = after %e", i, ", %c", i, "\n");
      }
      Append(&body, y.name, " = after ", buffer, ", %c", i, "\n");
      values.push_back(y);
    }
    // Whatever nobody reads is a result, and so is a value that somebody reads.
    std::string results = "%sum";
    size_t also = 3 + random_() % (values.size() - 3);
    for (size_t i = 3; i < values.size(); ++i) {
      if (!used_.contains(values[i].name) || i == also) Append(&results, ", ", values[i].name);
    }
    return absl::StrCat(kernels, "graph @main(%x0: f32[4], %x1: f32[23], %x2: f32[64]) {\n", body,
                        "return ", results, "\n}\n");
  }

 private:
  static constexpr int kSizes[] = {4, 23, 64};
  struct Value {
    std::string name;
    int size;
  };
  template <typename... Parts>
  static void Append(std::string* text, const Parts&... parts) {
    absl::StrAppend(text, parts...);
  }
  std::string Another(const std::vector<Value>& values, int size) {
    std::vector<std::string> found;
    for (const Value& value : values) {
      if (value.size == size) found.push_back(value.name);
    }
    std::string name = found[found.size() - 1 - random_() % std::min<size_t>(found.size(), 3)];
    used_.insert(name);
    return name;
  }
  static std::string Kernel(unsigned kind, size_t number, int from, int to) {
    std::string header = absl::StrCat("kernel @k", number, "(%y: out f32[", to, "], %x: f32[", from,
                                      "]", kind == 2 ? absl::StrCat(", %z: f32[", from, "]") : "",
                                      kind == 5 ? absl::StrCat(", %q: out f32[", to, "]") : "",
                                      ") {\n%i = range ", to, " loop\n");
    std::string body;
    if (kind == 1) body = "%v = load %x[%i]\n%r = sub 1.5, %v\n";
    if (kind == 2) body = "%v = load %x[%i]\n%u = load %z[%i]\n%w = mul %u, 0.5\n%r = add %v, %w\n";
    if (kind == 3) {
      body = absl::StrCat("%j = range ", from,
                          " reduce\n%v = load %x[%j]\n%p = add %i, %j\n%f = cast %p : f32\n"
                          "%m = mul %v, %f\n%t = reduce_add %m, %j\n%r = mul %t, 0.001\n");
    }
    if (kind == 4) {
      body = absl::StrCat("%j = sub ", to - 1, ", %i\n%v = load %x[%j]\n%r = neg %v\n");
    }
    if (kind == 5)
      body = "%v = load %x[%i]\n%r = mul %v, 0.75\n%o = add %v, 1.0\nstore %q[%i], %o\n";
    if (kind == 6) body = "%v = load %x[%i]\n%r = max %v, 0.25\n";
    return absl::StrCat(header, body, "store %y[%i], %r\nend %i\n}\n");
  }

  std::mt19937 random_;
  absl::flat_hash_set<std::string> used_;
};

TEST(MemoryPlan, GeneratedGraphsHaveTheSameResults) {
  int num_in_place = 0;
  int64_t peak = 0, sum = 0;
  for (uint32_t seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    MemoryPlan plan = Check(GraphGenerator(seed).Run(static_cast<int>(1 + seed % 40)));
    for (const BufferPlacement& buffer : plan.buffers) num_in_place += buffer.reuses != nullptr;
    peak += plan.peak_bytes();
    sum += plan.sum_bytes;
    if (HasFailure()) break;
  }
  EXPECT_GT(num_in_place, 100);
  EXPECT_LT(peak, sum * 2 / 3);
}

// Kernels split over cores, of several loops taken as one, of dynamic sizes: all are seen to write
// their results whole.
TEST(MemoryPlan, IntermediatesOfScheduledGraphsAreInTheArena) {
  for (absl::string_view text : {R"(
graph @main(%x: f32[64, 256], %w: f32[256, 256], %v: f32[256, 100]) {
  %a = reshape %x, [64, 256, 1]
  %p = mul %a, %w
  %h = reduce_add %p, axes=[1]
  %r = max %h, 0.0
  %b = reshape %r, [64, 256, 1]
  %q = mul %b, %v
  %y = reduce_add %q, axes=[1]
  %m = reduce_max %y, axes=[1], keep
  %d = sub %y, %m
  %e = reduce_add %d, axes=[0]
  return %e
}
)",
                                 R"(
graph @main(%x: f32[61, 256], %w: f32[256, 256]) {
  %a = reshape %x, [61, 256, 1]
  %p = mul %a, %w
  %h = reduce_add %p, axes=[1]
  %c = contiguous %h
  %m = reduce_max %c, axes=[0]
  return %m
}
)",
                                 R"(
graph @main(%n = define_var "n", min=0, max=300; %x: f32[%n, 31, 7], %w: f32[7, 64]) {
  %a = reshape %x, [%n, 31, 7, 1]
  %p = mul %a, %w
  %h = reduce_add %p, axes=[2]
  %c = contiguous %h
  %k = permute %c, axes=[1, 0, 2]
  %l = contiguous %k
  %s = reduce_add %l, axes=[0]
  return %s
}
)"}) {
    Module module = Parse(text);
    Schedule schedule = Must(ScheduleGraph(GraphOf(module)));
    MemoryPlan plan = Must(PlanMemory(schedule.module, "main"));
    EXPECT_GT(plan.buffers.size(), 0u);
    EXPECT_EQ(plan.own_bytes, 0) << Must(Print(schedule.module));
    EXPECT_GT(plan.arena_bytes, 0);
    for (const Function& function : plan.module.functions) SVOD_EXPECT_OK(Verify(function));
  }
}

TEST(MemoryPlan, TheSameGraphHasTheSamePlanInEveryContext) {
  std::string text = GraphGenerator(7).Run(40);
  EXPECT_EQ(Must(Print(Must(PlanMemory(Parse(text), "main")).module)),
            Must(Print(Must(PlanMemory(Parse(text), "main")).module)));
}

TEST(MemoryPlan, TenThousandBuffersTakeLittleTime) {
  auto context = std::make_shared<Context>();
  Module module = Must(ParseModule(absl::StrCat(Linear(16), Double(16)), "t.uop", context));
  auto param = [&](int64_t slot, std::vector<const UOp*> dims) {
    return Must(
        context->Make(Op::kParam, Scalar::kF32, dims, ParamArgument{slot, Access::kIn, ""}));
  };
  const UOp* n = context->Index(16);
  const UOp *state = param(0, {n}), *weights = param(1, {n, n});
  for (int64_t i = 0; i < 10000; ++i) {
    const UOp* buffer = Must(context->Make(Op::kBuffer, Scalar::kF32, {n}, BufferArgument{i}));
    std::vector<const UOp*> sources = {module.functions[i % 2].root, buffer, state};
    if (i % 2 == 0) sources.push_back(weights);
    const UOp* call = Must(context->Make(Op::kCall, sources));
    state = Must(context->Make(Op::kAfter, {buffer, call}));
  }
  Function graph;
  graph.root = Must(context->Make(Op::kSink, {state}, FunctionArgument{false, "main", {}}));
  module.functions.push_back(graph);
  MemoryPlan plan = Must(PlanMemory(module, "main"));
  SVOD_EXPECT_OK(Verify(GraphOf(plan.module)));
  EXPECT_EQ(plan.arena_bytes, 2 * 64);
  EXPECT_EQ(plan.buffers.size(), 9999u);
}

TEST(MemoryPlan, WrongGraphsAreRefused) {
  Module module = Parse(Double(4));
  ExpectError(PlanMemory(module, "main").status(), absl::StatusCode::kInvalidArgument,
              "memory: @main, got no function, expected a graph");
  ExpectError(PlanMemory(module, "double").status(), absl::StatusCode::kInvalidArgument,
              "memory: @double, got a kernel, expected a graph");
}

}  // namespace
}  // namespace svod
