#!/usr/bin/env python3
"""tools/update_golden against a svod-jit that prints what each case says."""
import os
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
UPDATE = os.path.join(ROOT, "tools", "update_golden")


class UpdateGolden(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = scratch.name
        site = os.path.join(self.folder, "tests", "golden")
        os.makedirs(site)
        os.makedirs(os.path.join(self.folder, "bin"))
        with open(os.path.join(site, "lit.site.cfg.py"), "w", encoding="utf-8") as file:
            file.write('config.llvm_tools_dir = "/nowhere"\n')

    def update(self, output, text, status=0):
        """The file's text after a run in which svod-jit prints `output` (%s: the file's path)."""
        tool = os.path.join(self.folder, "bin", "svod-jit")
        with open(tool, "w", encoding="utf-8") as file:
            file.write(f"#!/bin/sh\nsed \"s|%s|$2|\" <<'END'\n{output}END\nexit {status}\n")
        os.chmod(tool, 0o755)
        path = os.path.join(self.folder, "case.uop")
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        done = subprocess.run([sys.executable, UPDATE, "--build", self.folder, path],
                              capture_output=True, text=True, check=False)
        with open(path, encoding="utf-8") as file:
            return done, file.read()

    def test_numbered_values_are_named_by_their_op(self):
        done, text = self.update(
            "kernel @k {\n  %i = range 4 loop\n  %0 = load %x[%i]\n  %1 = load %y[%0]\n"
            "  store %y[%i], %1\n}\n",
            "// RUN: svod-jit opt %s | FileCheck %s\n// Why.\n\nkernel @k {\n}\n")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(text, """\
// RUN: svod-jit opt %s | FileCheck %s
// Why.
// Checks below written by tools/update_golden.
// CHECK: kernel @k {
// CHECK-NEXT:   %i = range 4 loop
// CHECK-NEXT:   [[LOAD:%[0-9]+]] = load %x[%i]
// CHECK-NEXT:   [[LOAD2:%[0-9]+]] = load %y{{\\[}}[[LOAD]]]
// CHECK-NEXT:   store %y[%i], [[LOAD2]]
// CHECK-NEXT: }

kernel @k {
}
""")

    def test_old_checks_go_and_a_second_run_changes_nothing(self):
        first = self.update("7\n", "// RUN: svod-jit run %s | FileCheck %s\n// CHECK: 6\n"
                            "// CHECK-NEXT: 5\n\nx\n")[1]
        self.assertEqual(first, "// RUN: svod-jit run %s | FileCheck %s\n"
                         "// Checks below written by tools/update_golden.\n// CHECK: 7\n\nx\n")
        self.assertEqual(self.update("7\n", first)[1], first)

    def test_brackets_of_arrays_are_literal(self):
        text = self.update("[[1 2]\n\n [3 4]]\n", "// RUN: svod-jit run %s | FileCheck %s\n")[1]
        self.assertIn("// CHECK{LITERAL}: [[1 2]\n// CHECK-EMPTY:\n// CHECK-NEXT:  [3 4]]\n", text)

    def test_places_are_relative_and_paths_are_not_kept(self):
        text = self.update("%s:4:3: no\n", "// RUN: svod-jit run %s | FileCheck %s\n\nkernel\n  x\n")[1]
        self.assertEqual(text, "// RUN: svod-jit run %s | FileCheck %s\n"
                         "// Checks below written by tools/update_golden.\n"
                         "// CHECK: {{.*}}case.uop:[[#@LINE+3]]:3: no\n\nkernel\n  x\n")

    def test_each_prefix_has_its_own_checks(self):
        text = self.update("1\n", "// RUN: svod-jit run %s | FileCheck %s\n"
                           "// RUN: svod-jit run %s | FileCheck --check-prefix=B %s\n")[1]
        self.assertIn("// CHECK: 1\n// B: 1\n", text)

    def test_a_command_that_fails_leaves_the_file_alone(self):
        before = "// RUN: svod-jit run %s | FileCheck %s\n// CHECK: 1\n"
        done, text = self.update("2\n", before, status=3)
        self.assertEqual(text, before)
        self.assertIn("the command fails (3): svod-jit run %s", done.stderr)

    def test_a_file_without_filecheck_is_an_error(self):
        done, _ = self.update("1\n", "// RUN: svod-jit run %s\n")
        self.assertIn("no RUN line pipes into FileCheck", done.stderr)


if __name__ == "__main__":
    unittest.main()
