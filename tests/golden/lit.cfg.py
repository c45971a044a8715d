# Golden tests: svod-jit's answers, checked by FileCheck. One folder a stage.
#
# RUN lines may use svod-jit, FileCheck, not, count and split-file, lit's own %s, %S, %t, and
#   %examples  examples
# Start from build/<preset>: lit tests/golden, or ninja check-golden.
import os

import lit.formats

config.name = "golden"
config.suffixes = [".uop", ".repl", ".test"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.svod_build_dir, "tests", "golden")
config.test_format = lit.formats.ShTest(execute_external=False)

programs = {"svod-jit": os.path.join(config.svod_build_dir, "bin")}
for name in ("FileCheck", "not", "count", "split-file"):
    programs[name] = config.llvm_tools_dir
for name, folder in programs.items():
    if not os.access(os.path.join(folder, name), os.X_OK):
        lit_config.fatal(f"golden: no program {name} in {folder}")

# Only what the tests may depend on: no settings of the person who runs them.
home = os.path.join(config.test_exec_root, "home")
os.makedirs(home, exist_ok=True)
config.environment = {
    "PATH": os.pathsep.join([*dict.fromkeys(programs.values()), "/usr/bin", "/bin"]),
    "HOME": home,
    "XDG_CACHE_HOME": os.path.join(home, "cache"),
    "LC_ALL": "C.UTF-8",
    "TERM": "dumb",
}
for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS", "LSAN_OPTIONS"):
    if name in os.environ:
        config.environment[name] = os.environ[name]

config.substitutions.append(("%examples", os.path.join(config.svod_source_dir, "examples")))

# `REQUIRES: host-x86_64` for what only this machine's processor family can run.
config.available_features.add(f"host-{config.host_processor}")
# `REQUIRES: gdb` for what a debugger sees, in a program that has no leak checker of its own.
if os.access("/usr/bin/gdb", os.X_OK) and not config.svod_sanitize:
    config.available_features.add("gdb")
