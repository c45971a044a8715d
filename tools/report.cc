#include "tools/report.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "ir/passes/apply_actions.h"
#include "ir/ranges.h"
#include "ir/status_macros.h"
#include "ir/text.h"
#include "jit/disk_cache.h"

namespace svod {
namespace {

std::string ShapeText(const UOp* buffer) {
  return absl::StrJoin(buffer->sources(), ", ", [](std::string* out, const UOp* dim) {
    if (IsConst(dim)) {
      absl::StrAppend(out, ConstInt(dim));
    } else if (dim->op() == Op::kDefineVar) {
      absl::StrAppend(out, "%", dim->arg<VariableArgument>().name);
    } else {
      absl::StrAppend(out, Summarize(dim));
    }
  });
}

std::string ParamName(const UOp* param) {
  const auto& argument = param->arg<ParamArgument>();
  return argument.name.empty() ? absl::StrCat("p", argument.slot) : std::string(argument.name);
}

std::string Bytes(int64_t bytes) {
  if (bytes < 10'000) return absl::StrCat(bytes, " B");
  if (bytes < 10'000'000) return absl::StrFormat("%.1f KiB", static_cast<double>(bytes) / 1024);
  return absl::StrFormat("%.1f MiB", static_cast<double>(bytes) / (1024 * 1024));
}

}  // namespace

absl::StatusOr<std::string> VersionText() {
  SVOD_ASSIGN_OR_RETURN(Target host, HostTarget());
  return absl::StrCat("svod-jit ", SVOD_VERSION, "\nLLVM ", LlvmVersion(), "\ntriple ", host.triple,
                      "\nCPU ", host.cpu, "\nfeatures ", host.features, "\n");
}

absl::StatusOr<std::vector<std::string>> InputNames(const Function& function) {
  SVOD_ASSIGN_OR_RETURN(std::vector<const UOp*> params, ParamsOf(function.root));
  std::vector<std::string> names;
  for (const UOp* param : params) {
    if (param->arg<ParamArgument>().access != Access::kOut) names.push_back(ParamName(param));
  }
  return names;
}

absl::StatusOr<std::string> DescribeFunction(const Function& function) {
  SVOD_ASSIGN_OR_RETURN(std::vector<const UOp*> params, ParamsOf(function.root));
  std::string text =
      absl::StrCat(function.is_kernel() ? "kernel @" : "graph @", function.name(), "\n");
  for (const UOp* param : params) {
    SVOD_ASSIGN_OR_RETURN(int64_t elements, MaxElements(param));
    absl::StrAppend(&text, "  ", ToString(param->arg<ParamArgument>().access), " ",
                    ParamName(param), ": ", ToString(param->dtype()), "[", ShapeText(param), "], ",
                    Bytes(elements * param->dtype().size_bytes()), "\n");
  }
  for (const UOp* variable : VariablesOf(function.root)) {
    const auto& argument = variable->arg<VariableArgument>();
    absl::StrAppend(&text, "  variable ", argument.name, " in [", argument.min, ", ", argument.max,
                    "]\n");
  }
  int64_t ranges = 0, loads = 0, stores = 0, arithmetic = 0, calls = 0, copies = 0, nodes = 0;
  for (const UOp* node : Toposort(function.root)) {
    ++nodes;
    Op op = node->op();
    if (op == Op::kCoreId) {
      absl::StrAppend(&text, "  launch size ",
                      IsConst(node->source(0)) ? absl::StrCat(ConstInt(node->source(0)))
                                               : Summarize(node->source(0)),
                      "\n");
    }
    ranges += op == Op::kRange;
    loads += op == Op::kLoad;
    stores += op == Op::kStore;
    calls += op == Op::kCall;
    copies += op == Op::kCopy;
    arithmetic += IsLanewise(op) && !node->dtype().is_void();
  }
  if (function.is_kernel()) {
    absl::StrAppend(&text, "  ", nodes, " nodes: ", ranges, " loops, ", loads, " loads, ", stores,
                    " stores, ", arithmetic, " elementwise ops\n");
  } else {
    absl::StrAppend(&text, "  ", calls, " calls, ", copies, " copies\n");
  }
  return text;
}

absl::StatusOr<std::string> DescribeCache(const std::string& directory) {
  std::unique_ptr<DiskCache> cache = DiskCache::Open({directory});
  SVOD_ASSIGN_OR_RETURN(DiskCache::Contents contents, cache->List());
  return absl::StrCat("directory ", directory, "\nkernels ", contents.num_files, "\nbytes ",
                      contents.size_bytes, "\n");
}

absl::StatusOr<std::string> ClearCache(const std::string& directory) {
  std::unique_ptr<DiskCache> cache = DiskCache::Open({directory});
  SVOD_RETURN_IF_ERROR(cache->Clear());
  return DescribeCache(directory);
}

std::string FormatNamed(const NamedTensor& named) {
  return absl::StrCat(named.name, named.name.empty() ? "" : ": ",
                      TypeString(named.tensor.dtype(), named.tensor.shape()), "\n",
                      FormatTensor(named.tensor), "\n");
}

std::string FormatNanoseconds(double ns) {
  constexpr std::array<const char*, 4> kUnits = {"ns", "us", "ms", "s"};
  size_t unit = 0;
  while (ns >= 1000 && unit + 1 < kUnits.size()) {
    ns /= 1000;
    ++unit;
  }
  return absl::StrFormat("%.3g %s", ns, kUnits[unit]);
}

std::string FormatTimes(const RunResult& result) {
  std::vector<int64_t> sorted = result.execute_ns;
  std::sort(sorted.begin(), sorted.end());
  auto show = [&](size_t i) { return FormatNanoseconds(static_cast<double>(sorted[i])); };
  return absl::StrCat("prepare ", FormatNanoseconds(result.prepare_ms * 1e6), "\nexecute fastest ",
                      show(0), ", median ", show(sorted.size() / 2), ", slowest ",
                      show(sorted.size() - 1), " of ", sorted.size(), "\n");
}

std::string FormatSearch(const RunResult& result) {
  std::string text;
  for (const SearchedKernel& kernel : result.searched) {
    const SearchReport& report = kernel.report;
    absl::StrAppend(&text, "search: ", kernel.name, ": ");
    if (!report.left_out.empty()) {
      absl::StrAppend(&text, "left out, ", report.left_out, "\n");
      continue;
    }
    absl::StrAppend(&text, report.measured, " forms, ", FormatNanoseconds(report.chosen_ns));
    if (report.found != report.chosen) {
      absl::StrAppend(&text, " -> ", FormatNanoseconds(report.found_ns), ", ",
                      absl::StrFormat("%.2f", report.chosen_ns / report.found_ns),
                      " times as fast\n  chosen ", ToString(report.chosen), "\n  found  ",
                      ToString(report.found));
    }
    absl::StrAppend(&text, "\n");
    for (const std::string& form : report.different) {
      absl::StrAppend(&text, "  gives other bits, a bug of Svod: ", form, "\n");
    }
  }
  return text;
}

std::string FormatProfile(const RunResult& result) {
  int64_t total = 0;
  for (const KernelProfile& profile : result.profiles) total += profile.elapsed_ns;
  std::string text = "      time  share  cores  buffers  compile  kernel\n";
  for (const KernelProfile& profile : result.profiles) {
    absl::StrAppend(
        &text,
        absl::StrFormat("%10s %5.1f%% %6d %8d %8s  %s\n",
                        FormatNanoseconds(static_cast<double>(profile.elapsed_ns)),
                        100.0 * static_cast<double>(profile.elapsed_ns) /
                            static_cast<double>(std::max<int64_t>(total, 1)),
                        profile.global_size[0], profile.num_buffers,
                        FormatNanoseconds(profile.kernel->compile_ms * 1e6), profile.kernel->name));
  }
  return text;
}

std::string FormatCacheStats(const KernelCacheStats& stats) {
  std::string text =
      absl::StrCat("hits ", stats.hits, "\nmisses ", stats.misses, "\nwaits ", stats.waits,
                   "\ncompiles ", stats.compiles, "\nfailures ", stats.failures, "\noptimise time ",
                   FormatNanoseconds(stats.optimize_ms * 1e6), "\ncompile time ",
                   FormatNanoseconds(stats.compile_ms * 1e6), "\nevictions ", stats.evictions,
                   "\nkernels ", stats.kernels, "\ncode bytes ", stats.code_bytes, "\ndisk hits ",
                   stats.disk.hits, "\ndisk misses ", stats.disk.misses, "\ndisk rejects ",
                   stats.disk.rejects, "\ndisk writes ", stats.disk.writes, "\n");
  if (!stats.disk_problem.empty()) absl::StrAppend(&text, "disk: ", stats.disk_problem, "\n");
  return text;
}

}  // namespace svod
