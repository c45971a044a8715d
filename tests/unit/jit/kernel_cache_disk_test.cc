#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "jit/kernel_cache.h"
#include "tests/unit/jit/fake_compiler.h"

namespace svod {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class KernelCacheDiskTest : public ::testing::Test {
 protected:
  KernelCacheDiskTest() {
    std::string pattern = ::testing::TempDir() + "/svod_kernel_cache_XXXXXX";
    root_ = mkdtemp(pattern.data());
  }
  ~KernelCacheDiskTest() override { fs::remove_all(root_); }

  std::shared_ptr<KernelCache> Open(FakeCompiler& compiler) const {
    KernelCacheOptions options = compiler.Options();
    options.disk_directory = root_ + "/cache";
    return Create(options);
  }

  std::string root_;
};

TEST_F(KernelCacheDiskTest, NextProcessLoadsWhatThisOneCompiled) {
  FakeCompiler compiler;
  Context context;
  const UOp* sink = Constant(context, "k", 1);
  std::string name;
  {
    auto cache = Open(compiler);
    name = (*cache->GetOrCompile(sink))->name;
    EXPECT_EQ(cache->stats().disk.misses, 1);
    EXPECT_EQ(cache->stats().disk.writes, 1);
  }
  auto cache = Open(compiler);
  auto kernel = cache->GetOrCompile(sink);
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  EXPECT_EQ(compiler.compiles, 1);
  EXPECT_EQ(Call(*kernel), 1);
  EXPECT_EQ((*kernel)->name, name);
  EXPECT_EQ((*kernel)->scratch_bytes, 128);
  EXPECT_EQ((*kernel)->compile_ms, 0);
  EXPECT_EQ(cache->stats().disk.hits, 1);
  EXPECT_EQ(cache->stats().compiles, 0);
  EXPECT_EQ(cache->stats().misses, 1);
  EXPECT_EQ(cache->stats().disk_problem, "");
}

TEST_F(KernelCacheDiskTest, CorruptFileIsCompiledAgainAndMended) {
  FakeCompiler compiler;
  Context context;
  const UOp* sink = Constant(context, "k", 1);
  ASSERT_TRUE(Open(compiler)->GetOrCompile(sink).ok());
  for (const auto& file : fs::directory_iterator(root_ + "/cache")) {
    std::fstream stream(file.path(), std::ios::in | std::ios::out | std::ios::binary);
    stream.seekp(200);
    stream.put('\xff');
  }
  auto cache = Open(compiler);
  ASSERT_TRUE(cache->GetOrCompile(sink).ok());
  EXPECT_EQ(compiler.compiles, 2);
  EXPECT_EQ(cache->stats().disk.rejects, 1);
  EXPECT_THAT(cache->stats().disk_problem, HasSubstr("has a wrong checksum"));
  ASSERT_TRUE(Open(compiler)->GetOrCompile(sink).ok());
  EXPECT_EQ(compiler.compiles, 2);
}

TEST_F(KernelCacheDiskTest, StoredObjectThatDoesNotLinkIsCompiledAgain) {
  FakeCompiler compiler;
  Context context;
  const UOp* sink = Constant(context, "k", 1);
  CompileOptions options;
  options.target = *HostTarget();
  ObjectCode object;
  object.entry = "wrong_name";
  object.bytes = ObjectThatReturns("f", 1);
  auto cache = Open(compiler);
  cache->disk()->Store(*MakeKey(sink, options)->text, object);
  auto kernel = cache->GetOrCompile(sink);
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  EXPECT_EQ(compiler.compiles, 1);
}

TEST_F(KernelCacheDiskTest, DirectoryThatCannotBeUsedIsNoError) {
  FakeCompiler compiler;
  Context context;
  std::ofstream(root_ + "/cache") << "a file";
  auto cache = Open(compiler);
  EXPECT_TRUE(cache->GetOrCompile(Constant(context, "k", 1)).ok());
  EXPECT_THAT(cache->stats().disk_problem, HasSubstr("disk cache: cannot open "));
}

}  // namespace
}  // namespace svod
