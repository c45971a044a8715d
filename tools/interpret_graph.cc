#include "tools/interpret_graph.h"

#include <chrono>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ir/evaluate.h"
#include "ir/evaluate_graph.h"
#include "ir/status_macros.h"

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
  auto names = [&] {
    return absl::StrJoin(wanted, ", ", [](std::string* out, const PlanTensor* parameter) {
      absl::StrAppend(out, parameter->name, ": ", TypeOf(*parameter));
    });
  };
  std::vector<bool> given(wanted.size(), false);
  std::vector<const PlanTensor*> matched;
  for (const NamedTensor& input : inputs) {
    size_t i = 0;
    while (i < wanted.size() && (input.name.empty() ? given[i] : wanted[i]->name != input.name)) {
      ++i;
    }
    if (i == wanted.size()) {
      return absl::InvalidArgumentError(
          input.name.empty()
              ? absl::StrCat("inputs, got ", inputs.size(), ", expected ", wanted.size(), " (",
                             names(), ")")
              : absl::StrCat("input, got '", input.name, "', expected one of ", names()));
    }
    if (given[i]) {
      return absl::InvalidArgumentError(absl::StrCat("input ", input.name, " is given twice"));
    }
    given[i] = true;
    matched.push_back(wanted[i]);
  }
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (!given[i]) {
      return absl::InvalidArgumentError(absl::StrCat("input ", wanted[i]->name, ": ",
                                                     TypeOf(*wanted[i]), " is missing, expected (",
                                                     names(), ")"));
    }
  }
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
