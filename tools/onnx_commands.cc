#include "tools/onnx_commands.h"

#include <chrono>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/status_macros.h"
#include "tools/fill_heap.h"
#include "tools/onnx/describe_model.h"
#include "tools/onnx/onnx_model.h"

namespace svod {
namespace {

int64_t NowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// What is read of a small model is copied to the heap.
void FillHeapForModel(const std::string& path) {
  constexpr uintmax_t kLargest = 8 << 20;
  std::error_code error;
  const uintmax_t size_bytes = std::filesystem::file_size(path, error);
  if (!error && size_bytes <= kLargest) FillHeap((size_t{2} << 20) + size_bytes);
}

OnnxTensor FromTensor(const NamedTensor& named) {
  auto owner = std::make_shared<Tensor>(named.tensor);
  return {named.name, {owner->dtype(), owner->shape(), owner->bytes(), owner}};
}

absl::StatusOr<NamedTensor> ToTensor(const OnnxTensor& output) {
  SVOD_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Create(output.tensor.dtype, output.tensor.shape));
  if (!output.tensor.bytes.empty()) {
    std::memcpy(tensor.bytes().data(), output.tensor.bytes.data(), output.tensor.bytes.size());
  }
  return NamedTensor{output.name, tensor};
}

OnnxImportOptions ImportOptions(const std::vector<NamedBounds>& dims) {
  OnnxImportOptions options;
  for (const NamedBounds& bounds : dims)
    options.dims[bounds.name] = {bounds.min, bounds.max, bounds.multiple};
  return options;
}

// A tensor for an input that is not given: small integers, floats in [-1, 1). A symbolic dimension
// is at its most.
absl::StatusOr<NamedTensor> RandomInput(const OnnxInputInfo& info,
                                        const std::vector<NamedBounds>& dims, size_t seed) {
  std::vector<int64_t> shape;
  for (size_t i = 0; i < info.dims.size(); ++i) {
    int64_t size = info.dims[i].size;
    for (const NamedBounds& bounds : dims) {
      if (size < 0 && bounds.name == info.dims[i].name) size = bounds.max;
    }
    if (size < 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("input ", info.name, ": dimension '", info.dims[i].name,
                       "', expected --dim=", info.dims[i].name, "=SIZE"));
    }
    shape.push_back(size);
  }
  SVOD_ASSIGN_OR_RETURN(DType dtype, info.dtype);
  std::string spec =
      absl::StrCat(absl::StrJoin(shape, "x"), shape.empty() ? "" : "x", ToString(dtype),
                   dtype.is_float() ? absl::StrCat("=random(", seed, ")") : "=1");
  SVOD_ASSIGN_OR_RETURN(Tensor tensor, ParseTensor(spec));
  return NamedTensor{info.name, tensor};
}

}  // namespace

bool IsOnnxFile(absl::string_view path) { return absl::EndsWith(path, ".onnx"); }

absl::StatusOr<RunResult> RunOnnx(Session& session, const std::string& path,
                                  const RunRequest& request, const std::vector<NamedBounds>& dims,
                                  bool random_inputs) {
  OnnxModelOptions options;
  options.dims = ImportOptions(dims).dims;
  options.prepare.schedule = session.settings().schedule;
  options.prepare.task_runner = MakeTbbTaskRunner(&session.executor());
  SVOD_ASSIGN_OR_RETURN(KernelProvider provider, session.Provider());
  RunResult result;
  options.prepare.progress = request.progress;
  if (request.is_only_run) options.prepare.expected_runs = 1;
  SVOD_ASSIGN_OR_RETURN(options.prepare.quick_provider, session.QuickProvider());
  SVOD_ASSIGN_OR_RETURN(options.prepare.search, session.Search(request.search, &result.searched));
  int64_t start = NowNs();
  FillHeapForModel(path);
  SVOD_ASSIGN_OR_RETURN(std::unique_ptr<OnnxModel> model, OnnxModel::Load(path, provider, options));
  std::vector<NamedTensor> given = request.inputs;
  if (random_inputs && given.empty()) {
    for (const OnnxInputInfo& info : model->inputs()) {
      SVOD_ASSIGN_OR_RETURN(NamedTensor tensor, RandomInput(info, dims, given.size() + 1));
      given.push_back(std::move(tensor));
    }
  }
  std::vector<OnnxTensor> inputs;
  for (const NamedTensor& named : given) inputs.push_back(FromTensor(named));
  SVOD_ASSIGN_OR_RETURN(OnnxPlan * plan, model->Prepare(inputs));
  SVOD_RETURN_IF_ERROR(session.opts().CheckUsed());
  result.prepare_ms = static_cast<double>(NowNs() - start) * 1e-6;
  result.schedule = session.DescribeLevels(plan->plan);
  SVOD_RETURN_IF_ERROR(model->Bind(*plan, inputs));
  ExecuteOptions execute;
  execute.serial = request.serial;
  execute.executor = &session.executor();
  for (int i = 0; i < request.repeat; ++i) {
    start = NowNs();
    if (i + 1 < request.repeat) {
      SVOD_RETURN_IF_ERROR(Execute(plan->plan, execute));
    } else {
      SVOD_ASSIGN_OR_RETURN(result.profiles, ExecuteProfiled(plan->plan, execute));
    }
    result.execute_ns.push_back(NowNs() - start);
  }
  SVOD_ASSIGN_OR_RETURN(std::vector<OnnxTensor> outputs, OnnxModel::CopyOutputs(*plan));
  for (const OnnxTensor& output : outputs) {
    SVOD_ASSIGN_OR_RETURN(NamedTensor tensor, ToTensor(output));
    result.outputs.push_back(std::move(tensor));
  }
  return result;
}

absl::StatusOr<std::string> PlanOnnx(Session& session, const std::string& path,
                                     const std::vector<NamedTensor>& inputs,
                                     const std::vector<NamedBounds>& dims) {
  OnnxModelOptions options;
  options.dims = ImportOptions(dims).dims;
  options.prepare.schedule = session.settings().schedule;
  SVOD_ASSIGN_OR_RETURN(KernelProvider provider, session.Provider());
  SVOD_ASSIGN_OR_RETURN(std::unique_ptr<OnnxModel> model, OnnxModel::Load(path, provider, options));
  std::vector<OnnxTensor> given;
  for (const NamedTensor& named : inputs) given.push_back(FromTensor(named));
  SVOD_ASSIGN_OR_RETURN(ImportedOnnx imported, model->Import(given));
  return session.DescribePlan(imported.module.functions[0]);
}

absl::StatusOr<std::string> DescribeOnnx(const std::string& path,
                                         const std::vector<NamedBounds>& dims) {
  return DescribeOnnxModel(path, ImportOptions(dims));
}

}  // namespace svod
