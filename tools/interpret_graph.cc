#include "tools/interpret_graph.h"

#include <chrono>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "ir/evaluate.h"
#include "ir/evaluate_graph.h"
#include "ir/status_macros.h"
#include "tools/match_inputs.h"

namespace svod {
namespace {

bool WantsInput(const PlanTensor& parameter) { return parameter.access != Access::kOut; }

std::string TypeOf(const PlanTensor& tensor) { return TypeString(tensor.dtype, tensor.shape); }

}  // namespace

absl::StatusOr<std::vector<const PlanTensor*>> MatchInputs(absl::Span<const PlanTensor> parameters,
                                                           const std::vector<NamedTensor>& inputs) {
  std::vector<const PlanTensor*> wanted;
  for (const PlanTensor& parameter : parameters) {
    if (WantsInput(parameter)) wanted.push_back(&parameter);
  }
  std::vector<WantedInput> names;
  for (const PlanTensor* parameter : wanted) {
    names.push_back({std::string(parameter->name), TypeOf(*parameter)});
  }
  std::vector<std::string> given;
  for (const NamedTensor& input : inputs) given.push_back(input.name);
  SVOD_ASSIGN_OR_RETURN(std::vector<size_t> positions, MatchInputNames(names, given));
  std::vector<const PlanTensor*> matched;
  for (size_t position : positions) matched.push_back(wanted[position]);
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Tensor& tensor = inputs[i].tensor;
    const PlanTensor& parameter = *matched[i];
    bool same_dtype = tensor.dtype() == parameter.dtype ||
                      (tensor.dtype() == Scalar::kI64 && parameter.dtype == Scalar::kIndex);
    if (!same_dtype || tensor.shape() != parameter.shape) {
      return absl::InvalidArgumentError(absl::StrCat("input ", parameter.name, ": got ",
                                                     TypeString(tensor.dtype(), tensor.shape()),
                                                     ", expected ", TypeOf(parameter)));
    }
  }
  return matched;
}

namespace {

// The graph's parameters by slot, of the shapes that they have for these variables.
absl::StatusOr<std::vector<PlanTensor>> ParametersOf(const Function& graph,
                                                     const RunRequest& request) {
  SVOD_ASSIGN_OR_RETURN(std::vector<const UOp*> params, ParamsOf(graph.root));
  std::vector<PlanTensor> parameters;
  for (const UOp* param : params) {
    const auto& argument = param->arg<ParamArgument>();
    PlanTensor parameter;
    parameter.name =
        argument.name.empty() ? absl::StrCat("p", argument.slot) : std::string(argument.name);
    parameter.dtype = param->dtype();
    parameter.access = argument.access;
    for (const UOp* dimension : param->sources()) {
      SVOD_ASSIGN_OR_RETURN(int64_t size, EvaluateIndex(dimension, request.variables));
      parameter.shape.push_back(size);
    }
    parameters.push_back(std::move(parameter));
  }
  return parameters;
}

std::string ResultName(const Function& graph, const std::vector<PlanTensor>& parameters, int i) {
  const UOp* result = graph.root->source(i);
  const UOp* buffer = BaseBuffer(result);
  if (buffer != nullptr && buffer->op() == Op::kParam) {
    return parameters[static_cast<size_t>(buffer->arg<ParamArgument>().slot)].name;
  }
  auto note = graph.notes.find(result);
  bool is_named = note != graph.notes.end() && !note->second.name.empty();
  return is_named ? note->second.name : absl::StrCat("out", i);
}

// `index` is i64 to the outside.
absl::StatusOr<Tensor> ToTensor(const TensorValue& value) {
  DType dtype = value.dtype == Scalar::kIndex ? DType(Scalar::kI64) : value.dtype;
  SVOD_ASSIGN_OR_RETURN(Tensor tensor, Tensor::Create(dtype, value.shape));
  if (!value.bytes.empty()) {
    std::memcpy(tensor.bytes().data(), value.bytes.data(), value.bytes.size());
  }
  return tensor;
}

}  // namespace

absl::StatusOr<RunResult> InterpretTensorGraph(const Function& graph, const RunRequest& request) {
  SVOD_ASSIGN_OR_RETURN(std::vector<PlanTensor> parameters, ParametersOf(graph, request));
  SVOD_ASSIGN_OR_RETURN(std::vector<const PlanTensor*> matched,
                        MatchInputs(parameters, request.inputs));
  std::vector<TensorValue> values;
  for (const PlanTensor& parameter : parameters) {
    TensorValue value{parameter.dtype, parameter.shape, {}};
    // Create refuses shapes that are negative or too large.
    SVOD_ASSIGN_OR_RETURN(Tensor zeros, Tensor::Create(parameter.dtype, parameter.shape));
    value.bytes.assign(zeros.bytes().begin(), zeros.bytes().end());
    values.push_back(std::move(value));
  }
  for (size_t i = 0; i < matched.size(); ++i) {
    absl::Span<const std::byte> bytes = request.inputs[i].tensor.bytes();
    values[static_cast<size_t>(matched[i] - parameters.data())].bytes.assign(bytes.begin(),
                                                                             bytes.end());
  }
  EvaluateGraphOptions options;
  options.variables = request.variables;
  RunResult result;
  std::vector<TensorValue> results;
  for (int i = 0; i < request.repeat; ++i) {
    auto start = std::chrono::steady_clock::now();
    SVOD_ASSIGN_OR_RETURN(results, EvaluateGraph(graph, values, options));
    auto elapsed = std::chrono::steady_clock::now() - start;
    result.execute_ns.push_back(
        std::chrono::duration_cast<std::chrono::nanoseconds>(elapsed).count());
  }
  for (size_t i = 0; i < results.size(); ++i) {
    SVOD_ASSIGN_OR_RETURN(Tensor tensor, ToTensor(results[i]));
    result.outputs.push_back({ResultName(graph, parameters, static_cast<int>(i)), tensor});
  }
  return result;
}

}  // namespace svod
