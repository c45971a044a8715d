// The page docs/onnx.md, whose list of operators follows the table.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tools/onnx/onnx_operators.h"

namespace svod {
namespace {

constexpr absl::string_view kIntroduction = R"(# ONNX models

<!-- Written by svod_onnx_test from tools/onnx/onnx_docs.cc and the operator table. -->

Svod runs ONNX models. The importer is a library of its own, `svod::onnx` in `tools/onnx/`, so that
the core needs no protobuf; where libonnx-dev, libprotobuf-dev or protobuf-compiler is missing, all
but this is built. It turns a model into a tensor graph by a table of small functions, one an
operator, and leaves the rest to the [scheduler](scheduling.md): it has no kernels of its own.

```
svod-jit info model.onnx
svod-jit run model.onnx --input=@x.npy --output=@y.npy
svod-jit bench model.onnx --dim=N=8
svod-jit plan model.onnx --dim=N=1..64
```

Inputs and outputs are in the model's order, or by name as `--input=NAME=@x.npy`. `bench` makes up
inputs that are not given: floats at random, ones elsewhere. `info` says what is not supported, and
where.

The network that [an example](../examples/README.md) trains is exported and run in this way, with
any number of pictures.

```cpp
#include "tools/onnx/onnx_model.h"

auto cache = svod::KernelCache::Default();
auto model = svod::OnnxModel::Load("model.onnx", [&](const svod::UOp* sink) {
  return (*cache)->GetOrCompile(sink);
});
svod::ConstantTensor x{svod::Scalar::kF32, {1, 784}, bytes, owner};
auto outputs = (*model)->Run({{"", x}});   // the first run of a shape prepares it
```

## Shapes

A dimension that has a name in the model, or none (then it is called INPUT_AXIS, such as `x_0`), is
symbolic. `--dim=N=1..64`, or `OnnxModelOptions::dims`, gives it bounds: one plan then serves all
sizes in them. `--dim=H=32..640..32` allows multiples of 32 alone, which models want that halve an
image and double it again. `--dim=N=8` makes it a constant. Without any of these it has the size of
the inputs that come, and other sizes get a plan of their own.

Shapes that a model computes, by Shape, Gather, Concat and any other operators, are worked out from
the tensor graph when the model is loaded, with symbolic dimensions in them. Where a shape depends on
the values of an input, as in Reshape to a shape that is given at run time, a plan is made for those
values, and another for others.

## Data

Data types are those of Svod: bool, integers of 8 to 64 bits, f16, bf16, f32, f64; no strings, no
complex numbers, no sequences, maps and optional values. Tensors in the file or in files beside it
are used where they lie, without a copy, if they are aligned. Sparse tensors, with either layout of
indices, are filled up with zeros when the model is loaded. External data must lie below the
model's folder: absolute paths, `..`, links that lead out and ranges beyond the file are refused.

Arithmetic on constants alone is run once, when a plan is made; so are the transforms of weights of
convolutions that `--winograd_error`, or `PrepareOptions::schedule`, lets take fewer products.

Functions of the model are expanded, If on a known condition is its branch and on another one a
choice between both, Loop and Scan are unrolled. A Loop that data ends before its trip count works
out all iterations, of which those behind the end change nothing. Recurrent networks are unrolled as
well: over a symbolic number of steps as far as its bound goes, where steps beyond the number change
nothing.

What cannot be imported is said for all nodes at once, each with its name, operator and opset.

## Operators

The versions are those of the operator's schema that are read: with an opset in between, the last one
before it counts. Opsets 7 to )";

constexpr absl::string_view kConformance = R"( are supported, and earlier ones as far as versions
say.

`tests/onnx/excluded.txt` has how many of ONNX's conformance tests pass, and the names of those that
do not, with the reason. `svod_onnx_conformance` runs them.

`tools/compare_models` takes models that people use from npm (text detection, direction and
recognition, voice detection) and compares outputs and times with ONNX Runtime's: one plan of a text
model serves images of several sizes, and the voice detector's state is fed back for many steps.
`tools/test` runs it; where node, npm or the network are missing, it says that it was skipped.

)";

}  // namespace

std::string OnnxOperatorsPage() {
  std::string page = absl::StrCat(kIntroduction, kMaxOnnxOpset, kConformance);
  absl::string_view domain = "none";
  for (const OnnxOperator& op : OnnxOperators()) {
    if (op.domain != domain) {
      domain = op.domain;
      absl::StrAppend(&page, domain.empty() ? "" : absl::StrCat("\n### ", domain, "\n\n"),
                      "| operator | versions | limits |\n|---|---|---|\n");
    }
    absl::StrAppend(&page, "| ", op.name, " | ", absl::StrJoin(op.versions, ", "),
                    op.removed > 0 ? absl::StrCat(", until ", op.removed - 1) : "", " | ",
                    op.limits, " |\n");
  }
  return page;
}

}  // namespace svod
