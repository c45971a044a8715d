#include "tools/npy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"

namespace svod {
namespace {

using ::testing::HasSubstr;

class NpyTest : public ::testing::Test {
 protected:
  std::string Path() const {
    return absl::StrCat(::testing::TempDir(), "/svod_npy_",
                        ::testing::UnitTest::GetInstance()->current_test_info()->name(), ".npy");
  }
  void TearDown() override { std::remove(Path().c_str()); }
  void Write(absl::string_view header, absl::string_view data, char major = 1) {
    std::ofstream file(Path(), std::ios::binary);
    file << "\x93NUMPY" << major << '\0' << static_cast<char>(header.size() & 0xff)
         << static_cast<char>(header.size() >> 8);
    if (major > 1) file << '\0' << '\0';
    file << header << data;
  }
  std::string ErrorOfRead() {
    absl::StatusOr<Tensor> tensor = ReadNpy(Path());
    EXPECT_FALSE(tensor.ok());
    EXPECT_THAT(tensor.status().message(), HasSubstr(Path()));
    return std::string(tensor.status().message());
  }
};

TEST_F(NpyTest, EveryDTypeComesBack) {
  for (const char* type : {"bool", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16",
                           "bf16", "f32", "f64"}) {
    absl::StatusOr<Tensor> tensor = ParseTensor(absl::StrCat("3x5x", type, "=random(9)"));
    ASSERT_TRUE(tensor.ok()) << tensor.status();
    ASSERT_TRUE(WriteNpy(*tensor, Path()).ok());
    absl::StatusOr<Tensor> back = ReadNpy(Path());
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(ToString(back->dtype()), type);
    EXPECT_EQ(back->shape(), tensor->shape());
    EXPECT_TRUE(std::equal(tensor->bytes().begin(), tensor->bytes().end(), back->bytes().begin()))
        << type;
  }
}

TEST_F(NpyTest, FortranOrderBigEndianAndVersionTwo) {
  Write("{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3), }",
        absl::string_view("\0\1\0\4\0\2\0\5\0\3\0\6", 12), 2);
  absl::StatusOr<Tensor> tensor = ReadNpy(Path());
  ASSERT_TRUE(tensor.ok()) << tensor.status();
  EXPECT_EQ(FormatTensor(*tensor), "[[1 2 3]\n [4 5 6]]");
}

TEST_F(NpyTest, BadFilesSayWhy) {
  EXPECT_EQ(ReadNpy(Path()).status().code(), absl::StatusCode::kNotFound);
  std::ofstream(Path()) << "hello";
  EXPECT_THAT(ErrorOfRead(), HasSubstr("is not a .npy file"));
  Write("{'descr': '<f4', 'fortran_order': False, 'shape': (4,), }", "1234");
  EXPECT_THAT(ErrorOfRead(), HasSubstr("data of f32[4], got 4 bytes, expected 16"));
  Write("{'descr': '<c8', 'fortran_order': False, 'shape': (1,), }", "12345678");
  EXPECT_THAT(ErrorOfRead(), HasSubstr("dtype, got '<c8'"));
  Write("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", "1234");
  EXPECT_THAT(ErrorOfRead(), HasSubstr("structured"));
  Write("{'descr': '<f4'}", "1234");
  EXPECT_THAT(ErrorOfRead(), HasSubstr("expected 'descr', 'fortran_order' and 'shape'"));
  Write("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999, 99999999999), }", "");
  EXPECT_THAT(ErrorOfRead(), HasSubstr("larger than"));
  Write("{'descr': '<f4'", "");
  EXPECT_THAT(ErrorOfRead(), HasSubstr("expected '}'"));
  Write("", "", 9);
  EXPECT_THAT(ErrorOfRead(), HasSubstr("format version, got 9"));
}

TEST_F(NpyTest, WritingFailsWhole) {
  absl::StatusOr<Tensor> tensor = ParseTensor("4xf32=1");
  ASSERT_TRUE(tensor.ok());
  EXPECT_THAT(WriteNpy(*tensor, "/nonexistent/x.npy").message(), HasSubstr("cannot write"));
  EXPECT_TRUE(WriteNpy(*tensor, "/dev/null").ok());
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/null"));
}

}  // namespace
}  // namespace svod
