// Libraries that do a workload's work, run beside Svod in one process. Each is compiled in where
// CMake finds it. Included by the bench's sources only.
#ifndef SVOD_TOOLS_BENCH_PEERS_H_
#define SVOD_TOOLS_BENCH_PEERS_H_

#include <string>
#include <vector>

#include "plan/buffer.h"
#include "tools/bench/measure.h"
#include "tools/bench/workload.h"

namespace svod::bench {

// Adds a contender for each way in which the library does it; none where it has no function for it.
// The inputs are those of MakeInputs and must outlive the contenders. Peers whose name ends in
// "-packed" have a constant operand, or all operands, in a layout of their own, made beforehand.
void AddOpenBlasPeers(const Workload& workload, const std::vector<Buffer>& inputs, int threads,
                      std::vector<Contender>* contenders);
void AddOneDnnPeers(const Workload& workload, const std::vector<Buffer>& inputs, int threads,
                    std::vector<Contender>* contenders);

// "oneDNN 2.6.3": what a library says of itself.
std::string OpenBlasVersion();
std::string OneDnnVersion();

}  // namespace svod::bench

#endif  // SVOD_TOOLS_BENCH_PEERS_H_
