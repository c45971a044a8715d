#!/usr/bin/env python3
"""What tools/performance_page makes of svod-bench's lines."""
import importlib.machinery
import importlib.util
import os
import tempfile
import unittest
import xml.etree.ElementTree as tree

TOOL = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "tools",
                    "performance_page")
LOADER = importlib.machinery.SourceFileLoader("performance_page", TOOL)
PAGE = importlib.util.module_from_spec(importlib.util.spec_from_loader("performance_page", LOADER))

LINES = """\
some words
{"row":"machine","peer":"machine","threads":1,"ns":0,"cpu":"znver5","vector_bits":512,"load":3.25,"llvm":"22","peers":"P 1"}
{"row":"mm64","peer":"svod","threads":1,"ns":2500.0,"best":2100.0,"flops":524288,"bytes":49152,"limit_ns":2000,"peak_gflops":262}
{"row":"mm64","peer":"svod","threads":1,"ns":2400.0,"best":2000.0,"flops":524288,"bytes":49152,"limit_ns":1900,"peak_gflops":276}
{"row":"mm64","peer":"slow","threads":1,"ns":9000.0,"best":8000.0}
{"row":"mm64","peer":"quick","threads":1,"ns":3000.0,"best":3000.0}
{"row":"mm64","peer":"quick-packed","threads":1,"ns":1000.0,"best":1000.0}
{"row":"sum_16M","peer":"svod","threads":1,"ns":2e6,"best":1e6,"bytes":67108868,"limit_ns":1e6,"peak_gbs":67}
{"row":"dep1000","peer":"svod","threads":2,"ns":16000,"best":15000,"ops":1000}
{"row":"broken","peer":"svod","threads":1,"error":"no"}
"""


class PerformancePage(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        LOADER.exec_module(PAGE)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "t.jsonl")
            with open(path, "w", encoding="utf-8") as out:
                out.write(LINES)
            cls.machine, cls.rows = PAGE.read([path])

    def test_best_sample_and_best_fair_peer_count(self):
        text = "\n".join(PAGE.page(self.machine, self.rows, [1, 2]))
        self.assertIn("| `mm64` | 2 us | 262 GFLOP/s | 95% | 1.50 quick |  |  |  |  |", text)
        self.assertIn("| `sum_16M` | 1 ms | 67.1 GB/s | 100% |  |  |  |  |  |", text)
        self.assertIn("| `dep1000` |  |  |  |  | 15 us | 15.0 ns an op |  |  |", text)
        self.assertNotIn("broken", text)
        self.assertIn("Machine: znver5, vectors of 512 bits, 276 GFLOP/s", text)
        self.assertIn("with other work on it (load 3.2)", text)

    def test_picture_shows_the_rows_with_operations(self):
        svg = PAGE.roofline(self.rows, 1)
        texts = [node.text for node in tree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]
        self.assertIn("mm64", texts)
        self.assertNotIn("sum_16M", texts)
        self.assertIn("276 GFLOP/s, 67 GB/s from memory", texts)


if __name__ == "__main__":
    unittest.main()
