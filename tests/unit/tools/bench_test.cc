// The rows of svod-bench: that they compute what they say, on the numbers that other programs make.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "ir/evaluate_graph.h"
#include "ir/verify.h"
#include "tools/bench/inputs.h"
#include "tools/bench/measure.h"
#include "tools/bench/report.h"
#include "tools/bench/workload.h"
#include "tools/bench/workload_runner.h"

namespace svod::bench {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<float> Floats(const Operand& operand) {
  const Buffer buffer = MakeInputs({operand})[0];
  const auto values = buffer.ReadAs<float>();
  return {values.begin(), values.end()};
}

// Numbers from NumPy.
TEST(BenchInputs, AreThoseOfOtherPrograms) {
  EXPECT_EQ(HashValue(0, 0), -0.9416999816894531F);
  EXPECT_EQ(HashValue(1, 0), 0.9333125948905945F);
  EXPECT_EQ(HashValue(1000, 7), -0.06313794106245041F);

  // RandomState(0): uniform(-1, 1, (2, 3)) * sqrt(3 / 3), then (4) * sqrt(3 / 9).
  Operand weights{"w", Scalar::kF32, {2, 3}, {.stream_begin = 0}};
  EXPECT_THAT(Floats(weights),
              ElementsAre(0.09762700647115707F, 0.4303787350654602F, 0.20552675426006317F,
                          0.08976636826992035F, -0.15269039571285248F, 0.2917882204055786F));
  Operand bias{"b", Scalar::kF32, {4}, {.stream_begin = 6, .scale = std::sqrt(3.0 / 9)}};
  EXPECT_THAT(Floats(bias), ElementsAre(-0.07206808030605316F, 0.452380508184433F,
                                        0.535391628742218F, -0.13459013402462006F));
  // 1 + 0.1 * the next three * sqrt(3).
  Operand gain{"g",
               Scalar::kF32,
               {3},
               {.stream_begin = 10, .scale = std::sqrt(3.0), .base = 1, .factor = 0.1F}};
  EXPECT_THAT(Floats(gain),
              ElementsAre(1.1010565757751465F, 1.010009527206421F, 1.0235713720321655F));
}

TEST(BenchInputs, OtherTypesAreRoundedFloats) {
  const float value = HashValue(1, 0);
  auto element = [](DType dtype) {
    const Buffer buffer = MakeInputs({{"x", dtype, {2}}})[0];
    return Samples(buffer.data(), dtype, 2)[1];
  };
  EXPECT_EQ(element(Scalar::kF64), value);
  EXPECT_EQ(element(Scalar::kI8), std::lround(127 * value));
  EXPECT_NEAR(element(Scalar::kBF16), value, 1.0 / 256);
  EXPECT_NEAR(element(Scalar::kF16), value, 1.0 / 2048);
}

TEST(BenchInputs, SamplesAreEvenlySpread) {
  std::vector<float> values(100);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  const std::vector<double> samples = Samples(values.data(), Scalar::kF32, 100);
  ASSERT_EQ(samples.size(), 16);
  for (size_t i = 0; i < 16; ++i) EXPECT_EQ(samples[i], i * 100 / 16);
  EXPECT_EQ(Samples(values.data(), Scalar::kF32, 3).size(), 3);
}

TEST(BenchRows, AreGraphsWithNamesOfTheirOwn) {
  std::set<std::string> names;
  for (const Workload& workload : Workloads()) {
    SCOPED_TRACE(workload.row);
    EXPECT_TRUE(names.insert(workload.row).second);
    const Module graph = BuildGraph(workload);
    EXPECT_TRUE(Verify(graph.functions[0]).ok());
    EXPECT_TRUE(workload.group == "dispatch" || workload.read_bytes > 0);
  }
  EXPECT_GT(names.size(), 34);
}

// Rows that the interpreter can do in a moment: a product, LeNet, odd sizes, transposes.
TEST(BenchRows, GiveTheInterpretersResults) {
  auto executor = Executor::Create(2);
  ASSERT_TRUE(executor.ok());
  auto kernels = KernelCache::Create();
  ASSERT_TRUE(kernels.ok());
  int num_rows = 0;
  for (const Workload& workload : Workloads()) {
    const double bytes = workload.read_bytes + workload.written_bytes;
    if (workload.flops > 1e6 || bytes > 3e5) continue;
    SCOPED_TRACE(workload.row);
    ++num_rows;
    const std::vector<Buffer> inputs = MakeInputs(workload.operands);
    auto prepared = PrepareWorkload(workload, inputs, **executor, **kernels);
    ASSERT_TRUE(prepared.ok()) << prepared.status();
    ASSERT_TRUE(Execute(*prepared->plan, {.executor = executor->get()}).ok());
    const std::vector<double> got = prepared->samples();

    std::vector<TensorValue> params;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const auto bytes_of = inputs[i].Read();
      params.push_back({workload.operands[i].dtype,
                        workload.operands[i].dims,
                        {bytes_of.begin(), bytes_of.end()}});
    }
    const Module graph = BuildGraph(workload);
    auto results = EvaluateGraph(graph.functions[0], params);
    ASSERT_TRUE(results.ok()) << results.status();
    const TensorValue& y = (*results)[0];
    const std::vector<double> want = Samples(y.bytes.data(), y.dtype, y.num_elements());
    ASSERT_EQ(got.size(), want.size());
    double largest = 0;
    for (double value : want) largest = std::max(largest, std::fabs(value));
    for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-5 * largest) << i;
  }
  EXPECT_GT(num_rows, 15);
}

TEST(BenchMeasure, ContendersTakeTurns) {
  std::string order;
  const Contender contenders[] = {
      {.peer = "a",
       .run = [&] { order += order.ends_with('a') ? "" : "a"; },
       .quiet = [&] { order += '.'; },
       .seconds = 0},
      {.peer = "b", .run = [&] { order += order.ends_with('b') ? "" : "b"; }, .seconds = 0}};
  const std::vector<Timing> timings = MeasureSideBySide(contenders, 3);
  EXPECT_EQ(order, "a.ba.ba.b");
  ASSERT_EQ(timings.size(), 2);
  for (const Timing& timing : timings) {
    EXPECT_GE(timing.num_samples, 3);
    EXPECT_LE(timing.best_ns, timing.median_ns);
  }
}

TEST(BenchReport, LinesNameWhatWasMeasured) {
  Record own{"mm64",          "svod",    2,
             {2500, 2000, 9}, {0.5, -1}, {{"flops", 524288}, {"limit_ns", 1900}}};
  EXPECT_EQ(JsonLine(own), R"({"row":"mm64","peer":"svod","threads":2,"ns":2500.0,"best":2000.0,)"
                           R"("chk":[0.5,-1],"flops":524288,"limit_ns":1900})");
  const Record slow{"mm64", "slow", 2, {5000, 4000, 9}, {0.5, -1}};
  const Record packed{"mm64", "fast-packed", 2, {900, 800, 9}, {0.5, -1}};
  const std::string line = TableLine({own, slow, packed});
  EXPECT_THAT(line, HasSubstr("262.1"));
  EXPECT_THAT(line, HasSubstr("95%"));
  EXPECT_THAT(line, HasSubstr("2.00 slow 4"));
  EXPECT_THAT(line, HasSubstr("0.40 fast-packed 800 ns]"));
  EXPECT_THAT(line, ::testing::Not(HasSubstr("differs")));
  Record wrong = slow;
  wrong.samples[1] = -1.5;
  EXPECT_THAT(TableLine({own, wrong}), HasSubstr("differs 3.3e-01"));
}

}  // namespace
}  // namespace svod::bench
