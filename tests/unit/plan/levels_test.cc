// Dependencies, orders and levels: rows D1 to D16 of docs/seed.md.
#include "plan/levels.h"

#include "gmock/gmock.h"
#include "tests/unit/plan/fake_kernels.h"

namespace svod {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Ids = std::vector<uint64_t>;
using Table = std::vector<std::vector<size_t>>;

struct Op {
  uint64_t id;
  Ids dependencies;
};

absl::StatusOr<DependencyGraph> Graph(const std::vector<Op>& ops, const Table& instances = {}) {
  std::vector<OpNode> nodes;
  for (const Op& op : ops) nodes.push_back({op.id, op.dependencies});
  return BuildDependencyGraph(nodes, instances);
}
std::vector<size_t> Order(const std::vector<Op>& ops, const Table& instances = {}) {
  return Must(ComputeOrder(Must(Graph(ops, instances))));
}
Table Levels(const std::vector<Op>& ops, const Table& instances = {}) {
  return Must(ComputeLevels(Must(Graph(ops, instances))));
}

TEST(Levels, D1InstanceTableOfAnotherLengthIsRefused) {
  ExpectError(Graph({{1, {}}, {2, {}}}, {{}}).status(), absl::StatusCode::kInvalidArgument,
              "plan: table of instance dependencies, got 1 rows, expected 2");
}

TEST(Levels, D2EmptyInstanceTableMeansNone) {
  EXPECT_THAT(Levels({{1, {}}, {2, {}}}, {}), ElementsAre(ElementsAre(0, 1)));
}

TEST(Levels, D3UniqueIdsMayNameLaterOps) {
  EXPECT_THAT(Order({{1, {2}}, {2, {}}}), ElementsAre(1, 0));
  ExpectError(Graph({{1, {9}}, {2, {}}}).status(), absl::StatusCode::kInvalidArgument,
              "plan: op 1 depends on unknown op id 9");
}

TEST(Levels, D4RepeatedIdsNameTheMostRecentEarlierOp) {
  // Op 3 depends on id 1, which stood at 0 and 1: the one at 1 counts.
  EXPECT_THAT(Levels({{1, {}}, {1, {}}, {2, {}}, {3, {1}}}),
              ElementsAre(ElementsAre(0, 1, 2), ElementsAre(3)));
  DependencyGraph graph = Must(Graph({{1, {}}, {1, {}}, {3, {1}}}));
  EXPECT_THAT(graph.successors[0], IsEmpty());
  EXPECT_THAT(graph.successors[1], ElementsAre(2));
}

TEST(Levels, D5RepeatedIdsTurnForwardReferencesIntoErrors) {
  EXPECT_TRUE(Graph({{1, {2}}, {2, {}}, {3, {}}}).ok());
  ExpectError(Graph({{1, {2}}, {2, {}}, {2, {}}}).status(), absl::StatusCode::kInvalidArgument,
              "plan: op 1 depends on unknown earlier op id 2 (ids repeat in this plan, so a "
              "dependency names the most recent earlier op)");
}

TEST(Levels, D6OwnIdMeansTheInstanceBefore) {
  EXPECT_THAT(Levels({{7, {}}, {7, {7}}, {7, {7}}}),
              ElementsAre(ElementsAre(0), ElementsAre(1), ElementsAre(2)));
}

TEST(Levels, D7OwnIdAmongUniqueIdsIsACycle) {
  DependencyGraph graph = Must(Graph({{1, {}}, {2, {2}}}));
  ExpectError(ComputeOrder(graph).status(), absl::StatusCode::kInvalidArgument,
              "plan: cycle in the dependencies of ops, blocked ids [2]");
}

TEST(Levels, D8RepeatedDependencyCountsTwiceAndStillResolves) {
  DependencyGraph graph = Must(Graph({{1, {}}, {2, {1, 1}}}));
  EXPECT_EQ(graph.in_degree[1], 2u);
  EXPECT_THAT(graph.successors[0], ElementsAre(1, 1));
  EXPECT_THAT(Must(ComputeLevels(graph)), ElementsAre(ElementsAre(0), ElementsAre(1)));
}

TEST(Levels, D9InstanceDependenciesAddToIdsAndMayPointForward) {
  // 0 after index 2; 1 after id 1 (op 0) and index 2.
  EXPECT_THAT(Order({{1, {}}, {2, {1}}, {3, {}}}, {{2}, {2}, {}}), ElementsAre(2, 0, 1));
}

TEST(Levels, D10InstanceDependencyOutOfRange) {
  ExpectError(Graph({{5, {}}, {6, {}}}, {{}, {2}}).status(), absl::StatusCode::kInvalidArgument,
              "plan: op 6 depends on op index 2, expected less than 2");
}

TEST(Levels, D11InstanceDependencyOnItself) {
  ExpectError(Graph({{5, {}}, {6, {}}}, {{}, {1}}).status(), absl::StatusCode::kInvalidArgument,
              "plan: op 6 depends on itself by op index 1");
}

TEST(Levels, D12OrderTakesTheLowestReadyIndexFirst) {
  // 3 is free from the start, 1 becomes so after 2, 0 after 1.
  EXPECT_THAT(Order({{10, {11}}, {11, {12}}, {12, {}}, {13, {}}}), ElementsAre(2, 1, 0, 3));
}

TEST(Levels, D13LevelsAreWavesInAscendingOrder) {
  EXPECT_THAT(Levels({{1, {4}}, {2, {}}, {3, {2, 1}}, {4, {}}, {5, {2}}}),
              ElementsAre(ElementsAre(1, 3), ElementsAre(0, 4), ElementsAre(2)));
}

TEST(Levels, D14CyclesListEveryBlockedId) {
  // 1 and 2 form the cycle, 3 hangs below it, 4 is free.
  DependencyGraph graph = Must(Graph({{1, {2}}, {2, {1}}, {3, {2}}, {4, {}}}));
  absl::string_view message = "plan: cycle in the dependencies of ops, blocked ids [1, 2, 3]";
  ExpectError(ComputeOrder(graph).status(), absl::StatusCode::kInvalidArgument, message);
  ExpectError(ComputeLevels(graph).status(), absl::StatusCode::kInvalidArgument, message);
  // With repeated ids, the ids of instances repeat in the message.
  graph = Must(Graph({{7, {}}, {7, {}}}, {{1}, {0}}));
  ExpectError(ComputeLevels(graph).status(), absl::StatusCode::kInvalidArgument,
              "plan: cycle in the dependencies of ops, blocked ids [7, 7]");
}

TEST(Levels, D15NoOpsMakeNoLevels) {
  EXPECT_THAT(Levels({}), IsEmpty());
  EXPECT_THAT(Order({}), IsEmpty());
}

TEST(Levels, D16FlatOrderAndLevelsDiffer) {
  std::vector<Op> chain_and_late_one = {{1, {}}, {2, {1}}, {3, {2}}, {4, {}}};
  EXPECT_THAT(Order(chain_and_late_one), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(Levels(chain_and_late_one),
              ElementsAre(ElementsAre(0, 3), ElementsAre(1), ElementsAre(2)));
}

TEST(Levels, LongChainsAndWideLevelsTakeLinearTime) {
  constexpr size_t kNumOps = 50000;
  std::vector<OpNode> nodes(kNumOps);
  Ids ids(kNumOps);
  for (size_t i = 0; i < kNumOps; ++i) {
    ids[i] = i;
    nodes[i].id = i;
    if (i > 0) nodes[i].dependencies = absl::MakeConstSpan(&ids[i - 1], 1);
  }
  EXPECT_EQ(Must(ComputeLevels(Must(BuildDependencyGraph(nodes, {})))).size(), kNumOps);
}

}  // namespace
}  // namespace svod
