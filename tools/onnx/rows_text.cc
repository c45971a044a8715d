// Rows of the operator table: counting of n-grams of words that are numbers.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "ir/operators/compose.h"
#include "ir/operators/indexing.h"
#include "ir/operators/reductions.h"
#include "ir/operators/shaping.h"
#include "tools/onnx/onnx_operators.h"

namespace svod {
namespace {

// How often each of `grams`, each of n words, stands in the rows of x [N, L], with `stride` words
// from one word to the next: [N, grams].
const UOp* CountGrams(OnnxNode& node, const UOp* x, absl::Span<const int64_t> grams, int64_t n,
                      int64_t stride, int64_t length) {
  TensorBuilder& builder = node.builder();
  auto num_grams = static_cast<int64_t>(grams.size()) / n;
  int64_t places = length - (n - 1) * stride;
  Expression all(builder, nullptr);
  for (int64_t k = 0; k < n; ++k) {
    std::vector<int64_t> words;
    for (int64_t g = 0; g < num_grams; ++g) words.push_back(grams[static_cast<size_t>(g * n + k)]);
    const UOp* word = builder.Unsqueeze(node.IntsConstant(words, x->dtype()), 1);  // [grams, 1]
    const UOp* here = builder.ShrinkAxis(x, 1, builder.Index(k * stride), builder.Index(places));
    Expression match = Equal({builder, builder.Unsqueeze(here, 1)}, {builder, word});
    all = k == 0 ? match : And(all, match);
  }
  return Sum(builder, builder.Cast(all, Scalar::kF32), {{2}, false}, Scalar::kF32);
}

OnnxResults ImportTfIdfVectorizer(OnnxNode& node) {
  TensorBuilder& builder = node.builder();
  for (const char* name : {"mode", "min_gram_length", "max_gram_length", "max_skip_count",
                           "ngram_counts", "ngram_indexes"}) {
    node.Require(name);
  }
  int mode = node.Choice("mode", "TF", {"TF", "IDF", "TFIDF"});
  int64_t least = node.Int("min_gram_length", 1), most = node.Int("max_gram_length", 1);
  int64_t skips = node.Int("max_skip_count", 0);
  std::vector<int64_t> begins = node.Ints("ngram_counts"), columns = node.Ints("ngram_indexes");
  std::vector<int64_t> pool = node.Ints("pool_int64s");
  std::vector<double> weights = node.Floats("weights");
  if (node.HasAttribute("pool_strings")) return node.FailUnsupported("a pool of strings");
  const UOp* x = node.input(0);
  bool is_row = node.rank(0) == 1;
  if (is_row) x = builder.Unsqueeze(x, 0);
  if (!node.ok()) return {};
  if (builder.RankOf(x) != 2) return node.Fail("rank, expected 1 or 2");
  int64_t length = builder.ConstDim(x, 1, "words");
  if (length < 0) return {};
  if (least < 1 || most < least || most > 64 || skips < 0 || skips > 4096) {
    return node.Fail("lengths of n-grams and skips, expected small numbers");
  }
  // The counts of all n-grams of the pool, in its order; 0 for lengths that are not asked for.
  std::vector<const UOp*> counts;
  int64_t num_grams = 0;
  for (size_t i = 0; i < begins.size(); ++i) {
    auto n = static_cast<int64_t>(i) + 1;
    int64_t begin = begins[i];
    int64_t end = i + 1 < begins.size() ? begins[i + 1] : static_cast<int64_t>(pool.size());
    if (begin < 0 || end < begin || end > static_cast<int64_t>(pool.size()) ||
        (end - begin) % n != 0) {
      return node.Fail("attribute 'ngram_counts', expected places in the pool");
    }
    if (end == begin) continue;
    auto grams = absl::MakeConstSpan(pool).subspan(static_cast<size_t>(begin),
                                                   static_cast<size_t>(end - begin));
    const UOp* sum = nullptr;
    for (int64_t stride = 1; stride <= (n == 1 ? 1 : skips + 1); ++stride) {
      if (n < least || n > most || length < (n - 1) * stride + 1) break;
      const UOp* found = CountGrams(node, x, grams, n, stride, length);
      sum = sum == nullptr ? found : builder.Add(sum, found);
    }
    int64_t here = (end - begin) / n;
    if (sum == nullptr) {
      Shape shape = {builder.Dim(x, 0), builder.Index(here)};
      sum = builder.Expand(builder.Const(Scalar::kF32, 0), shape);
    }
    counts.push_back(sum);
    num_grams += here;
  }
  if (static_cast<int64_t>(columns.size()) != num_grams || columns.empty()) {
    return node.Fail(absl::StrCat("attribute 'ngram_indexes', got ", columns.size(),
                                  " numbers, expected ", num_grams));
  }
  Expression all(builder, Concatenate(builder, counts, 1));
  if (mode != 0 && !weights.empty()) {
    if (weights.size() != columns.size()) return node.Fail("attribute 'weights', expected as many");
    Expression weight(builder, node.FloatsConstant(weights, Scalar::kF32));
    all = mode == 1 ? Select(all > 0.0, weight, 0.0) : all * weight;
  } else if (mode == 1) {
    all = Select(all > 0.0, 1.0, all);
  }
  // Column c of the result is the n-gram that names it; beyond the last one there is 0.
  int64_t width = *std::max_element(columns.begin(), columns.end()) + 1;
  if (width > (1 << 24) || *std::min_element(columns.begin(), columns.end()) < 0) {
    return node.Fail("attribute 'ngram_indexes', expected small numbers of at least 0");
  }
  std::vector<int64_t> source(static_cast<size_t>(width), num_grams);
  for (size_t g = 0; g < columns.size(); ++g) {
    source[static_cast<size_t>(columns[g])] = static_cast<int64_t>(g);
  }
  const UOp* y = Take(builder, all, node.IntsConstant(source), 1);
  return {is_row ? builder.Squeeze(y, 0) : y};
}

}  // namespace

OnnxRows OnnxTextRows() {
  return {{"TfIdfVectorizer", {9}, 1, 1, ImportTfIdfVectorizer, "", "no strings"}};
}

}  // namespace svod
