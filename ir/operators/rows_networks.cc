// Rows of the operator table: products, convolutions, pooling, normalization, attention, resizing,
// random numbers.
#include "absl/strings/str_cat.h"
#include "ir/operators/attention.h"
#include "ir/operators/convolution.h"
#include "ir/operators/matmul.h"
#include "ir/operators/normalization.h"
#include "ir/operators/operator_rows.h"
#include "ir/operators/pooling.h"
#include "ir/operators/random.h"
#include "ir/operators/resize.h"

namespace svod {
namespace {

constexpr const char* kProducts = "Products and convolutions";
constexpr const char* kPooling = "Pooling";
constexpr const char* kNormalization = "Normalization";
constexpr const char* kAttention = "Attention";
constexpr const char* kResizing = "Resizing";
constexpr const char* kRandom = "Random numbers";
constexpr AttributeInfo kEpsilon = {"epsilon", AttributeKind::kFloat, "1e-05"};
constexpr AttributeInfo kStride = {"stride", AttributeKind::kInts, "1"};
constexpr AttributeInfo kPadding = {"padding", AttributeKind::kInts, "0"};
constexpr AttributeInfo kDilation = {"dilation", AttributeKind::kInts, "1"};
constexpr AttributeInfo kGroups = {"groups", AttributeKind::kInt, "1"};
constexpr AttributeInfo kDType = {"dtype", AttributeKind::kDType, ""};

std::vector<int64_t> Ints(const OperatorCall& call, absl::string_view name) {
  return call.Get<std::vector<int64_t>>(name);
}

void AddProducts(OperatorRows* rows) {
  rows->push_back({"matmul",
                   "x, y",
                   {{"transpose_x", AttributeKind::kBool, "false"},
                    {"transpose_y", AttributeKind::kBool, "false"},
                    kDType},
                   "z",
                   "x [..., M, K] (transposed [..., K, M]) or [K], y [..., K, N] (transposed [..., "
                   "N, K]) or [K], of one dtype; z [..., M, N], of it or of dtype",
                   "the matrix product; leading dimensions broadcast; f16 and bf16 are added in "
                   "f32, integers wrap in z's dtype",
                   kProducts,
                   [](TensorBuilder& builder, const OperatorCall& call) {
                     return One(
                         Matmul(builder, call.operand(0), call.operand(1),
                                {call.Get<bool>("transpose_x"), call.Get<bool>("transpose_y"),
                                 Optional<DType>(call, "dtype")}));
                   }});
  rows->push_back({"linear",
                   "x, weight, bias?",
                   {},
                   "y",
                   "x [..., K], weight [N, K], bias [N], of one dtype; y [..., N]",
                   "x times weight transposed, plus bias",
                   kProducts,
                   [](TensorBuilder& builder, const OperatorCall& call) {
                     return One(Linear(builder, call.operand(0), call.operand(1), call.operand(2)));
                   }});
  rows->push_back(
      {"conv",
       "x, weight, bias?",
       {kStride, kPadding, kDilation, kGroups, kDType},
       "y",
       "x [N, C, i...], weight [O, C / groups, k...], bias [O], 1 to 3 spatial dimensions; y [N, "
       "O, o...], o = floor((i + padding - dilation * (k - 1) - 1) / stride) + 1",
       "convolution, weights not mirrored; attributes have a number for each spatial dimension or "
       "one for all, padding also those before each and then those after",
       kProducts,
       [](TensorBuilder& builder, const OperatorCall& call) {
         return One(Convolution(builder, call.operand(0), call.operand(1), call.operand(2),
                                {Ints(call, "stride"),
                                 Ints(call, "padding"),
                                 Ints(call, "dilation"),
                                 call.Get<int64_t>("groups"),
                                 {},
                                 Optional<DType>(call, "dtype")}));
       }});
  rows->push_back(
      {"conv_transpose",
       "x, weight, bias?",
       {kStride,
        kPadding,
        kDilation,
        kGroups,
        {"output_padding", AttributeKind::kInts, "0"},
        kDType},
       "y",
       "x [N, C, i...], weight [C, O / groups, k...], bias [O]; y [N, O, o...], o = (i - 1) * "
       "stride - padding + dilation * (k - 1) + output_padding + 1",
       "the transpose of conv: its gradient by its input",
       kProducts,
       [](TensorBuilder& builder, const OperatorCall& call) {
         return One(
             TransposedConvolution(builder, call.operand(0), call.operand(1), call.operand(2),
                                   {Ints(call, "stride"), Ints(call, "padding"),
                                    Ints(call, "dilation"), call.Get<int64_t>("groups"),
                                    Ints(call, "output_padding"), Optional<DType>(call, "dtype")}));
       }});
}

PoolOptions PoolOptionsOf(const OperatorCall& call) {
  return {Ints(call, "kernel"),   Ints(call, "stride"),        Ints(call, "padding"),
          Ints(call, "dilation"), call.Get<bool>("ceil_mode"), call.Get<bool>("count_include_pad")};
}

void AddPooling(OperatorRows* rows) {
  const char* shapes =
      "x [N, C, i...], 1 to 3 spatial dimensions; y [N, C, o...], o as for conv, or rounded up "
      "with ceil_mode";
  AttributeInfo kernel = {"kernel", AttributeKind::kInts, nullptr};
  AttributeInfo stride = {"stride", AttributeKind::kInts, ""};
  AttributeInfo ceil_mode = {"ceil_mode", AttributeKind::kBool, "false"};
  rows->push_back({"max_pool",
                   "x",
                   {kernel, stride, kPadding, kDilation, ceil_mode},
                   "y",
                   shapes,
                   "the largest element of each window; stride is kernel by default; NaN if any is",
                   kPooling,
                   [](TensorBuilder& builder, const OperatorCall& call) {
                     return One(MaxPool(builder, call.operand(0), PoolOptionsOf(call)));
                   }});
  rows->push_back({"avg_pool",
                   "x",
                   {kernel,
                    stride,
                    kPadding,
                    kDilation,
                    ceil_mode,
                    {"count_include_pad", AttributeKind::kBool, "true"}},
                   "y",
                   shapes,
                   "the mean of each window, with padding as zeros or, without count_include_pad, "
                   "left out; integers give f64",
                   kPooling,
                   [](TensorBuilder& builder, const OperatorCall& call) {
                     return One(AveragePool(builder, call.operand(0), PoolOptionsOf(call)));
                   }});
  const char* global_shapes = "x [N, C, i...]; y [N, C, 1...]";
  rows->push_back({"global_max_pool",
                   "x",
                   {},
                   "y",
                   global_shapes,
                   "the largest element of each channel",
                   kPooling,
                   Unary<GlobalMaxPool>});
  rows->push_back({"global_avg_pool",
                   "x",
                   {},
                   "y",
                   global_shapes,
                   "the mean of each channel",
                   kPooling,
                   Unary<GlobalAveragePool>});
}

void AddNormalization(OperatorRows* rows) {
  AttributeInfo axis = {"axis", AttributeKind::kInt, "-1"};
  rows->push_back({"layer_norm",
                   "x, weight?, bias?",
                   {axis, kEpsilon},
                   "y",
                   "x of a float dtype; weight and bias of x's dimensions from axis on; y as x",
                   "(x - mean) / sqrt(variance + epsilon) * weight + bias over dimensions axis and "
                   "behind",
                   kNormalization,
                   [](TensorBuilder& builder, const OperatorCall& call) {
                     return One(LayerNorm(builder, call.operand(0), call.operand(1),
                                          call.operand(2), call.Get<int64_t>("axis"),
                                          call.Get<double>("epsilon")));
                   }});
  rows->push_back({"rms_norm",
                   "x, weight?",
                   {axis, kEpsilon},
                   "y",
                   "x of a float dtype; weight of x's dimensions from axis on; y as x",
                   "x / sqrt(mean(x^2) + epsilon) * weight over dimensions axis and behind",
                   kNormalization,
                   [](TensorBuilder& builder, const OperatorCall& call) {
                     return One(RmsNorm(builder, call.operand(0), call.operand(1),
                                        call.Get<int64_t>("axis"), call.Get<double>("epsilon")));
                   }});
  rows->push_back({"batch_norm",
                   "x, mean, variance, weight?, bias?",
                   {{"axis", AttributeKind::kInt, "1"}, kEpsilon},
                   "y",
                   "x of a float dtype; the others have x's dimension axis; y as x",
                   "(x - mean) / sqrt(variance + epsilon) * weight + bias, for inference",
                   kNormalization,
                   [](TensorBuilder& builder, const OperatorCall& call) {
                     return One(BatchNorm(builder, call.operand(0), call.operand(1),
                                          call.operand(2), call.operand(3), call.operand(4),
                                          call.Get<int64_t>("axis"), call.Get<double>("epsilon")));
                   }});
  rows->push_back({"group_norm",
                   "x, weight?, bias?",
                   {{"groups", AttributeKind::kInt, nullptr}, kEpsilon},
                   "y",
                   "x [N, C, ...] of a float dtype, C a multiple of groups; weight and bias [C]; y "
                   "as x",
                   "layer_norm of each group of channels",
                   kNormalization,
                   [](TensorBuilder& builder, const OperatorCall& call) {
                     return One(GroupNorm(builder, call.operand(0), call.operand(1),
                                          call.operand(2), call.Get<int64_t>("groups"),
                                          call.Get<double>("epsilon")));
                   }});
  rows->push_back({"instance_norm",
                   "x, weight?, bias?",
                   {kEpsilon},
                   "y",
                   "x [N, C, ...] of a float dtype; weight and bias [C]; y as x",
                   "layer_norm of each channel",
                   kNormalization,
                   [](TensorBuilder& builder, const OperatorCall& call) {
                     return One(InstanceNorm(builder, call.operand(0), call.operand(1),
                                             call.operand(2), call.Get<double>("epsilon")));
                   }});
}

OperatorResults BuildAttention(TensorBuilder& builder, const OperatorCall& call) {
  AttentionOptions options;
  options.mask = call.Get<const UOp*>("mask");
  options.causal = call.Get<bool>("causal");
  options.scale = Optional<double>(call, "scale");
  Shape offset = call.Get<Shape>("offset");
  if (offset.size() != 1) {
    builder.FailInvalid(absl::StrCat("offset, got ", offset.size(), " numbers, expected one"));
    return {};
  }
  options.offset = offset[0];
  return One(Attention(builder, call.operand(0), call.operand(1), call.operand(2), options));
}

void AddAttention(OperatorRows* rows) {
  rows->push_back(
      {"attention",
       "q, k, v",
       {{"mask", AttributeKind::kTensor, ""},
        {"causal", AttributeKind::kBool, "false"},
        {"offset", AttributeKind::kDims, "0"},
        {"scale", AttributeKind::kFloat, ""}},
       "y",
       "q [B, H, S, D], k [B, G, T, D], v [B, G, T, E] of one float dtype, H a multiple "
       "of G; mask broadcasts to [B, H, S, T]; y [B, H, S, E]",
       "softmax(q k^T * scale) v; scale is 1 / sqrt(D) by default; a bool mask is true "
       "where a key is seen, another is added; causal: query i sees keys up to i + "
       "offset",
       kAttention,
       BuildAttention});
  rows->push_back({"rotary_embedding",
                   "x, cosines, sines",
                   {{"interleaved", AttributeKind::kBool, "false"}},
                   "y",
                   "x [..., S, D] of a float dtype, D even, cosines and sines [S, D / 2]; y as x",
                   "pairs of features (d, d + D / 2), or (2d, 2d + 1) if interleaved, turned by "
                   "their angle",
                   kAttention,
                   [](TensorBuilder& builder, const OperatorCall& call) {
                     return One(RotaryEmbedding(builder, call.operand(0), call.operand(1),
                                                call.operand(2), call.Get<bool>("interleaved")));
                   }});
}

OperatorResults BuildResize(TensorBuilder& builder, const OperatorCall& call) {
  auto mode = Choice<ResizeMode>(
      builder, call, "mode", {{"nearest", ResizeMode::kNearest}, {"linear", ResizeMode::kLinear}});
  auto alignment = Choice<ResizeAlignment>(builder, call, "alignment",
                                           {{"half_pixel", ResizeAlignment::kHalfPixel},
                                            {"align_corners", ResizeAlignment::kAlignCorners},
                                            {"asymmetric", ResizeAlignment::kAsymmetric}});
  if (!mode.has_value() || !alignment.has_value()) return {};
  return One(Resize(builder, call.operand(0), Ints(call, "sizes"), *mode, *alignment));
}

void AddResizing(OperatorRows* rows) {
  rows->push_back({"resize",
                   "x",
                   {{"sizes", AttributeKind::kInts, nullptr},
                    {"mode", AttributeKind::kWord, "nearest"},
                    {"alignment", AttributeKind::kWord, "half_pixel"}},
                   "y",
                   "x [N, C, i...], 1 to 3 constant spatial dimensions; y [N, C, sizes...]",
                   "x resized to the nearest element or linearly between two; element i of n made "
                   "m lies at (i + 1/2) * n / m - 1/2 (half_pixel), i * (n - 1) / (m - 1) "
                   "(align_corners) or i * n / m (asymmetric)",
                   kResizing,
                   BuildResize});
}

void AddRandom(OperatorRows* rows) {
  AttributeInfo shape = {"shape", AttributeKind::kDims, nullptr};
  AttributeInfo f32 = {"dtype", AttributeKind::kDType, "f32"};
  rows->push_back({"random_bits",
                   "key",
                   {shape, {"dtype", AttributeKind::kDType, "u32"}},
                   "y",
                   "key u32[2]; y an unsigned integer of the shape",
                   "random bits: Threefry-2x32-20 of the key and each element's place",
                   kRandom,
                   [](TensorBuilder& builder, const OperatorCall& call) {
                     return One(RandomBits(builder, call.operand(0), call.Get<Shape>("shape"),
                                           call.Get<DType>("dtype")));
                   }});
  rows->push_back(
      {"random_uniform",
       "key",
       {shape, {"low", AttributeKind::kFloat, "0"}, {"high", AttributeKind::kFloat, "1"}, f32},
       "y",
       "key u32[2]; y a float of the shape",
       "random numbers in [low, high), all equally likely",
       kRandom,
       [](TensorBuilder& builder, const OperatorCall& call) {
         return One(RandomUniform(builder, call.operand(0), call.Get<Shape>("shape"),
                                  call.Get<double>("low"), call.Get<double>("high"),
                                  call.Get<DType>("dtype")));
       }});
  rows->push_back({"random_normal",
                   "key",
                   {shape,
                    {"mean", AttributeKind::kFloat, "0"},
                    {"deviation", AttributeKind::kFloat, "1"},
                    f32},
                   "y",
                   "key u32[2]; y a float of the shape",
                   "random numbers of the normal distribution",
                   kRandom,
                   [](TensorBuilder& builder, const OperatorCall& call) {
                     return One(RandomNormal(builder, call.operand(0), call.Get<Shape>("shape"),
                                             call.Get<double>("mean"),
                                             call.Get<double>("deviation"),
                                             call.Get<DType>("dtype")));
                   }});
}

}  // namespace

void AddNetworkRows(OperatorRows* rows) {
  AddProducts(rows);
  AddPooling(rows);
  AddNormalization(rows);
  AddAttention(rows);
  AddResizing(rows);
  AddRandom(rows);
}

}  // namespace svod
