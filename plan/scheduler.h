// Scheduler: what the parts of scheduling share: schedule.cc (the graph), schedule_requests.cc (who
// needs which element where), schedule_places.cc (where values live), schedule_kernels.cc
// (kernels), schedule_launch.cc (cores) and schedule_shared.cc (kernels that many calls share).
// Included by those only.
#ifndef SVOD_PLAN_SCHEDULER_H_
#define SVOD_PLAN_SCHEDULER_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/container/inlined_vector.h"
#include "ir/program.h"
#include "ir/shape.h"
#include "plan/index_map.h"
#include "plan/schedule.h"

namespace svod {

// Float sums along at least so many elements fold in kGroupLanes interleaved partial sums.
inline constexpr int64_t kMinGroup = 64;
inline constexpr int64_t kGroupLanes = 32;

// Bad states that only show once kernels are built; scheduling starts again with them.
struct ScheduleDemands {
  absl::flat_hash_set<const UOp*> materialised;  // values that need memory of their own
  absl::flat_hash_set<const UOp*> snapshots;     // states of buffers to copy before they change
  int size() const { return static_cast<int>(materialised.size() + snapshots.size()); }
};

// One pass over a graph: nodes from results to inputs. Each node collects the requests for its
// elements, is given a place, and asks for the elements that it is made of.
class ScheduleEmitter;

class Scheduler {
 public:
  // `graph` is of `context`; its nodes are those that demands name.
  Scheduler(const Function& graph, std::shared_ptr<Context> context, const ScheduleOptions& options,
            ScheduleDemands& demands);

  // Fills `schedule`; when demands grew, it is not to be used and another Scheduler has to run.
  absl::Status Run(Schedule* schedule);

 private:
  friend class ScheduleEmitter;
  // How a value is made of others, by what a second computation of it would cost.
  enum class Kind : uint8_t {
    kPlain,        // no contraction in it
    kContraction,  // a sum of products of values that are read many times, or elementwise on one
    kMixed,        // made of reductions of contractions: softmax of scores
  };
  // An open loop and those around it.
  struct Scope {
    int parent;  // -1: none
    const UOp* range;
    double trips;  // iterations, of all loops together
    int depth;
  };
  // An element of a value, as an expression of loop counters, that some kernel needs.
  struct Request {
    const UOp* value;
    int kernel;
    Position at;
    int scope;  // the innermost loop that `at` depends on; -1: none
    // How it is made, once the value has a place:
    std::vector<int> sources;        // requests
    std::vector<const UOp*> ranges;  // of a REDUCE_AXIS
    const UOp* select = nullptr;     // of a PAD: where source 0 counts
    int stage = -1;                  // read from there
    bool is_load = false;            // read from the value's buffer
    bool is_fused = false;           // folded by the sum that needs it, never stored
    const UOp* node = nullptr;       // the element, in the kernel
  };
  struct Value {
    Kind kind = Kind::kPlain;
    bool has_reduce = false;
    double elements = 1;
    double work = 0;                   // to compute one element from buffers [about one cheap op]
    double local_work = 0;             // the same with contractions in buffers
    double contracted = 0;             // longest sum of products in it
    const UOp* contraction = nullptr;  // that it is elementwise on, or made of reductions of
    std::vector<int> requests;
    int kernel = -1;         // that materialises it
    bool is_forced = false;  // a GATHER reads it, or the graph returns it
    const char* force_reason = "";
  };
  struct Stage {
    const UOp* value;
    int kernel;
    int scope;                       // the innermost loop around it
    std::vector<size_t> free;        // dimensions that it holds
    Shape extents;                   // of those
    std::vector<const UOp*> ranges;  // loops that fill it
    int request = -1;                // what fills it
    const UOp* end = nullptr;        // once built: its filling
    const UOp* local = nullptr;
  };
  // A store, or a store for each element of a shape.
  struct Region {
    std::vector<const UOp*> loops;
    Position target;     // what an ASSIGN writes, in the shape of its target
    int value = -1;      // request
    int positions = -1;  // request, for a SCATTER
  };
  struct Operand {
    const UOp* source;  // a value of the graph, or a state of a buffer
    const UOp* param;
  };
  struct Kernel {
    const UOp* root;  // a value, or an ASSIGN
    std::vector<Region> regions;
    std::vector<Operand> operands;  // 0: what it writes
    absl::flat_hash_map<const UOp*, size_t> operand_of;
    std::vector<const UOp*> grouped;   // ranges of float sums that fold in lanes
    std::vector<int> state_loads;      // requests for elements of states of buffers
    std::vector<const UOp*> gathered;  // what it reads at positions known at run time
    double stage_bytes = 0;
    bool stages_rows = false;  // holds a row of a contraction that another one consumes
    bool has_contraction = false, has_reduce = false, fuses_products = false;
    int hoisted_depth = 64;  // loops around the outermost reduction or stage
    int num_locals = 0;
    bool is_copy = false;  // of operand 1, element by element
    const UOp* sink = nullptr;
    std::vector<const UOp*> binds;  // of the sink's variables, where it is shared
  };

  // --- schedule_requests.cc
  using RangeSet = absl::InlinedVector<const UOp*, 6>;
  const RangeSet& RangesIn(const UOp* index);
  RangeSet RangesOf(const Position& at);
  int Open(int scope, const UOp* range);
  const UOp* NewRange(const UOp* extent, bool is_reduce);
  std::vector<int> ChainOf(int scope) const;  // outermost first
  absl::StatusOr<int> Ask(const UOp* value, int kernel, Position at, int scope);
  static bool FoldsProducts(const UOp* reduce);
  bool GroupsLanes(const UOp* reduce);
  bool IsMatrixVector(const UOp* reduce);
  bool FoldsNeighbours(const UOp* reduce, size_t axis);
  bool FoldsGroups(const UOp* value);
  absl::Status Expand(int request);
  absl::Status ExpandReduce(int request);
  absl::Status ExpandGather(int request);
  static const UOp* GatheredFrom(const UOp* gather);

  // --- schedule_places.cc
  static void Join(const Value& from, Value* value);
  absl::Status Describe(const UOp* node);
  bool IsContraction(const UOp* reduce);
  absl::Status Settle(const UOp* node);
  struct Decision {
    Place place;
    std::string reason;
  };
  absl::StatusOr<Decision> Decide(const UOp* node, Stage* stage);
  bool PlanStage(const Value& value, Stage* stage);
  absl::Status Materialise(const UOp* node);
  bool PutTogether(const UOp* node);
  absl::Status UseStage(const UOp* node, Stage stage);
  void Note(const UOp* node, Place place, std::string reason);

  // --- schedule_kernels.cc
  absl::Status AddAssign(const UOp* assign);
  absl::Status AddKernel(const UOp* value);
  std::vector<int64_t> CutsOf(const UOp* root);
  int AddLoops(ShapeSpan shape, absl::Span<const int64_t> cuts, Region* region, Shape* index);
  absl::Status BuildKernel(int kernel);
  absl::StatusOr<const UOp*> BuildRequest(int request);
  absl::Status BuildElement(Request& request);
  absl::Status BuildStage(int stage);
  absl::StatusOr<const UOp*> BuildScatter(Kernel& kernel, const UOp* copied);
  const UOp* ParamOf(Kernel& kernel, const UOp* source);
  absl::StatusOr<const UOp*> LoadAt(Kernel& kernel, const UOp* source, const Position& at);
  const UOp* EndOf(absl::Span<const UOp* const> loops, const UOp* effect);
  // What takes the place of a loop's counter, and the loops that are then left.
  struct Launch {
    std::vector<const UOp*> loops;
    absl::flat_hash_map<const UOp*, const UOp*> counters;
    absl::flat_hash_map<const UOp*, const UOp*> inside;  // what is left of a loop that was cut
  };
  int64_t MostPieces(const UOp* effect, const UOp* loop);
  struct LoopCut;
  std::vector<LoopCut> CutTiles(const std::vector<const UOp*>& loops, const UOp* sink,
                                int64_t wanted);
  std::vector<LoopCut> CutOuter(absl::Span<const UOp* const> loops, const UOp* effect,
                                int64_t wanted);
  Launch PlanLaunch(const Kernel& kernel, const UOp* effect);
  absl::StatusOr<const UOp*> Canonicalise(const Kernel& kernel, const UOp* effect,
                                          const Launch& launch);
  absl::StatusOr<bool> IsCopy(const Kernel& kernel, ShapeSpan shape, const UOp* value,
                              const UOp* position);
  bool IsInPlace(const Kernel& kernel, const UOp* effect, const UOp* position);
  std::string NameOf(const Kernel& kernel);
  bool IsState(const UOp* node) const;
  // The PARAM or BUFFER below views, and how many of its changes a state has seen.
  static const UOp* StorageOf(const UOp* state);
  int VersionOf(const UOp* state);
  bool IsStored(const UOp* node) const;
  // The kernels that fill a value's memory.
  std::vector<int> KernelsOf(const UOp* value) const;

  // --- schedule_shared.cc
  absl::StatusOr<const UOp*> WithoutNumbers(const Kernel& kernel, std::vector<const UOp*>* binds);
  absl::Status ShareKernels();

  // --- schedule.cc
  absl::Status NumberStates();
  const UOp* ResultValue(const UOp* result) const;
  const UOp* Make(Op op, DType dtype, absl::Span<const UOp* const> sources,
                  const Argument& argument = {});

  const Function& graph_;
  std::shared_ptr<Context> context_;
  const ScheduleOptions& options_;
  ScheduleDemands& demands_;
  ShapeAnalysis shapes_;
  Dims& dims_;
  IndexMap map_;
  std::vector<const UOp*> nodes_;  // sources before users
  absl::flat_hash_map<const UOp*, Value> values_;
  std::vector<Request> requests_;
  absl::flat_hash_map<std::pair<const UOp*, std::vector<const void*>>, int> request_of_;
  std::vector<Scope> scopes_;
  std::vector<Stage> stages_;
  std::vector<Kernel> kernels_;
  absl::flat_hash_map<const UOp*, RangeSet> ranges_in_;
  absl::flat_hash_map<const UOp*, int> kernel_of_effect_;                // ASSIGN -> kernel
  absl::flat_hash_map<const UOp*, int> version_of_;                      // of states
  absl::flat_hash_map<const UOp*, std::vector<const UOp*>> effects_on_;  // of storages, in order
  absl::flat_hash_map<std::pair<const UOp*, std::string>, std::string> name_of_kernel_;
  absl::flat_hash_map<std::string, int> num_of_name_;  // numbers that follow a name so far
  absl::flat_hash_set<std::string> kernel_names_;
  // Values whose memory others fill, a part each, and of each part in whose memory it lies.
  struct Part {
    const UOp* whole;
    int64_t byte_offset;
  };
  absl::flat_hash_map<const UOp*, std::vector<const UOp*>> parts_of_;
  absl::flat_hash_map<const UOp*, Part> part_of_;
  std::vector<PlaceNote> places_;
  std::vector<int> note_kernels_;  // of places_; -1: whatever kernel fills its first part
  int64_t num_axes_ = 0, next_buffer_id_ = 0;
  absl::Status build_error_;
};

}  // namespace svod

#endif  // SVOD_PLAN_SCHEDULER_H_
