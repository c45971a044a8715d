#include "ir/uop.h"

#include <xxhash.h>  // XXH_INLINE_ALL comes with its target

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_format.h"
#include "ir/check.h"
#include "ir/float_formats.h"
#include "ir/status_macros.h"

namespace svod {
namespace {

// Memory that only grows and is freed at once: nodes are trivially destructible.
class Arena {
 public:
  void* Allocate(size_t size) {
    size = (size + 15) & ~size_t{15};
    if (size > left_) {
      size_t block = std::max<size_t>(size, next_block_);
      next_block_ = std::min<size_t>(next_block_ * 2, size_t{1} << 20);
      blocks_.push_back(std::make_unique<char[]>(block));
      at_ = blocks_.back().get();
      left_ = block;
      held_ += block;
    }
    void* result = at_;
    at_ += size;
    left_ -= size;
    return result;
  }
  template <typename T>
  absl::Span<const T> Copy(absl::Span<const T> from) {
    if (from.empty()) return {};
    T* to = static_cast<T*>(Allocate(from.size() * sizeof(T)));
    std::copy(from.begin(), from.end(), to);
    return {to, from.size()};
  }
  absl::string_view Copy(absl::string_view from) {
    absl::Span<const char> copy = Copy(absl::Span<const char>(from.data(), from.size()));
    return {copy.data(), copy.size()};
  }
  size_t held_bytes() const { return held_; }

 private:
  std::vector<std::unique_ptr<char[]>> blocks_;
  char* at_ = nullptr;
  size_t left_ = 0, held_ = 0, next_block_ = 4096;
};

// Collects the bytes that identify a node, then hashes them.
class Hasher {
 public:
  void Add(uint64_t value) { bytes_.append(reinterpret_cast<const char*>(&value), sizeof(value)); }
  void Add(absl::string_view text) {
    Add(text.size());
    bytes_.append(text.data(), text.size());
  }
  void Clear() { bytes_.clear(); }
  Hash128 Finish() const {
    XXH128_hash_t hash = XXH3_128bits(bytes_.data(), bytes_.size());
    return {hash.low64, hash.high64};
  }

 private:
  std::string bytes_;
};

struct AddArgument {
  Hasher& hasher;
  void operator()(std::monostate) const {}
  void operator()(const ConstArgument& a) const { hasher.Add(a.bits); }
  void operator()(const VariableArgument& a) const {
    hasher.Add(a.name);
    hasher.Add(static_cast<uint64_t>(a.min));
    hasher.Add(static_cast<uint64_t>(a.max));
  }
  void operator()(const ParamArgument& a) const {
    hasher.Add(static_cast<uint64_t>(a.slot));
    hasher.Add(static_cast<uint64_t>(a.access));
    hasher.Add(a.name);
  }
  void operator()(const BufferArgument& a) const { hasher.Add(static_cast<uint64_t>(a.id)); }
  void operator()(const ScratchArgument& a) const {
    hasher.Add(static_cast<uint64_t>(a.id));
    hasher.Add(static_cast<uint64_t>(a.size));
  }
  void operator()(const AlignmentArgument& a) const {
    // Accesses without the flag keep the hashes that they had before there was one.
    hasher.Add(static_cast<uint64_t>(a.bytes) | (a.is_stream ? uint64_t{1} << 63 : 0));
  }
  void operator()(const AxisArgument& a) const {
    hasher.Add(static_cast<uint64_t>(a.axis));
    hasher.Add(static_cast<uint64_t>(a.kind));
  }
  void operator()(const ReduceArgument& a) const { hasher.Add(static_cast<uint64_t>(a.kind)); }
  void operator()(const FunctionArgument& a) const {
    hasher.Add(static_cast<uint64_t>(a.is_kernel));
    hasher.Add(a.name);
    hasher.Add(a.opts.size());
    for (absl::string_view opt : a.opts) hasher.Add(opt);
  }
  void operator()(const LanesArgument& a) const {
    hasher.Add(a.lanes.size());
    for (uint16_t lane : a.lanes) hasher.Add(uint64_t{lane});
  }
  void operator()(const ViewArgument& a) const { hasher.Add(static_cast<uint64_t>(a.byte_offset)); }
  void operator()(const CustomArgument& a) const { hasher.Add(a.kind); }
  void operator()(const AxesArgument& a) const { AddAxes(a.axes); }
  void operator()(const ReduceAxesArgument& a) const {
    hasher.Add(static_cast<uint64_t>(a.kind));
    AddAxes(a.axes);
  }
  void operator()(const ScatterArgument& a) const {
    hasher.Add(static_cast<uint64_t>(a.kind));
    hasher.Add(static_cast<uint64_t>(a.axis));
  }
  void AddAxes(absl::Span<const int64_t> axes) const {
    hasher.Add(axes.size());
    for (int64_t axis : axes) hasher.Add(static_cast<uint64_t>(axis));
  }
};

// What Make looks up before a node exists.
struct Key {
  Op op;
  DType dtype;
  absl::Span<const UOp* const> sources;
  const Argument* argument;
  Hash128 hash;
};

struct NodeHash {
  using is_transparent = void;
  size_t operator()(const UOp* node) const { return node->hash().low; }
  size_t operator()(const Key& key) const { return key.hash.low; }
};

struct NodeEq {
  using is_transparent = void;
  bool operator()(const UOp* a, const UOp* b) const { return a == b; }
  bool operator()(const UOp* a, const Key& b) const {
    return a->hash() == b.hash && a->op() == b.op && a->dtype() == b.dtype &&
           a->sources() == b.sources && a->argument() == *b.argument;
  }
  bool operator()(const Key& a, const UOp* b) const { return (*this)(b, a); }
};

}  // namespace

struct Context::State {
  Arena arena;
  absl::flat_hash_set<const UOp*, NodeHash, NodeEq> nodes;
  Hasher hasher;

  // The argument with its strings and lists moved into the arena.
  Argument Own(const Argument& argument) {
    Argument own = argument;
    if (auto* a = std::get_if<VariableArgument>(&own)) a->name = arena.Copy(a->name);
    if (auto* a = std::get_if<ParamArgument>(&own)) a->name = arena.Copy(a->name);
    if (auto* a = std::get_if<CustomArgument>(&own)) a->kind = arena.Copy(a->kind);
    if (auto* a = std::get_if<LanesArgument>(&own)) a->lanes = arena.Copy(a->lanes);
    if (auto* a = std::get_if<AxesArgument>(&own)) a->axes = arena.Copy(a->axes);
    if (auto* a = std::get_if<ReduceAxesArgument>(&own)) a->axes = arena.Copy(a->axes);
    if (auto* a = std::get_if<FunctionArgument>(&own)) {
      a->name = arena.Copy(a->name);
      std::vector<absl::string_view> opts;
      for (absl::string_view opt : a->opts) opts.push_back(arena.Copy(opt));
      a->opts = arena.Copy(absl::Span<const absl::string_view>(opts));
    }
    return own;
  }
};

Context::Context() : state_(std::make_unique<State>()) {}
Context::~Context() = default;
Context::Context(Context&&) noexcept = default;
Context& Context::operator=(Context&&) noexcept = default;

const UOp* Context::Intern(Op op, DType dtype, absl::Span<const UOp* const> sources,
                           const Argument& argument) {
  Hasher& hasher = state_->hasher;
  hasher.Clear();
  hasher.Add(static_cast<uint64_t>(op) | static_cast<uint64_t>(dtype.scalar) << 8 |
             static_cast<uint64_t>(dtype.lanes) << 16 |
             static_cast<uint64_t>(sources.size()) << 32);
  for (const UOp* source : sources) {
    hasher.Add(source->hash().low);
    hasher.Add(source->hash().high);
  }
  std::visit(AddArgument{hasher}, argument);
  Key key{op, dtype, sources, &argument, hasher.Finish()};
  auto it = state_->nodes.find(key);
  if (it != state_->nodes.end()) return *it;

  UOp* node = new (state_->arena.Allocate(sizeof(UOp))) UOp();
  node->op_ = op;
  node->dtype_ = dtype;
  node->num_sources_ = static_cast<uint32_t>(sources.size());
  node->id_ = static_cast<uint32_t>(state_->nodes.size());
  node->sources_ = state_->arena.Copy(sources).data();
  node->hash_ = key.hash;
  node->argument_ = state_->Own(argument);
  bool is_buffer = InfoOf(op).op_class == OpClass::kBuffer || op == Op::kBufferView;
  node->base_buffer_ = is_buffer ? node : nullptr;
  if (op == Op::kAfter || op == Op::kIndex) node->base_buffer_ = sources[0]->base_buffer_;
  state_->nodes.insert(node);
  return node;
}

absl::StatusOr<const UOp*> Context::Make(Op op, DType dtype, absl::Span<const UOp* const> sources,
                                         const Argument& argument) {
  SVOD_ASSIGN_OR_RETURN(DType checked, CheckNode(op, dtype, sources, argument));
  return Intern(op, checked, sources, argument);
}

const UOp* Context::Bits(DType dtype, uint64_t bits) {
  int width = InfoOf(dtype.scalar).size_bytes * 8;
  if (dtype.is_bool()) bits = bits != 0;
  if (width < 64) bits &= (uint64_t{1} << width) - 1;
  return Intern(Op::kConst, dtype, {}, ConstArgument{bits});
}

const UOp* Context::Int(DType dtype, int64_t value) {
  if (dtype.is_float()) return Float(dtype, static_cast<double>(value));
  return Bits(dtype, static_cast<uint64_t>(value));
}

// Truncates; beyond the integers the nearest one, and 0 for NaN.
static int64_t Saturated(double value) {
  if (std::isnan(value)) return 0;
  if (value >= 0x1p63) return std::numeric_limits<int64_t>::max();
  if (value < -0x1p63) return std::numeric_limits<int64_t>::min();
  return static_cast<int64_t>(value);
}

const UOp* Context::Float(DType dtype, double value) {
  if (!dtype.is_float()) return Int(dtype, Saturated(value));
  return Bits(dtype, DoubleToBits(dtype.scalar, value));
}

const UOp* Context::Import(const UOp* root) {
  absl::flat_hash_map<const UOp*, const UOp*> copies;
  std::vector<const UOp*> sources;
  for (const UOp* node : Toposort(root)) {
    sources.clear();
    for (const UOp* source : node->sources()) sources.push_back(copies[source]);
    copies[node] = Intern(node->op(), node->dtype(), sources, node->argument());
  }
  return copies[root];
}

bool Context::Owns(const UOp* node) const {
  auto it = state_->nodes.find(node);
  return it != state_->nodes.end() && *it == node;
}

size_t Context::num_nodes() const { return state_->nodes.size(); }
size_t Context::size_bytes() const {
  return state_->arena.held_bytes() + state_->nodes.capacity() * (sizeof(void*) + 1);
}

std::vector<const UOp*> Toposort(const UOp* root) {
  std::vector<const UOp*> order;
  absl::flat_hash_set<const UOp*> seen;
  std::vector<std::pair<const UOp*, int>> stack;  // node, next source to visit
  seen.insert(root);
  stack.push_back({root, 0});
  while (!stack.empty()) {
    auto& [node, next] = stack.back();
    if (next == node->num_sources()) {
      order.push_back(node);
      stack.pop_back();
      continue;
    }
    const UOp* source = node->source(next++);
    if (seen.insert(source).second) stack.push_back({source, 0});
  }
  return order;
}

int64_t ConstInt(const UOp* node) {
  SVOD_DCHECK(IsConst(node));
  uint64_t bits = node->arg<ConstArgument>().bits;
  DType dtype = node->dtype();
  if (dtype.is_float()) return Saturated(BitsToDouble(dtype.scalar, bits));
  int width = InfoOf(dtype.scalar).size_bytes * 8;
  if (!dtype.is_signed() || width == 64) return static_cast<int64_t>(bits);
  return static_cast<int64_t>(bits << (64 - width)) >> (64 - width);
}

double ConstFloat(const UOp* node) {
  if (!node->dtype().is_float()) return static_cast<double>(ConstInt(node));
  return BitsToDouble(node->dtype().scalar, node->arg<ConstArgument>().bits);
}

bool IsConstInt(const UOp* node, int64_t value) {
  return IsConst(node) && !node->dtype().is_float() && ConstInt(node) == value;
}

double BitsToDouble(Scalar scalar, uint64_t bits) {
  if (scalar == Scalar::kF16) return F16ToF32(static_cast<uint16_t>(bits));
  if (scalar == Scalar::kBF16) return BF16ToF32(static_cast<uint16_t>(bits));
  if (scalar == Scalar::kF32) return std::bit_cast<float>(static_cast<uint32_t>(bits));
  return std::bit_cast<double>(bits);
}

uint64_t DoubleToBits(Scalar scalar, double value) {
  if (scalar == Scalar::kF64) return std::bit_cast<uint64_t>(value);
  // Rounding to odd first keeps the second rounding, to 16 bits, from being a double one.
  float nearest = static_cast<float>(value);
  if (scalar == Scalar::kF32) return std::bit_cast<uint32_t>(nearest);
  if (std::isfinite(nearest) && static_cast<double>(nearest) != value) {
    uint32_t bits = std::bit_cast<uint32_t>(nearest);
    bool too_far = std::fabs(static_cast<double>(nearest)) > std::fabs(value);
    bits = (too_far ? bits - 1 : bits) | 1;
    nearest = std::bit_cast<float>(bits);
  }
  return scalar == Scalar::kF16 ? F32ToF16(nearest) : F32ToBF16(nearest);
}

std::string ToString(const Hash128& hash) {
  return absl::StrFormat("%016x%016x", hash.high, hash.low);
}

const char* ToString(Access access) {
  constexpr const char* kNames[] = {"in", "out", "inout"};
  return kNames[static_cast<int>(access)];
}

const char* ToString(AxisKind kind) {
  constexpr const char* kNames[] = {"loop", "reduce"};
  return kNames[static_cast<int>(kind)];
}

const char* ToString(ScatterKind kind) {
  constexpr const char* kNames[] = {"set", "add", "mul", "max", "min"};
  return kNames[static_cast<int>(kind)];
}

const char* ToString(ReduceKind kind) {
  constexpr const char* kNames[] = {"add", "mul", "max", "min", "and", "or"};
  return kNames[static_cast<int>(kind)];
}

}  // namespace svod
