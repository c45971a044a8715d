// Svod: everything that an embedder needs. Installed as svod/svod.h.
// Build or parse a program, Prepare it once, bind buffers, Execute it many times.
#ifndef SVOD_EXECUTOR_SVOD_H_
#define SVOD_EXECUTOR_SVOD_H_

#include "executor/executor.h"
#include "executor/trace.h"
#include "ir/evaluate.h"
#include "ir/kernel_builder.h"
#include "ir/program.h"
#include "ir/text.h"
#include "ir/uop.h"
#include "ir/verify.h"
#include "jit/compile.h"
#include "jit/kernel.h"
#include "jit/kernel_cache.h"
#include "jit/target.h"
#include "jit/task_runner.h"
#include "plan/buffer.h"
#include "plan/custom_function.h"
#include "plan/execution_plan.h"
#include "plan/plan_builder.h"
#include "plan/prepare.h"

#endif  // SVOD_EXECUTOR_SVOD_H_
