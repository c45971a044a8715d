// Object files for tests of what happens behind the code generator, made of LLVM IR text.
#ifndef SVOD_TESTS_UNIT_JIT_TEST_OBJECTS_H_
#define SVOD_TESTS_UNIT_JIT_TEST_OBJECTS_H_

#include <string>

#include "absl/strings/string_view.h"

namespace svod {

// The host's object file of a module in LLVM's text form; "" (and a test failure) if it is wrong.
std::string ObjectOfIr(absl::string_view ir);

// A kernel `entry` that gives `result` and has about `padding_bytes` of code and constants more.
std::string ObjectThatReturns(absl::string_view entry, int result, int padding_bytes = 0);

}  // namespace svod

#endif  // SVOD_TESTS_UNIT_JIT_TEST_OBJECTS_H_
