// Sparse initializers and constants.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/onnx/model_maker.h"

namespace svod {
namespace {

using testing::ElementsAre;

void Fill(onnx::SparseTensorProto& sparse, std::vector<float> values, std::vector<int64_t> indices,
          std::vector<int64_t> index_dims, std::vector<int64_t> dims) {
  onnx::TensorProto& data = *sparse.mutable_values();
  data.set_data_type(onnx::TensorProto::FLOAT);
  data.add_dims(static_cast<int64_t>(values.size()));
  for (float value : values) data.add_float_data(value);
  onnx::TensorProto& places = *sparse.mutable_indices();
  places.set_data_type(onnx::TensorProto::INT64);
  for (int64_t dim : index_dims) places.add_dims(dim);
  for (int64_t index : indices) places.add_int64_data(index);
  for (int64_t dim : dims) sparse.add_dims(dim);
}

// x + a sparse initializer `w`.
ModelMaker WithSparse(std::vector<float> values, std::vector<int64_t> indices,
                      std::vector<int64_t> index_dims, std::vector<int64_t> dims) {
  ModelMaker maker;
  maker.Input("x", "2 3").Input("w", "2 3").Output("y");
  onnx::SparseTensorProto& sparse = *maker.graph().add_sparse_initializer();
  Fill(sparse, std::move(values), std::move(indices), std::move(index_dims), std::move(dims));
  sparse.mutable_values()->set_name("w");
  maker.Node("Add", "x w", "y");
  return maker;
}

TEST(OnnxSparseTensorTest, InitializersHaveIndicesOfEitherLayout) {
  std::vector<OnnxTensor> inputs = {{"", FloatTensor({2, 3}, {1, 1, 1, 1, 1, 1})}};
  EXPECT_THAT(FloatsOn(WithSparse({5, 7}, {1, 5}, {2}, {2, 3}), inputs),
              ElementsAre(1, 6, 1, 1, 1, 8));
  EXPECT_THAT(FloatsOn(WithSparse({5, 7}, {0, 2, 1, 0}, {2, 2}, {2, 3}), inputs),
              ElementsAre(1, 1, 6, 8, 1, 1));
  EXPECT_THAT(FloatsOn(WithSparse({}, {}, {0}, {2, 3}), inputs), ElementsAre(1, 1, 1, 1, 1, 1));
}

TEST(OnnxSparseTensorTest, ConstantsMayBeSparse) {
  ModelMaker maker;
  maker.Input("x", "3").Output("y");
  onnx::AttributeProto& attribute = *maker.Node("Constant", "", "c").add_attribute();
  attribute.set_name("sparse_value");
  attribute.set_type(onnx::AttributeProto::SPARSE_TENSOR);
  Fill(*attribute.mutable_sparse_tensor(), {4}, {2}, {1, 1}, {3});
  maker.Node("Mul", "x c", "y");
  EXPECT_THAT(FloatsOn(maker, {{"", FloatTensor({3}, {1, 2, 3})}}), ElementsAre(0, 0, 12));
}

TEST(OnnxSparseTensorTest, DamageIsRefused) {
  auto message = [](std::vector<float> values, std::vector<int64_t> indices,
                    std::vector<int64_t> index_dims, std::vector<int64_t> dims) {
    return std::string(ImportError(WithSparse(std::move(values), std::move(indices),
                                              std::move(index_dims), std::move(dims)))
                           .message());
  };
  const std::string kWhere = "initializer 'w': sparse tensor: ";
  EXPECT_EQ(message({1, 2}, {1, 6}, {2}, {2, 3}), kWhere + "index 1, got 6, expected 0 to 5");
  EXPECT_EQ(message({1}, {-1}, {1}, {2, 3}), kWhere + "index 0, got -1, expected 0 to 5");
  EXPECT_EQ(message({1}, {0, 3}, {1, 2}, {2, 3}), kWhere + "index 0, got 3, expected 0 to 2");
  for (int64_t second : {0, 1}) {
    EXPECT_EQ(message({1, 2}, {1, second}, {2}, {2, 3}),
              kWhere + "index 1, expected one behind the index before it");
  }
  EXPECT_EQ(
      message({1, 2}, {1}, {1}, {2, 3}),
      kWhere + "values and indices, got [2] and i64[1], expected [n] and i64[n] or i64[n, 2]");
  EXPECT_EQ(message({1}, {1}, {2}, {2, 3}), "initializer 'w': data, got 1 elements, expected 2");
  EXPECT_EQ(message({1}, {1}, {1}, {1 << 20, 1 << 20}),
            kWhere + "shape, got [1048576, 1048576], expected at most 1073741824 bytes");
  EXPECT_EQ(message({1}, {1}, {1}, {-2, 3}),
            "initializer 'w': dimension, got -2, expected at least 0");
}

}  // namespace
}  // namespace svod
