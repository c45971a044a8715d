// svod_onnx_conformance DATA EXCLUDED [FILTER]: runs ONNX's own conformance models and compares
// their outputs with the tolerance of ONNX's backend runner (rtol 1e-3, atol 1e-7).
//
// DATA holds sets of tests, SET/NAME/model.onnx with test_data_set_*/{input,output}_*.pb. EXCLUDED
// lists those that are not expected to pass, "SET/NAME: reason" a line, and how many pass of each
// set, "SET: PASSED of ALL". The program fails when a test that is not listed fails, a listed one
// passes or does not exist, or the numbers are others. With FILTER it runs the tests whose names
// contain it and prints each; with --write it writes EXCLUDED anew, keeping reasons that it has.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "ir/evaluate_tensor.h"
#include "ir/status_macros.h"
#include "jit/kernel_cache.h"
#include "onnx.pb.h"
#include "tools/onnx/model_file.h"
#include "tools/onnx/onnx_model.h"

namespace svod {
namespace {

namespace fs = std::filesystem;

constexpr double kRelative = 1e-3, kAbsolute = 1e-7;

absl::StatusOr<ConstantTensor> ReadTensorFile(const fs::path& path) {
  SVOD_ASSIGN_OR_RETURN(std::shared_ptr<const MappedFile> file, MappedFile::Open(path.string()));
  auto proto = std::make_shared<onnx::TensorProto>();
  if (!proto->ParseFromArray(file->bytes().data(), static_cast<int>(file->bytes().size()))) {
    return absl::UnimplementedError("test data is no tensor");
  }
  TensorReader reader(proto, path.parent_path().string());
  return reader.Read(*proto);
}

// input_0.pb, input_1.pb, ...
absl::StatusOr<std::vector<ConstantTensor>> ReadTensors(const fs::path& folder,
                                                        absl::string_view kind) {
  std::vector<ConstantTensor> tensors;
  while (true) {
    fs::path path = folder / absl::StrCat(kind, "_", tensors.size(), ".pb");
    if (!fs::exists(path)) return tensors;
    absl::StatusOr<ConstantTensor> tensor = ReadTensorFile(path);
    SVOD_RETURN_IF_ERROR(Annotate(tensor.status(), absl::StrCat(kind, "_", tensors.size())));
    tensors.push_back(*std::move(tensor));
  }
}

double NumberAt(const ConstantTensor& tensor, int64_t i) {
  uint64_t bits = ReadElement(tensor.bytes.data(), tensor.dtype, i);
  return tensor.dtype.is_float() ? BitsToDouble(tensor.dtype.scalar, bits)
                                 : static_cast<double>(bits);
}

absl::Status Compare(const ConstantTensor& got, const ConstantTensor& expected) {
  auto type = [](const ConstantTensor& tensor) {
    return absl::StrCat(ToString(tensor.dtype), "[", absl::StrJoin(tensor.shape, ","), "]");
  };
  if (got.dtype != expected.dtype || got.shape != expected.shape) {
    return absl::InvalidArgumentError(
        absl::StrCat("type, got ", type(got), ", expected ", type(expected)));
  }
  int64_t count = CountElements(got.shape), num_wrong = 0;
  std::string first;
  for (int64_t i = 0; i < count; ++i) {
    uint64_t a_bits = ReadElement(got.bytes.data(), got.dtype, i);
    uint64_t b_bits = ReadElement(expected.bytes.data(), expected.dtype, i);
    if (a_bits == b_bits) continue;
    double a = NumberAt(got, i), b = NumberAt(expected, i);
    bool close = got.dtype.is_float() && (a == b || (std::isnan(a) && std::isnan(b)) ||
                                          std::fabs(a - b) <= kAbsolute + kRelative * std::fabs(b));
    if (close) continue;
    if (num_wrong++ == 0) first = absl::StrCat("element ", i, ", got ", a, ", expected ", b);
  }
  if (num_wrong == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(first, " (", num_wrong, " of ", count, " elements differ)"));
}

// The data has bf16 as u16, as NumPy does; the model says what is meant.
void ReadAsDeclared(const google::protobuf::RepeatedPtrField<onnx::ValueInfoProto>& infos,
                    std::vector<ConstantTensor>& tensors) {
  for (size_t i = 0; i < tensors.size() && i < static_cast<size_t>(infos.size()); ++i) {
    int declared = infos.Get(static_cast<int>(i)).type().tensor_type().elem_type();
    bool is_bf16 = declared == onnx::TensorProto::BFLOAT16;
    if (is_bf16 && tensors[i].dtype == Scalar::kU16) tensors[i].dtype = Scalar::kBF16;
  }
}

// Sequences, optional values and strings are out of scope.
absl::Status CheckTensors(const google::protobuf::RepeatedPtrField<onnx::ValueInfoProto>& infos) {
  for (const onnx::ValueInfoProto& info : infos) {
    if (info.type().has_sequence_type()) return absl::UnimplementedError("sequences");
    if (info.type().has_optional_type()) return absl::UnimplementedError("optional values");
    if (info.type().tensor_type().elem_type() == onnx::TensorProto::STRING) {
      return absl::UnimplementedError("strings");
    }
  }
  return absl::OkStatus();
}

absl::Status RunTest(const fs::path& folder, const KernelProvider& provider) {
  SVOD_ASSIGN_OR_RETURN(std::unique_ptr<OnnxModel> model,
                        OnnxModel::Load((folder / "model.onnx").string(), provider));
  const onnx::GraphProto& graph = model->proto().graph();
  SVOD_RETURN_IF_ERROR(CheckTensors(graph.input()));
  SVOD_RETURN_IF_ERROR(CheckTensors(graph.output()));
  ExecuteOptions serial;
  serial.serial = true;
  int num_sets = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (!absl::StartsWith(entry.path().filename().string(), "test_data_set_")) continue;
    ++num_sets;
    SVOD_ASSIGN_OR_RETURN(std::vector<ConstantTensor> given, ReadTensors(entry.path(), "input"));
    SVOD_ASSIGN_OR_RETURN(std::vector<ConstantTensor> expected,
                          ReadTensors(entry.path(), "output"));
    ReadAsDeclared(graph.input(), given);
    ReadAsDeclared(graph.output(), expected);
    std::vector<OnnxTensor> inputs;
    for (const ConstantTensor& tensor : given) inputs.push_back({"", tensor});
    SVOD_ASSIGN_OR_RETURN(std::vector<OnnxTensor> outputs, model->Run(inputs, serial));
    if (outputs.size() != expected.size()) {
      return absl::InvalidArgumentError(
          absl::StrCat("outputs, got ", outputs.size(), ", expected ", expected.size()));
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      SVOD_RETURN_IF_ERROR(Annotate(Compare(outputs[i].tensor, expected[i]),
                                    absl::StrCat("output ", outputs[i].name)));
    }
  }
  return num_sets > 0 ? absl::OkStatus() : absl::NotFoundError("no test data");
}

struct Expectations {
  std::map<std::string, std::string> excluded;  // by SET/NAME
  std::map<std::string, std::string> counts;    // by SET, "PASSED of ALL"
};

Expectations ReadExpectations(const std::string& path) {
  Expectations expectations;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::pair<std::string, std::string> parts = absl::StrSplit(line, absl::MaxSplits(": ", 1));
    bool is_test = absl::StrContains(parts.first, '/');
    (is_test ? expectations.excluded : expectations.counts)[parts.first] = parts.second;
  }
  return expectations;
}

std::string FirstLine(const absl::Status& status) {
  return std::string(absl::StrSplit(status.message(), '\n').begin()->substr(0, 300));
}

std::vector<std::string> FindTests(const fs::path& data) {
  std::vector<std::string> tests;
  for (const fs::directory_entry& set : fs::directory_iterator(data)) {
    if (!set.is_directory()) continue;
    for (const fs::directory_entry& test : fs::directory_iterator(set.path())) {
      if (!fs::exists(test.path() / "model.onnx")) continue;  // "real" models come from elsewhere
      tests.push_back(
          absl::StrCat(set.path().filename().string(), "/", test.path().filename().string()));
    }
  }
  std::sort(tests.begin(), tests.end());
  return tests;
}

std::vector<absl::Status> RunAll(const fs::path& data, const std::vector<std::string>& tests) {
  // The cache is shared: equal kernels of different tests are compiled once.
  auto cache = KernelCache::Create();
  std::vector<absl::Status> results(tests.size());
  if (!cache.ok()) {
    results.assign(tests.size(), cache.status());
    return results;
  }
  KernelProvider provider = [&](const UOp* sink) { return (*cache)->GetOrCompile(sink); };
  std::atomic<size_t> next{0};
  auto work = [&] {
    for (size_t i = next++; i < tests.size(); i = next++) {
      results[i] = RunTest(data / tests[i], provider);
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < std::max(1u, std::thread::hardware_concurrency()); ++i) {
    threads.emplace_back(work);
  }
  for (std::thread& thread : threads) thread.join();
  return results;
}

int Main(std::vector<std::string> arguments) {
  bool write = std::erase(arguments, "--write") > 0;
  if (arguments.size() < 2 || arguments.size() > 3) {
    std::fprintf(stderr, "usage: svod_onnx_conformance [--write] DATA EXCLUDED [FILTER]\n");
    return 2;
  }
  if (!fs::is_directory(arguments[0])) {
    std::printf("skipped: no conformance data in %s (libonnx-testdata)\n", arguments[0].c_str());
    return 77;
  }
  bool is_filtered = arguments.size() == 3;
  std::vector<std::string> tests = FindTests(arguments[0]);
  if (is_filtered) {
    std::erase_if(tests, [&](const std::string& t) { return !absl::StrContains(t, arguments[2]); });
  }
  std::vector<absl::Status> results = RunAll(arguments[0], tests);
  Expectations expected = ReadExpectations(arguments[1]);
  std::map<std::string, std::pair<int, int>> counts;
  int num_unexpected = 0;
  std::ostringstream list;
  for (size_t i = 0; i < tests.size(); ++i) {
    auto& [passed, all] = counts[tests[i].substr(0, tests[i].find('/'))];
    ++all;
    passed += results[i].ok() ? 1 : 0;
    auto known = expected.excluded.find(tests[i]);
    bool is_excluded = known != expected.excluded.end();
    if (!results[i].ok()) {
      list << tests[i] << ": " << (is_excluded ? known->second : FirstLine(results[i])) << "\n";
    }
    if (is_filtered || (is_excluded == results[i].ok())) {
      std::printf("%s %s%s%s\n", results[i].ok() ? "passed" : "failed", tests[i].c_str(),
                  results[i].ok() ? "" : ": ", std::string(results[i].message()).c_str());
    }
    num_unexpected += is_excluded == results[i].ok() ? 1 : 0;
    if (is_excluded) expected.excluded.erase(known);
  }
  std::ostringstream sums;
  for (const auto& [set, count] : counts) {
    std::string sum = absl::StrCat(count.first, " of ", count.second);
    std::printf("%s: %s passed\n", set.c_str(), sum.c_str());
    sums << set << ": " << sum << "\n";
    if (!is_filtered && expected.counts[set] != sum) {
      std::printf("count of %s, got %s, expected %s\n", set.c_str(), sum.c_str(),
                  expected.counts[set].c_str());
      ++num_unexpected;
    }
  }
  if (is_filtered) return num_unexpected == 0 ? 0 : 1;
  for (const auto& [name, reason] : expected.excluded) {
    std::printf("excluded, but there is no such test: %s\n", name.c_str());
    ++num_unexpected;
  }
  if (write) {
    std::ofstream(arguments[1]) << "# How many of ONNX's conformance tests pass, and which do not "
                                   "and why.\n# Written by svod_onnx_conformance --write.\n"
                                << sums.str() << "\n"
                                << list.str();
    return 0;
  }
  std::printf("%d unexpected\n", num_unexpected);
  return num_unexpected == 0 ? 0 : 1;
}

}  // namespace
}  // namespace svod

int main(int argc, char** argv) { return svod::Main({argv + 1, argv + argc}); }
