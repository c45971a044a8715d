// oneDNN: products, elementwise chains, sums, softmax, layernorm, convolutions, attention.
#include <dlfcn.h>

#include <chrono>
#include <dnnl.hpp>
#include <memory>
#include <thread>
#include <unordered_map>

#include "absl/strings/str_cat.h"
#include "tools/bench/check.h"
#include "tools/bench/peers.h"

namespace svod::bench {
namespace {

using Arguments = std::unordered_map<int, dnnl::memory>;
using Descriptor = dnnl::memory::desc;
using Dims = dnnl::memory::dims;
using Tag = dnnl::memory::format_tag;

void WaitForSpinning() { std::this_thread::sleep_for(std::chrono::milliseconds(10)); }

dnnl::memory::data_type TypeOf(DType dtype) {
  if (dtype.scalar == Scalar::kBF16) return dnnl::memory::data_type::bf16;
  if (dtype.scalar == Scalar::kI8) return dnnl::memory::data_type::s8;
  if (dtype.scalar == Scalar::kI32) return dnnl::memory::data_type::s32;
  return dnnl::memory::data_type::f32;
}

Tag RowMajor(size_t rank) {
  constexpr Tag kTags[] = {Tag::a, Tag::a, Tag::ab, Tag::abc, Tag::abcd};
  return kTags[rank];
}

// Builds the contenders of one workload.
class Peers {
 public:
  Peers(const Workload& workload, const std::vector<Buffer>& inputs, int threads,
        std::vector<Contender>* contenders)
      : workload_(workload), threads_(threads), contenders_(contenders) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Operand& operand = workload.operands[i];
      Descriptor descriptor(operand.dims, TypeOf(operand.dtype), RowMajor(operand.dims.size()));
      descriptors_.push_back(descriptor);
      operands_.emplace_back(descriptor, engine_, inputs[i].data());
    }
  }

  void Add() {
    switch (workload_.kind) {
      case WorkKind::kMatmul:
        Matmul("onednn", false);
        Matmul("onednn-packed", true);
        break;
      case WorkKind::kRelu:
        Relu();
        break;
      case WorkKind::kGelu:
        Eltwise(dnnl::algorithm::eltwise_gelu_erf);
        break;
      case WorkKind::kExp:
        Eltwise(dnnl::algorithm::eltwise_exp);
        break;
      case WorkKind::kSum:
        Sum();
        break;
      case WorkKind::kSoftmax:
        Softmax();
        break;
      case WorkKind::kLayerNorm:
        LayerNorm();
        break;
      case WorkKind::kConvolution:
        Convolution("onednn", false, dnnl::algorithm::convolution_direct);
        Convolution("onednn-packed", true, dnnl::algorithm::convolution_direct);
        Convolution("onednn-winograd-packed", true, dnnl::algorithm::convolution_winograd);
        break;
      case WorkKind::kAttention:
        Attention();
        break;
      case WorkKind::kChain:
      case WorkKind::kOther:
        break;
    }
  }

 private:
  struct Step {
    dnnl::primitive primitive;
    Arguments arguments;
  };

  // In the same kind of memory as Svod's own, which the contenders made from now on keep.
  dnnl::memory MakeMemory(const Descriptor& descriptor) {
    Buffer buffer = ValueOrDie(Buffer::Create(static_cast<int64_t>(descriptor.get_size())));
    CheckOk(buffer.Allocate());
    buffers_.push_back(buffer);
    return {descriptor, engine_, buffer.data()};
  }

  void Run(const dnnl::primitive& primitive, const Arguments& arguments) {
    primitive.execute(stream_, arguments);
    stream_.wait();
  }

  // `after` is done once, when samples are taken: it brings the result into `result`.
  void Push(absl::string_view peer, std::vector<Step> steps, const dnnl::memory& result,
            DType dtype = Scalar::kF32, std::function<void()> after = {}) {
    Contender contender;
    contender.peer = std::string(peer);
    contender.run = [steps, stream = stream_, kept = buffers_]() mutable {
      for (const Step& step : steps) step.primitive.execute(stream, step.arguments);
      stream.wait();
    };
    const auto size = static_cast<int64_t>(result.get_desc().get_size()) / dtype.size_bytes();
    contender.samples = [result, size, dtype, after] {
      if (after) after();
      return Samples(result.get_data_handle(), dtype, size);
    };
    if (threads_ > 1) contender.quiet = WaitForSpinning;
    contenders_->push_back(std::move(contender));
  }

  void Matmul(absl::string_view peer, bool is_packed) {
    const Operand &x = workload_.operands[0], &y = workload_.operands[1];
    const bool is_i8 = x.dtype.scalar == Scalar::kI8;
    const DType result = is_i8 ? DType(Scalar::kI32) : x.dtype;
    Dims dims = x.dims;
    dims.back() = y.dims.back();
    const Descriptor z(dims, TypeOf(result), RowMajor(dims.size()));
    const Descriptor any(y.dims, TypeOf(y.dtype), Tag::any);
    dnnl::matmul::primitive_desc plan({descriptors_[0], is_packed ? any : descriptors_[1], z},
                                      engine_);
    dnnl::memory weights = operands_[1];
    if (is_packed) {
      if (plan.weights_desc() == descriptors_[1]) return;
      weights = MakeMemory(plan.weights_desc());
      dnnl::reorder(operands_[1], weights).execute(stream_, operands_[1], weights);
      stream_.wait();
    }
    dnnl::memory out = MakeMemory(z);
    Push(peer,
         {{dnnl::matmul(plan),
           {{DNNL_ARG_SRC, operands_[0]}, {DNNL_ARG_WEIGHTS, weights}, {DNNL_ARG_DST, out}}}},
         out, result);
  }

  void Relu() {
    dnnl::post_ops after;
    after.append_binary(dnnl::algorithm::binary_add, descriptors_[2]);
    after.append_eltwise(1, dnnl::algorithm::eltwise_relu, 0, 0);
    dnnl::primitive_attr attributes;
    attributes.set_post_ops(after);
    dnnl::binary::primitive_desc plan(
        {dnnl::algorithm::binary_mul, descriptors_[0], descriptors_[1], descriptors_[0]},
        attributes, engine_);
    dnnl::memory out = MakeMemory(descriptors_[0]);
    Push("onednn",
         {{dnnl::binary(plan),
           {{DNNL_ARG_SRC_0, operands_[0]},
            {DNNL_ARG_SRC_1, operands_[1]},
            {DNNL_ARG_DST, out},
            {DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1, operands_[2]}}}},
         out);
  }

  void Eltwise(dnnl::algorithm algorithm) {
    dnnl::eltwise_forward::primitive_desc plan(
        {dnnl::prop_kind::forward_inference, algorithm, descriptors_[0], 0, 0}, engine_);
    dnnl::memory out = MakeMemory(descriptors_[0]);
    Push("onednn",
         {{dnnl::eltwise_forward(plan), {{DNNL_ARG_SRC, operands_[0]}, {DNNL_ARG_DST, out}}}}, out);
  }

  void Sum() {
    const Descriptor one({1}, dnnl::memory::data_type::f32, Tag::a);
    dnnl::reduction::primitive_desc plan(
        {dnnl::algorithm::reduction_sum, descriptors_[0], one, 0, 0}, engine_);
    dnnl::memory out = MakeMemory(one);
    Push("onednn", {{dnnl::reduction(plan), {{DNNL_ARG_SRC, operands_[0]}, {DNNL_ARG_DST, out}}}},
         out);
  }

  void Softmax() {
    dnnl::softmax_forward::primitive_desc plan(
        {dnnl::prop_kind::forward_inference, descriptors_[0], 1}, engine_);
    dnnl::memory out = MakeMemory(descriptors_[0]);
    Push("onednn",
         {{dnnl::softmax_forward(plan), {{DNNL_ARG_SRC, operands_[0]}, {DNNL_ARG_DST, out}}}}, out);
  }

  void LayerNorm() {
    const auto flags = dnnl::normalization_flags::use_scale | dnnl::normalization_flags::use_shift;
    dnnl::layer_normalization_forward::primitive_desc plan(
        {dnnl::prop_kind::forward_inference, descriptors_[0], 1e-5f, flags}, engine_);
    dnnl::memory out = MakeMemory(descriptors_[0]);
    Push("onednn",
         {{dnnl::layer_normalization_forward(plan),
           {{DNNL_ARG_SRC, operands_[0]},
            {DNNL_ARG_SCALE, operands_[1]},
            {DNNL_ARG_SHIFT, operands_[2]},
            {DNNL_ARG_DST, out}}}},
         out);
  }

  // Weights are always in its own layout; is_packed: the others as well, converted beforehand.
  void Convolution(absl::string_view peer, bool is_packed, dnnl::algorithm algorithm) try {
    const Dims &x = workload_.operands[0].dims, &w = workload_.operands[1].dims;
    const int64_t groups = workload_.groups, s = workload_.stride, p = workload_.padding;
    const auto f32 = dnnl::memory::data_type::f32;
    const Dims w_dims =
        groups > 1 ? Dims{groups, w[0] / groups, w[1], w[2], w[3]} : Dims{w[0], w[1], w[2], w[3]};
    const int64_t size = (x[2] + 2 * p - w[2]) / s + 1;
    const Dims y_dims = {x[0], w[0], size, size};
    const Descriptor y(y_dims, f32, Tag::nchw);
    const Descriptor plain_w(w_dims, f32, groups > 1 ? Tag::goihw : Tag::oihw);
    dnnl::convolution_forward::primitive_desc plan(
        {dnnl::prop_kind::forward_inference, algorithm,
         is_packed ? Descriptor(x, f32, Tag::any) : descriptors_[0],
         Descriptor(w_dims, f32, Tag::any), is_packed ? Descriptor(y_dims, f32, Tag::any) : y,
         Dims{s, s}, Dims{p, p}, Dims{p, p}},
        engine_);
    dnnl::memory weights_in(plain_w, engine_, operands_[1].get_data_handle());
    dnnl::memory weights = MakeMemory(plan.weights_desc()), in = operands_[0], out = MakeMemory(y);
    dnnl::memory result = out;
    dnnl::reorder(weights_in, weights).execute(stream_, weights_in, weights);
    if (is_packed) {
      in = MakeMemory(plan.src_desc());
      out = MakeMemory(plan.dst_desc());
      dnnl::reorder(operands_[0], in).execute(stream_, operands_[0], in);
    }
    stream_.wait();
    std::function<void()> after;
    if (is_packed) {
      dnnl::reorder unpack(out, result);
      after = [unpack, out, result, stream = stream_]() mutable {
        unpack.execute(stream, out, result);
        stream.wait();
      };
    }
    Push(peer,
         {{dnnl::convolution_forward(plan),
           {{DNNL_ARG_SRC, in}, {DNNL_ARG_WEIGHTS, weights}, {DNNL_ARG_DST, out}}}},
         result, Scalar::kF32, after);
  } catch (const dnnl::error&) {
    // It has no such implementation for this shape or machine.
  }

  void Attention() {
    const Dims& q = workload_.operands[0].dims;
    const auto f32 = dnnl::memory::data_type::f32;
    const Descriptor transposed({q[0], q[2], q[1]}, f32, Tag::acb);
    const Descriptor scores({q[0], q[1], q[1]}, f32, Tag::abc);
    dnnl::primitive_attr attributes;
    attributes.set_output_scales(0, {0.125f});
    dnnl::matmul::primitive_desc first({descriptors_[0], transposed, scores}, attributes, engine_);
    dnnl::softmax_forward::primitive_desc middle({dnnl::prop_kind::forward_inference, scores, 2},
                                                 engine_);
    dnnl::matmul::primitive_desc last({scores, descriptors_[2], descriptors_[0]}, engine_);
    dnnl::memory keys(transposed, engine_, operands_[1].get_data_handle());
    dnnl::memory s = MakeMemory(scores), out = MakeMemory(descriptors_[0]);
    Push("onednn",
         {{dnnl::matmul(first),
           {{DNNL_ARG_SRC, operands_[0]}, {DNNL_ARG_WEIGHTS, keys}, {DNNL_ARG_DST, s}}},
          {dnnl::softmax_forward(middle), {{DNNL_ARG_SRC, s}, {DNNL_ARG_DST, s}}},
          {dnnl::matmul(last),
           {{DNNL_ARG_SRC, s}, {DNNL_ARG_WEIGHTS, operands_[2]}, {DNNL_ARG_DST, out}}}},
         out);
  }

  const Workload& workload_;
  int threads_;
  std::vector<Contender>* contenders_;
  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  std::vector<Buffer> buffers_;
  std::vector<Descriptor> descriptors_;
  std::vector<dnnl::memory> operands_;
};

}  // namespace

void AddOneDnnPeers(const Workload& workload, const std::vector<Buffer>& inputs, int threads,
                    std::vector<Contender>* contenders) {
  // The library brings its OpenMP along, whichever that is.
  if (void* function = dlsym(RTLD_DEFAULT, "omp_set_num_threads")) {
    reinterpret_cast<void (*)(int)>(function)(threads);
  }
  for (const Operand& operand : workload.operands) {
    const Scalar scalar = operand.dtype.scalar;
    if (scalar == Scalar::kF64 || scalar == Scalar::kF16) return;  // it has none on CPUs
  }
  try {
    Peers(workload, inputs, threads, contenders).Add();
  } catch (const dnnl::error& error) {
    std::fprintf(stderr, "svod-bench: onednn, %s: %s\n", workload.row.c_str(), error.message);
  }
}

std::string OneDnnVersion() {
  const dnnl_version_t* version = dnnl_version();
  return absl::StrCat("oneDNN ", version->major, ".", version->minor, ".", version->patch);
}

}  // namespace svod::bench
