// svod-jit: see docs/tool.md.
#include <unistd.h>

#include <iostream>

#include "jit/compile.h"
#include "tools/command_table.h"
#include "tools/fill_heap.h"

namespace {

// As much as `run` takes for a small program. Before main, since LLVM's static constructors
// allocate.
__attribute__((constructor(101))) void FillHeapFirst() { svod::FillHeap(size_t{4} << 20); }

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  svod::InstallFatalErrorHandler();
  svod::CommandStreams streams{std::cin, std::cout, std::cerr, isatty(STDIN_FILENO) != 0};
  return svod::RunCommandLine(arguments, streams);
}
