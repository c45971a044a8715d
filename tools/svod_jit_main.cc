// svod-jit: see docs/tool.md.
#include <unistd.h>

#include <iostream>

#include "jit/compile.h"
#include "tools/command_table.h"

int main(int argc, char** argv) {
  std::vector<std::string> arguments(argv + 1, argv + argc);
  svod::InstallFatalErrorHandler();
  svod::CommandStreams streams{std::cin, std::cout, std::cerr, isatty(STDIN_FILENO) != 0};
  return svod::RunCommandLine(arguments, streams);
}
