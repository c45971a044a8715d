// ScheduleEmitter: orders the kernels of a scheduled graph and writes the graph that calls them.
// Included by schedule.cc and schedule_emitter.cc only.
#ifndef SVOD_PLAN_SCHEDULE_EMITTER_H_
#define SVOD_PLAN_SCHEDULE_EMITTER_H_

#include <string>
#include <vector>

#include "plan/scheduler.h"

namespace svod {

// Takes what a Scheduler has decided. When states of buffers have to be copied first, demands grow
// and there is no graph.
class ScheduleEmitter {
 public:
  explicit ScheduleEmitter(Scheduler& scheduler) : s_(scheduler) {}

  absl::Status Run(Schedule* schedule);

 private:
  // A kernel, or an effect that the graph had already.
  struct Item {
    int kernel = -1;
    const UOp* effect = nullptr;
    int place = 0;           // of its node in the graph
    std::vector<int> after;  // items
    const UOp* call = nullptr;
  };
  // An item that reads a state of a buffer.
  struct Reader {
    int item;
    const UOp* state;
  };

  absl::Status CollectItems();
  void KeepParameters(std::vector<const UOp*>* results);
  void AddReads(int item);
  absl::Status AddOrder();
  absl::Status Sort(std::vector<int>* order);
  absl::Status DemandSnapshots(absl::Span<const int> waiting);
  absl::Status EmitItem(int item);
  absl::Status EmitResults(std::vector<const UOp*>* results);
  absl::StatusOr<const UOp*> EmitResult(const UOp* result);
  const UOp* BufferNode(const UOp* state);
  const UOp* ReadOf(const UOp* source, int kernel);
  const UOp* ValueBuffer(const UOp* value);
  const UOp* StateOf(const UOp* state);
  const UOp* WriteOf(const UOp* state, int item);
  bool IsSnapshot(const UOp* source, int kernel) const;
  std::string NameOf(const UOp* node) const;

  Scheduler& s_;
  std::vector<Item> items_;
  absl::flat_hash_map<const UOp*, int> item_of_effect_;
  std::vector<int> item_of_kernel_;
  absl::flat_hash_map<const UOp*, std::vector<std::vector<Reader>>> readers_;  // by version
  absl::flat_hash_map<const UOp*, const UOp*> buffer_of_;                      // of values
  Function graph_;
};

}  // namespace svod

#endif  // SVOD_PLAN_SCHEDULE_EMITTER_H_
