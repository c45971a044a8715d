#!/usr/bin/env python3
"""Who may include what, how long files may be, and what may stand in the tree at all.

docs/contributing.md explains the rules. Each rule is a function of one file's path and text, so that
the cases at the end can show that it fails where it should.
"""
import os
import re
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FOLDERS = ("ir", "jit", "plan", "executor", "tools")

# Lines a folder may have, sources and headers. Raise one in the change that needs it, and say why.
BUDGETS = {"ir": 25000, "jit": 8500, "plan": 10000, "executor": 3000, "tools": 16000, "tests": 30000}

# Our folders that a folder's files may include; of jit/ others may include the face alone.
MAY_INCLUDE = {
    "ir": {"ir"},
    "jit": {"ir", "jit"},
    "plan": {"ir", "jit", "plan"},
    "executor": {"ir", "jit", "plan", "executor"},
    "tools": set(FOLDERS),
}
HEADER_WARN, SOURCE_WARN, HARD_STOP = 200, 400, 700
INCLUDE = re.compile(r'^\s*#\s*include\s+(["<])([^">]+)[">]', re.MULTILINE)
COMMENT_OR_STRING = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.DOTALL)
MACHINE_PATH = re.compile(r"(?<![\w./-])/(?:work|farm|root|home/\w+|tmp/wt)/")


def is_code(path):
    return path.endswith((".h", ".cc", ".c", ".def"))


def folder_of(path):
    """The room a file belongs to; None for docs and examples, "tests" for tests."""
    first = path.split(os.sep, 1)[0]
    return first if first in FOLDERS or first == "tests" else None


def includes(text):
    return [(quote, name) for quote, name in INCLUDE.findall(text)]


def check_direction(path, text, face):
    folder = folder_of(path)
    if folder not in MAY_INCLUDE:
        return
    for _, name in includes(text):
        other = name.split("/", 1)[0]
        if other == "tests":
            yield f"includes {name}, which is a test's"
        if other not in FOLDERS or other == folder:
            continue
        if other not in MAY_INCLUDE[folder]:
            yield f"includes {name}, but {folder}/ may not know {other}/"
        elif other == "jit" and name not in face:
            yield f"includes {name}, which is not in PUBLIC_HEADERS of jit/CMakeLists.txt"


def check_llvm(path, text, face):
    folder = folder_of(path)
    if folder == "tests" or folder is None:
        return
    for _, name in includes(text):
        if name.startswith(("llvm/", "llvm-c/")):
            if folder != "jit":
                yield f"includes {name}: LLVM belongs to jit/"
            elif path in face:
                yield f"includes {name}: the face of jit/ names no LLVM"
            elif name.startswith("llvm/ExecutionEngine/") and not re.fullmatch(
                    r"jit/(orc_session|code_memory)\.(h|cc)", path):
                yield f"includes {name}: ORC belongs to orc_session and code_memory"
        if name.startswith(("tbb/", "oneapi/")) and not re.fullmatch(r"executor/\w+\.cc", path):
            yield f"includes {name}: TBB belongs to sources of executor/"
        if name.startswith("absl/flags/") and folder != "tools":
            yield f"includes {name}: flags belong to tools/"


IR_BANNED_HEADERS = {"thread", "future", "mutex", "condition_variable", "fstream", "filesystem"}


def check_system(path, text, face):
    if folder_of(path) != "ir" or path == "ir/debug_options.cc":  # which writes dumps
        return
    for _, name in includes(text):
        if name in IR_BANNED_HEADERS:
            yield f"includes <{name}>, which ir/ must do without"


def code_only(text):
    """The text without comments and strings, lines kept."""
    return COMMENT_OR_STRING.sub(lambda m: "\n" * m.group().count("\n"), text)


CALLS = (
    (re.compile(r"\b(?:secure_)?getenv\s*\("), r"ir/debug_options\.cc", "reads the environment"),
    (re.compile(r"\bstd::(?:cerr|cout|clog)\b"), r"tools/.*", "writes to the terminal"),
    (re.compile(r"(?<![\w.>:])(?:std::|::)?(?:exit|_exit|quick_exit|abort)\s*\("), r"tools/.*",
     "ends the process"),
    (re.compile(r"\bcantFail\s*\("), r"", "drops an llvm::Error"),
    (re.compile(r"\bstd::(?:async|j?thread)\b(?!::(?:id|hardware_concurrency))|\bpthread_create\b"),
     r"tools/.*", "starts a thread, which only oneTBB does here"),
)


def check_calls(path, text, face):
    if folder_of(path) not in FOLDERS:
        return
    code = code_only(text)
    for pattern, allowed, what in CALLS:
        if re.fullmatch(allowed, path):
            continue
        for match in pattern.finditer(code):
            line = code.count("\n", 0, match.start()) + 1
            yield f"line {line}: {match.group().strip()} {what}"


def check_form(path, text, face):
    lines = text.count("\n")
    if lines > HARD_STOP:
        yield f"has {lines} lines, expected {HARD_STOP} at most"
    if re.search(r"\b(?:TODO|FIXME|XXX)\b", text) and folder_of(path) is not None:
        yield "holds a note of unfinished work"
    if path.endswith(".h") and folder_of(path) in FOLDERS:
        guard = "SVOD_" + re.sub(r"\W", "_", path).upper() + "_"
        if f"#ifndef {guard}\n#define {guard}\n" not in text:
            yield f"has no include guard {guard}"
        if not text.startswith("// "):
            yield "does not open by saying what it holds"


def check_macros(path, text, face):
    if not path.endswith((".h", ".cc")) or folder_of(path) not in FOLDERS:
        return
    for match in re.finditer(r"^\s*#\s*define\s+(\w+)", text, re.MULTILINE):
        name = match.group(1)
        if not name.startswith("SVOD_"):
            yield f"defines {name}, expected a name that starts with SVOD_"


CODE_RULES = (check_direction, check_llvm, check_system, check_calls, check_form,
              check_macros)


def problems(path, text, face=frozenset()):
    """What is wrong with one file."""
    found = []
    if is_code(path):
        for rule in CODE_RULES:
            found += rule(path, text, face)
    if not path.endswith("layering_test.py"):
        found += [f"names a path of one machine: {m.group()}" for m in MACHINE_PATH.finditer(text)]
    return [f"{path}: {problem}" for problem in found]


def face_of_jit(cmake):
    """PUBLIC_HEADERS of svod_library(jit ...), as include paths."""
    listed = re.search(r"PUBLIC_HEADERS\s+((?:[\w/]+\.h\s*)*)\)", re.sub(r"#[^\n]*", "", cmake))
    return frozenset("jit/" + name for name in listed.group(1).split()) if listed else frozenset()


def files():
    """Path and text of every text file of the tree but what is built."""
    for folder, subfolders, names in os.walk(ROOT):
        top = folder == ROOT
        subfolders[:] = sorted(
            name for name in subfolders
            if name not in ("__pycache__", ".cache", ".git") and not (top and name == "build"))
        for name in sorted(set(names) - {".git"}):  # a file in a worktree
            path = os.path.join(folder, name)
            try:
                with open(path, encoding="utf-8") as file:
                    yield os.path.relpath(path, ROOT), file.read()
            except UnicodeDecodeError:
                continue  # data


class Tree(unittest.TestCase):
    def test_every_file_keeps_the_rules(self):
        with open(os.path.join(ROOT, "jit", "CMakeLists.txt"), encoding="utf-8") as file:
            face = face_of_jit(file.read())
        found, num_files = [], 0
        for path, text in files():
            num_files += 1
            found += problems(path, text, face)
        self.assertGreater(num_files, 30, "found no tree to look at")
        self.assertEqual(found, [], "\n" + "\n".join(found))

    def test_folders_keep_their_budgets(self):
        lines = dict.fromkeys(BUDGETS, 0)
        for path, text in files():
            if not is_code(path) or folder_of(path) is None:
                continue
            count = text.count("\n")
            lines[folder_of(path)] += count
            limit = HEADER_WARN if path.endswith(".h") else SOURCE_WARN
            if count > limit and folder_of(path) != "tests":
                print(f"warning: {path} has {count} lines, expected {limit} at most")
        for folder, count in lines.items():
            print(f"{folder:9} {count:6} of {BUDGETS[folder]} lines")
        over = [folder for folder in BUDGETS if lines[folder] > BUDGETS[folder]]
        self.assertEqual(over, [], "folders over their budget")


class Rules(unittest.TestCase):
    """Each rule finds what it is for, and leaves the allowed twin alone."""

    def expect(self, path, text, message, face=frozenset()):
        found = problems(path, text, face)
        self.assertEqual(len(found), 1, found)
        self.assertIn(message, found[0])

    def expect_fine(self, path, text, face=frozenset()):
        self.assertEqual(problems(path, text, face), [])

    def test_direction(self):
        self.expect("ir/a.cc", '#include "jit/kernel.h"\n', "ir/ may not know jit/")
        self.expect("jit/a.cc", '#include "plan/prepared.h"\n', "jit/ may not know plan/")
        self.expect("plan/a.cc", '#include "executor/executor.h"\n', "plan/ may not know executor/")
        self.expect("executor/a.cc", '#include "tools/repl.h"\n', "executor/ may not know tools/")
        self.expect("ir/a.cc", '#include "tests/unit/random.h"\n', "is a test's")
        self.expect_fine("executor/a.cc", '#include "ir/uop.h"\n#include "plan/prepared.h"\n')
        self.expect_fine("tests/unit/ir/a_test.cc", '#include "tools/repl.h"\n')

    def test_face_of_jit(self):
        face = face_of_jit("# PUBLIC_HEADERS\nsvod_library(jit\n  PUBLIC_HEADERS\n    kernel.h\n)")
        self.assertEqual(face, {"jit/kernel.h"})
        self.expect("plan/a.cc", '#include "jit/lower.h"\n', "not in PUBLIC_HEADERS", face)
        self.expect_fine("plan/a.cc", '#include "jit/kernel.h"\n', face)
        self.expect_fine("jit/a.cc", '#include "jit/lower.h"\n', face)

    def test_llvm(self):
        text = '#include "llvm/IR/Module.h"\n'
        guard = "// x\n#ifndef SVOD_JIT_KERNEL_H_\n#define SVOD_JIT_KERNEL_H_\n"
        self.expect("plan/a.cc", text, "LLVM belongs to jit/")
        self.expect("tools/a.cc", text, "LLVM belongs to jit/")
        self.expect("jit/kernel.h", guard + text, "names no LLVM", {"jit/kernel.h"})
        self.expect_fine("jit/a.cc", text)
        orc = '#include "llvm/ExecutionEngine/Orc/LLJIT.h"\n'
        self.expect("jit/kernel_cache.cc", orc, "ORC belongs to")
        self.expect_fine("jit/orc_session.cc", orc)

    def test_tbb(self):
        text = "#include <oneapi/tbb/task_arena.h>\n"
        guard = "// x\n#ifndef SVOD_EXECUTOR_A_H_\n#define SVOD_EXECUTOR_A_H_\n"
        self.expect("executor/a.h", guard + text, "TBB belongs to")
        self.expect("jit/a.cc", "#include <tbb/tbb.h>\n", "TBB belongs to")
        self.expect_fine("executor/a.cc", text)

    def test_flags(self):
        self.expect("plan/a.cc", '#include "absl/flags/flag.h"\n', "flags belong to tools/")
        self.expect_fine("tools/a.cc", '#include "absl/flags/flag.h"\n')

    def test_system_headers(self):
        self.expect("ir/a.cc", "#include <mutex>\n", "ir/ must do without")
        self.expect_fine("jit/a.cc", "#include <mutex>\n")
        self.expect_fine("ir/debug_options.cc", "#include <fstream>\n")

    def test_environment(self):
        self.expect("jit/a.cc", 'x = std::getenv("A");\n', "reads the environment")
        self.expect_fine("ir/debug_options.cc", 'x = std::getenv("A");\n')
        self.expect_fine("jit/a.cc", '// not getenv("A")\nx = "getenv(";\n')

    def test_terminal_and_exit(self):
        self.expect("ir/a.cc", "std::cerr << 1;\n", "writes to the terminal")
        self.expect("plan/a.cc", "if (x) std::abort();\n", "line 1: std::abort( ends the process")
        self.expect("plan/a.cc", "exit(1);\n", "ends the process")
        self.expect_fine("plan/a.cc", "loop.exit(); Abort(1); on_exit(2);\n")
        self.expect_fine("tools/a.cc", "std::cout << 1; exit(2);\n")

    def test_threads(self):
        self.expect("jit/a.cc", "std::thread t(f);\n", "starts a thread")
        self.expect("executor/a.cc", "x = std::async(f);\n", "starts a thread")
        self.expect_fine("plan/a.cc", "x = std::thread::hardware_concurrency();\n")

    def test_llvm_errors(self):
        self.expect("jit/a.cc", "x = llvm::cantFail(y());\n", "drops an llvm::Error")

    def test_form(self):
        self.expect("ir/a.cc", "x;\n" * (HARD_STOP + 1), "has 701 lines")
        self.expect_fine("ir/a.cc", "x;\n" * HARD_STOP)
        self.expect("ir/a.cc", "// TODO later\n", "unfinished")
        self.expect("ir/a.h", "// x\n#ifndef SVOD_A_H\n#define SVOD_A_H\n", "no include guard SVOD_IR_A_H_")
        self.expect("ir/a.h", "#ifndef SVOD_IR_A_H_\n#define SVOD_IR_A_H_\n", "does not open by")

    def test_macros(self):
        self.expect("ir/a.cc", "#define CHECK(x) x\n", "defines CHECK, expected a name that starts")
        self.expect_fine("tests/unit/ir/a_test.cc", "#define EXPECT_OK(x) x\n")
        self.expect_fine("ir/a.cc", "#define SVOD_CHECK(x) x\n#undef CHECK\n")

    def test_machine_paths(self):
        self.expect("docs/a.md", "see /work/main/x\n", "names a path of one machine")
        self.expect("ir/a.cc", "// /home/ada/svod\n", "names a path of one machine")
        self.expect_fine("docs/a.md", "docs/work/main and https://x.org/home/ada/ and ../root/\n")


if __name__ == "__main__":
    unittest.main()
