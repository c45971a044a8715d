#include "ir/reachability.h"

#include <gtest/gtest.h>

#include <random>

#include "tests/unit/ir/raw_graph.h"

namespace svod {
namespace {

// A random graph of 700 nodes, more than one walk follows, against paths worked out node by node.
TEST(ReachabilityTest, AgreesWithPlainPaths) {
  RawGraph g;
  std::mt19937 random(1);
  auto pick = [&](size_t n) { return std::uniform_int_distribution<size_t>(0, n - 1)(random); };
  RawGraph::Nodes nodes = {g.Int(0), g.Int(1), g.Int(2)};
  while (nodes.size() < 700) {
    size_t near = nodes.size() - std::min<size_t>(nodes.size(), 40);
    const UOp* a = nodes[near + pick(nodes.size() - near)];
    const UOp* sum = g.Add(a, nodes[pick(nodes.size())]);
    if (sum->id() + 1 == g.context.num_nodes()) nodes.push_back(sum);
  }
  std::vector<std::vector<bool>> depends(nodes.size(), std::vector<bool>(nodes.size(), false));
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (const UOp* source : nodes[i]->sources()) {
      size_t at = source->id();  // made in the order of the list
      ASSERT_EQ(nodes[at], source);
      depends[i][at] = true;
      for (size_t k = 0; k < nodes.size(); ++k) depends[i][k] = depends[i][k] || depends[at][k];
    }
  }

  Reachability reach(nodes);
  int known = 0;
  std::vector<std::pair<uint32_t, uint32_t>> in_order;
  std::optional<std::pair<uint32_t, uint32_t>> first_apart;
  for (uint32_t source = 0; source < nodes.size(); ++source) {
    for (uint32_t user = source + 1; user < nodes.size(); ++user) {
      bool is_reached = depends[user][source];
      std::optional<bool> quick = reach.Quick(source, user);
      if (quick.has_value()) {
        ++known;
        ASSERT_EQ(*quick, is_reached) << source << " " << user;
      }
      if (is_reached) {
        in_order.push_back({source, user});
      } else if (!first_apart.has_value() && source > 300) {
        first_apart = {source, user};
      }
    }
  }
  EXPECT_GT(known, 100000);
  ASSERT_TRUE(first_apart.has_value());

  std::shuffle(in_order.begin(), in_order.end(), random);
  EXPECT_FALSE(reach.FirstApart(in_order).is_apart());
  in_order.insert(in_order.begin() + 77, *first_apart);
  Reachability::Answer answer = reach.FirstApart(in_order);
  EXPECT_TRUE(answer.is_apart());
  EXPECT_EQ(answer.first, 77u);

  std::vector<uint32_t> places;
  for (uint32_t i = 0; i < nodes.size(); ++i) places.push_back(i);
  EXPECT_FALSE(reach.FirstApart(places, [](size_t, size_t) { return false; }).is_apart());
  answer = reach.FirstApart(places, [](size_t i, size_t) { return i > 300; });
  EXPECT_TRUE(answer.is_apart());
  EXPECT_EQ(answer.first, first_apart->first);
  EXPECT_EQ(answer.second, first_apart->second);
}

}  // namespace
}  // namespace svod
