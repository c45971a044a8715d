// svod_onnx_replay MODEL FOLDER [--dim=NAME=LEAST..MOST[..STEP]]... [--carry=OUTPUT=INPUT]...: runs
// a model step by step on what another runtime ran it on, and compares the outputs of every step.
//
// FOLDER/0, FOLDER/1, ... have a step each: in_NAME.npy and out_NAME.npy. An input that --carry
// names is read at the first step alone: later it is what the output was the step before. Prints
// the milliseconds of the fastest of ten runs of the last step on one thread, and how many plans
// were made. Fails where an output differs by more than 1e-4, absolute and relative.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "ir/status_macros.h"
#include "jit/kernel_cache.h"
#include "tools/compare.h"
#include "tools/npy.h"
#include "tools/onnx/onnx_model.h"

namespace svod {
namespace {

namespace fs = std::filesystem;

constexpr Tolerance kTolerance = {1e-4, 1e-4};

struct Options {
  std::string model, folder;
  OnnxModelOptions model_options;
  std::map<std::string, std::string> carried;  // outputs by the input that they become
};

absl::Status ParseDim(absl::string_view text, OnnxModelOptions& options) {
  std::pair<absl::string_view, absl::string_view> parts = absl::StrSplit(text, '=');
  std::vector<absl::string_view> numbers = absl::StrSplit(parts.second, "..");
  DimBounds bounds{0, 0, 1};
  bool fits = numbers.size() >= 2 && numbers.size() <= 3;
  fits = fits && absl::SimpleAtoi(numbers[0], &bounds.min) &&
         absl::SimpleAtoi(numbers[1], &bounds.max) &&
         (numbers.size() == 2 || absl::SimpleAtoi(numbers[2], &bounds.multiple));
  if (!fits) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--dim, got '", text, "', expected NAME=LEAST..MOST or NAME=LEAST..MOST..STEP"));
  }
  options.dims[std::string(parts.first)] = bounds;
  return absl::OkStatus();
}

absl::StatusOr<Options> ParseOptions(const std::vector<std::string>& arguments) {
  if (arguments.size() < 2) return absl::InvalidArgumentError("expected MODEL FOLDER [--flag]...");
  Options options{arguments[0], arguments[1], {}, {}};
  for (size_t i = 2; i < arguments.size(); ++i) {
    absl::string_view argument = arguments[i];
    if (absl::ConsumePrefix(&argument, "--dim=")) {
      SVOD_RETURN_IF_ERROR(ParseDim(argument, options.model_options));
    } else if (absl::ConsumePrefix(&argument, "--carry=")) {
      std::pair<std::string, std::string> names = absl::StrSplit(argument, '=');
      options.carried[names.second] = names.first;
    } else {
      return absl::InvalidArgumentError(absl::StrCat("got '", argument, "', expected a flag"));
    }
  }
  return options;
}

OnnxTensor FromTensor(std::string name, Tensor tensor) {
  auto owner = std::make_shared<Tensor>(std::move(tensor));
  return {std::move(name), {owner->dtype(), owner->shape(), owner->bytes(), owner}};
}

// The arrays of a step whose files begin with `kind`, by name.
absl::StatusOr<std::map<std::string, Tensor>> ReadStep(const fs::path& folder,
                                                       absl::string_view kind) {
  std::map<std::string, Tensor> arrays;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    std::string stem = entry.path().stem().string();
    if (!absl::StartsWith(stem, kind)) continue;
    SVOD_ASSIGN_OR_RETURN(arrays[stem.substr(kind.size())], ReadNpy(entry.path().string()));
  }
  return arrays;
}

absl::Status CompareOutput(const OnnxTensor& got, const Tensor& expected) {
  SVOD_ASSIGN_OR_RETURN(Tensor actual, Tensor::Create(got.tensor.dtype, got.tensor.shape));
  std::memcpy(actual.bytes().data(), got.tensor.bytes.data(), got.tensor.bytes.size());
  return Annotate(CompareTensors(actual, expected, kTolerance), absl::StrCat("output ", got.name));
}

absl::StatusOr<double> FastestMs(OnnxPlan& plan, const ExecuteOptions& execute) {
  double fastest = 1e9;
  for (int i = 0; i < 10; ++i) {
    auto start = std::chrono::steady_clock::now();
    SVOD_RETURN_IF_ERROR(Execute(plan.plan, execute));
    std::chrono::duration<double, std::milli> elapsed = std::chrono::steady_clock::now() - start;
    fastest = std::min(fastest, elapsed.count());
  }
  return fastest;
}

absl::Status Replay(const Options& options) {
  SVOD_ASSIGN_OR_RETURN(auto cache, KernelCache::Default());
  KernelProvider provider = [&](const UOp* sink) { return cache->GetOrCompile(sink); };
  SVOD_ASSIGN_OR_RETURN(std::unique_ptr<OnnxModel> model,
                        OnnxModel::Load(options.model, provider, options.model_options));
  ExecuteOptions serial;
  serial.serial = true;
  std::set<const OnnxPlan*> plans;
  std::vector<OnnxTensor> outputs;
  OnnxPlan* last = nullptr;
  int step = 0;
  for (fs::path folder; fs::exists(folder = fs::path(options.folder) / absl::StrCat(step));
       ++step) {
    SVOD_ASSIGN_OR_RETURN(auto given, ReadStep(folder, "in_"));
    SVOD_ASSIGN_OR_RETURN(auto expected, ReadStep(folder, "out_"));
    std::vector<OnnxTensor> inputs;
    for (auto& [name, tensor] : given) {
      auto carried = options.carried.find(name);
      if (step == 0 || carried == options.carried.end()) {
        inputs.push_back(FromTensor(name, tensor));
        continue;
      }
      for (const OnnxTensor& output : outputs) {
        if (output.name == carried->second) inputs.push_back({name, output.tensor});
      }
    }
    std::string where = absl::StrCat("step ", step);
    absl::StatusOr<OnnxPlan*> plan = model->Prepare(inputs);
    if (!plan.ok()) return Annotate(plan.status(), where);
    plans.insert(*plan);
    SVOD_RETURN_IF_ERROR(Annotate(model->Bind(**plan, inputs), where));
    SVOD_RETURN_IF_ERROR(Annotate(Execute((*plan)->plan, serial), where));
    SVOD_ASSIGN_OR_RETURN(outputs, OnnxModel::CopyOutputs(**plan));
    if (outputs.size() != expected.size() || expected.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat(where, ": outputs, got ", outputs.size(), ", expected ", expected.size()));
    }
    for (const OnnxTensor& output : outputs) {
      SVOD_RETURN_IF_ERROR(Annotate(CompareOutput(output, expected[output.name]), where));
    }
    last = *plan;
  }
  if (step == 0) return absl::NotFoundError(absl::StrCat(options.folder, ": has no step 0"));
  SVOD_ASSIGN_OR_RETURN(double fastest, FastestMs(*last, serial));
  std::printf("%d steps, %zu plans, %.4f ms\n", step, plans.size(), fastest);
  return absl::OkStatus();
}

int Main(const std::vector<std::string>& arguments) {
  absl::StatusOr<Options> options = ParseOptions(arguments);
  absl::Status status = options.ok() ? Replay(*options) : options.status();
  if (!status.ok()) {
    std::fprintf(stderr, "svod_onnx_replay: %s\n", std::string(status.message()).c_str());
  }
  return !options.ok() ? 2 : status.ok() ? 0 : 1;
}

}  // namespace
}  // namespace svod

int main(int argc, char** argv) { return svod::Main({argv + 1, argv + argc}); }
