// OpenBLAS: matrix products of f32 and f64.
#include <cblas.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tools/bench/check.h"
#include "tools/bench/peers.h"

namespace svod::bench {
namespace {

// Its threads spin for some 2^26 cycles after a call.
void WaitForSpinning() { std::this_thread::sleep_for(std::chrono::milliseconds(25)); }

struct Product {
  int64_t batch, m, k, n;
};

Product ProductOf(const Workload& workload) {
  const std::vector<int64_t>& x = workload.operands[0].dims;
  const std::vector<int64_t>& y = workload.operands[1].dims;
  const size_t rank = x.size();
  return {rank == 3 ? x[0] : 1, x[rank - 2], x[rank - 1], y[rank - 1]};
}

// `gemm` and `gemv` are cblas_{s,d}gemm and cblas_{s,d}gemv.
template <typename T, typename Gemm, typename Gemv>
void AddProducts(const Workload& workload, const std::vector<Buffer>& inputs, int threads,
                 Gemm gemm, Gemv gemv, std::vector<Contender>* contenders) {
  const Product p = ProductOf(workload);
  const auto m = static_cast<int>(p.m), k = static_cast<int>(p.k), n = static_cast<int>(p.n);
  Buffer result = ValueOrDie(Buffer::Create(p.batch * p.m * p.n * int64_t{sizeof(T)}));
  CheckOk(result.Allocate());
  const auto* x = reinterpret_cast<const T*>(inputs[0].data());
  const auto* y = reinterpret_cast<const T*>(inputs[1].data());
  auto* z = reinterpret_cast<T*>(result.data());
  Contender contender;
  contender.samples = [=] {
    return Samples(result.data(), workload.operands[0].dtype, p.batch * p.m * p.n);
  };
  if (threads > 1) contender.quiet = WaitForSpinning;
  contender.peer = "openblas";
  contender.run = [=] {
    for (int64_t i = 0; i < p.batch; ++i) {
      gemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, n, k, 1, x + i * p.m * p.k, k,
           y + i * p.k * p.n, n, 0, z + i * p.m * p.n, n);
    }
  };
  contenders->push_back(contender);
  if (p.batch == 1 && p.m == 1) {
    contender.peer = "openblas-gemv";
    contender.run = [=] { gemv(CblasRowMajor, CblasTrans, k, n, 1, y, n, x, 1, 0, z, 1); };
    contenders->push_back(contender);
  }
}

}  // namespace

void AddOpenBlasPeers(const Workload& workload, const std::vector<Buffer>& inputs, int threads,
                      std::vector<Contender>* contenders) {
  openblas_set_num_threads(threads);
  if (workload.kind != WorkKind::kMatmul) return;
  const Scalar scalar = workload.operands[0].dtype.scalar;
  if (scalar == Scalar::kF32) {
    AddProducts<float>(workload, inputs, threads, cblas_sgemm, cblas_sgemv, contenders);
  } else if (scalar == Scalar::kF64) {
    AddProducts<double>(workload, inputs, threads, cblas_dgemm, cblas_dgemv, contenders);
  }
}

std::string OpenBlasVersion() {
  const std::vector<std::string> words = absl::StrSplit(openblas_get_config(), ' ');
  return absl::StrCat(words[0], " ", words.size() > 1 ? words[1] : "", " (",
                      openblas_get_corename(), ")");
}

}  // namespace svod::bench
