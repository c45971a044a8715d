#include "ir/operators/pooling.h"

#include <limits>
#include <optional>

#include "absl/strings/str_cat.h"
#include "ir/operators/compose.h"
#include "ir/operators/reductions.h"
#include "ir/operators/windows.h"

namespace svod {
namespace {

bool IsImage(TensorBuilder& builder, absl::string_view op, const UOp* x, int most) {
  if (!IsReady(builder, op, {x})) return false;
  if (builder.RankOf(x) >= 3 && builder.RankOf(x) <= most) return true;
  FailOperator(builder, op, "shape", ShapeToString(builder.ShapeOf(x)),
               "[N, C, i...] with 1 to 3 spatial dimensions");
  return false;
}

// Checked attributes; `more`: what ceil_mode adds to the end of each dimension.
struct Pool {
  WindowOptions windows;
  std::vector<int64_t> more;
};

std::optional<Pool> CheckPool(TensorBuilder& builder, absl::string_view op, const UOp* x,
                              const PoolOptions& options) {
  if (!IsImage(builder, op, x, 5)) return std::nullopt;
  if (options.kernel.empty()) {
    FailOperator(builder, op, "kernel", "no sizes", "one for each spatial dimension");
    return std::nullopt;
  }
  int64_t n = builder.RankOf(x) - 2;
  auto windows = CheckWindows(builder, op, n, options.kernel,
                              options.stride.empty() ? options.kernel : options.stride,
                              options.padding, options.dilation);
  if (!windows.has_value()) return std::nullopt;
  Pool pool = {*windows, std::vector<int64_t>(static_cast<size_t>(n), 0)};
  for (int64_t i = 0; i < n; ++i) {
    size_t at = static_cast<size_t>(i);
    int64_t reach = windows->dilation[at] * (windows->size[at] - 1) + 1;
    int64_t low = windows->low[at], high = windows->high[at], stride = windows->stride[at];
    if (low >= reach || high >= reach) {
      FailOperator(builder, op, "padding", absl::StrCat(low, " and ", high),
                   absl::StrCat("less than the window's ", reach));
      return std::nullopt;
    }
    if (!options.ceil_mode || stride == 1) continue;
    int64_t size = builder.ConstDim(x, 2 + i, absl::StrCat(op, ": dimension with a stride"));
    if (size < 0) return std::nullopt;
    int64_t rest = size + low + high - reach;
    if (rest < 0) continue;  // refused below
    // One more window if some elements are left over and it begins before the end of x.
    int64_t last_begin = (rest / stride + 1) * stride;
    if (rest % stride != 0 && last_begin < size + low) pool.more[at] = last_begin - rest;
  }
  return pool;
}

// Folds the windows of x, padded with `value`.
const UOp* Pooled(TensorBuilder& builder, absl::string_view op, ReduceKind kind, const UOp* x,
                  const UOp* value, const Pool& pool) {
  std::vector<int64_t> high = pool.windows.high;
  for (size_t i = 0; i < high.size(); ++i) high[i] += pool.more[i];
  const UOp* padded = PadSpatial(builder, x, value, pool.windows.low, high);
  const UOp* windows = Windows(builder, op, padded, pool.windows);
  std::vector<int64_t> axes;
  for (size_t i = high.size(); i > 0; --i) axes.push_back(-static_cast<int64_t>(i));
  return builder.ReduceAxis(kind, windows, axes, false);
}

}  // namespace

const UOp* MaxPool(TensorBuilder& builder, const UOp* x, const PoolOptions& options) {
  std::optional<Pool> pool = CheckPool(builder, "max_pool", x, options);
  if (!pool.has_value()) return nullptr;
  DType dtype = x->dtype();
  const UOp* least = dtype.is_float()
                         ? builder.Const(dtype, -std::numeric_limits<double>::infinity())
                         : builder.ConstInt(dtype, MinValue(dtype));
  return Pooled(builder, "max_pool", ReduceKind::kMax, x, least, *pool);
}

const UOp* AveragePool(TensorBuilder& builder, const UOp* x, const PoolOptions& options) {
  constexpr absl::string_view kName = "avg_pool";
  std::optional<Pool> pool = CheckPool(builder, kName, x, options);
  if (!pool.has_value()) return nullptr;
  const UOp* number = ToFloat(builder, x);
  Expression wide = Widen(builder, number);
  Expression zero = wide.Number(0);
  Expression sum(builder, Pooled(builder, kName, ReduceKind::kAdd, wide, zero, *pool));
  bool is_padded = false, is_cut = false;
  double window_size = 1;
  for (size_t i = 0; i < pool->more.size(); ++i) {
    is_padded = is_padded || pool->windows.low[i] > 0 || pool->windows.high[i] > 0;
    is_cut = is_cut || pool->more[i] > 0;
    window_size *= static_cast<double>(pool->windows.size[i]);
  }
  if (!is_cut && (!is_padded || options.count_include_pad)) {
    return builder.Cast(sum / window_size, number->dtype());
  }
  // Windows have different numbers of elements: the sum over ones tells them.
  Shape shape = DimsBetween(builder, x, 0, builder.RankOf(x));
  shape[0] = shape[1] = builder.Index(1);
  Pool of_ones = *pool;
  const UOp* ones = builder.Expand(wide.Number(1), shape);
  if (options.count_include_pad) {
    ones = PadSpatial(builder, ones, wide.Number(1), of_ones.windows.low, of_ones.windows.high);
    of_ones.windows.low.assign(of_ones.windows.low.size(), 0);
    of_ones.windows.high = of_ones.windows.low;
  }
  Expression count(builder, Pooled(builder, kName, ReduceKind::kAdd, ones, zero, of_ones));
  return builder.Cast(sum / count, number->dtype());
}

const UOp* GlobalMaxPool(TensorBuilder& builder, const UOp* x) {
  if (!IsImage(builder, "global_max_pool", x, kMaxRank)) return nullptr;
  ReduceOptions options = {{}, true};
  for (int64_t i = 2; i < builder.RankOf(x); ++i) options.axes.push_back(i);
  return Amax(builder, x, options);
}

const UOp* GlobalAveragePool(TensorBuilder& builder, const UOp* x) {
  if (!IsImage(builder, "global_avg_pool", x, kMaxRank)) return nullptr;
  ReduceOptions options = {{}, true};
  for (int64_t i = 2; i < builder.RankOf(x); ++i) options.axes.push_back(i);
  return Mean(builder, x, options);
}

}  // namespace svod
