#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "ir/text.h"
#include "jit/kernel_cache.h"
#include "jit/kernel_key.h"
#include "jit/source_note.h"
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

// Kernels as they are written, which Svod's own steps optimise and compile.
class SourcesOnDiskTest : public KernelCacheDiskTest {
 protected:
  static constexpr const char* kKernel = R"(kernel @k(%y: out f32[9], %x: f32[9]) {
  %r = range 9 reduce
  %a = load %x[%r]
  %s = reduce_add %a, %r
  store %y[0], %s
})";
  // One core an element, of as many as a variable says.
  static constexpr const char* kOfAnySize = R"(kernel @k(%y: out f32[9], %x: f32[9]) {
  %n = define_var "n", min=1, max=9
  %c = core_id %n
  %a = load %x[%c]
  store %y[%c], %a
})";

  void SetUp() override {
    if (BuildId().empty()) GTEST_SKIP() << "a build without an id knows no sources";
  }

  static Module Parse(const std::string& text) {
    auto module = ParseModule(text, "k", std::make_shared<Context>());
    EXPECT_TRUE(module.ok()) << module.status();
    return *std::move(module);
  }
  std::shared_ptr<KernelCache> OpenOwn() const {
    KernelCacheOptions options;
    options.disk_directory = root_ + "/cache";
    return Create(options);
  }
  static bool HasOptimised(const KernelCache& cache) { return cache.stats().optimize_ms > 0; }
  // The file under the kernel's own key.
  std::string NoteOf(const UOp* sink) const {
    CompileOptions options;
    options.target = *HostTarget();
    return root_ + "/cache/" + DiskCache::FileName(*MakeSourceKey(sink, options).text);
  }
};

TEST_F(SourcesOnDiskTest, NextProcessNeedsNoPasses) {
  for (const char* text : {kKernel, kOfAnySize}) {
    Module module = Parse(text);
    const UOp* sink = module.functions[0].root;
    KernelPtr first = *OpenOwn()->GetOrCompile(sink);
    auto cache = OpenOwn();
    auto second = cache->GetOrCompile(sink);
    ASSERT_TRUE(second.ok()) << second.status();
    EXPECT_FALSE(HasOptimised(*cache));
    EXPECT_EQ(cache->stats().compiles, 0);
    EXPECT_EQ(cache->stats().misses, 1);
    EXPECT_EQ(cache->stats().disk.hits, 1);
    EXPECT_EQ((*second)->name, first->name);
    EXPECT_EQ((*second)->source, first->source);
    EXPECT_EQ((*second)->variable_names, first->variable_names);
    ASSERT_EQ((*second)->global_size[0] == nullptr, first->global_size[0] == nullptr);
    if (first->global_size[0] != nullptr) {
      EXPECT_EQ((*second)->global_size[0]->hash(), first->global_size[0]->hash());
    }
    // Who has optimised it already finds the same.
    EXPECT_EQ(*cache->GetOrCompile(sink), *second);
  }
}

TEST_F(SourcesOnDiskTest, OptionsOfThePassesAreOtherSources) {
  Module module = Parse(kKernel);
  ASSERT_TRUE(OpenOwn()->GetOrCompile(module.functions[0].root).ok());
  CompileOptions options;
  options.contract_mulacc = true;
  auto cache = OpenOwn();
  ASSERT_TRUE(cache->GetOrCompile(module.functions[0].root, options).ok());
  EXPECT_TRUE(HasOptimised(*cache));
}

TEST_F(SourcesOnDiskTest, UnverifiedKernelsAreNotNoted) {
  Module module = Parse(kKernel);
  CompileOptions options;
  options.verify = false;
  ASSERT_TRUE(OpenOwn()->GetOrCompile(module.functions[0].root, options).ok());
  auto cache = OpenOwn();
  ASSERT_TRUE(cache->GetOrCompile(module.functions[0].root).ok());
  EXPECT_TRUE(HasOptimised(*cache));
}

TEST_F(SourcesOnDiskTest, DamagedNoteIsMadeAgain) {
  Module module = Parse(kKernel);
  const UOp* sink = module.functions[0].root;
  ASSERT_TRUE(OpenOwn()->GetOrCompile(sink).ok());
  ASSERT_TRUE(fs::exists(NoteOf(sink)));
  {
    std::fstream stream(NoteOf(sink), std::ios::in | std::ios::out | std::ios::binary);
    stream.seekp(200);
    stream.put('\xff');
  }
  auto cache = OpenOwn();
  ASSERT_TRUE(cache->GetOrCompile(sink).ok());
  EXPECT_TRUE(HasOptimised(*cache));
  EXPECT_EQ(cache->stats().compiles, 0);
  EXPECT_EQ(cache->stats().disk.rejects, 1);
  cache = OpenOwn();
  ASSERT_TRUE(cache->GetOrCompile(sink).ok());
  EXPECT_FALSE(HasOptimised(*cache));
}

TEST_F(SourcesOnDiskTest, LostObjectIsCompiledAgain) {
  Module module = Parse(kKernel);
  const UOp* sink = module.functions[0].root;
  ASSERT_TRUE(OpenOwn()->GetOrCompile(sink).ok());
  std::vector<fs::path> objects;
  for (const auto& file : fs::directory_iterator(root_ + "/cache")) {
    if (file.path() != NoteOf(sink)) objects.push_back(file.path());
  }
  ASSERT_EQ(objects.size(), 1);
  fs::remove(objects[0]);
  auto cache = OpenOwn();
  auto kernel = cache->GetOrCompile(sink);
  ASSERT_TRUE(kernel.ok()) << kernel.status();
  EXPECT_EQ(cache->stats().compiles, 1);
  float y[9] = {}, x[9] = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  void* buffers[] = {y, x};
  EXPECT_EQ((*kernel)->function(buffers, nullptr, 0, nullptr), 0);
  EXPECT_EQ(y[0], 45);
}

TEST_F(SourcesOnDiskTest, WhatIsNoNoteIsNotRead) {
  Module module = Parse(kKernel);
  const UOp* sink = module.functions[0].root;
  CompileOptions options;
  options.target = *HostTarget();
  const KernelKey key = *MakeKey(sink, options);
  const std::string note = *EncodeSourceNote(sink, sink, key);
  EXPECT_EQ(DecodeSourceNote(note, sink)->key, key);
  for (const std::string& wrong : {std::string(), std::string("key"), "cores as in source\n" + note,
                                   "cores\n" + note, "variable \\q\n" + note, "size 3\n" + note}) {
    EXPECT_FALSE(DecodeSourceNote(wrong, sink).has_value()) << wrong;
  }
}

}  // namespace
}  // namespace svod
