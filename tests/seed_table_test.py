"""docs/seed.md names all 118 rows, each with tests that exist and carry the row in their names."""
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
SECTIONS = {"T": 20, "D": 16, "B": 18, "E": 29, "V": 13, "P": 7, "A": 15}
ROWS = [f"{letter}{i}" for letter, count in SECTIONS.items() for i in range(1, count + 1)]


def tests_of_the_tree():
    names = set()
    for folder in ("plan", "executor"):
        for file in (ROOT / "tests" / "unit" / folder).glob("*_test.cc"):
            for suite, name in re.findall(
                r"^TEST(?:_F|_P)?\((\w+),\s*(\w+)", file.read_text(), re.MULTILINE
            ):
                names.add(f"{suite}.{name}")
    return names


class SeedTable(unittest.TestCase):
    def test_every_row_names_tests_that_exist(self):
        table = {}
        for line in (ROOT / "docs" / "seed.md").read_text().splitlines():
            row = re.match(r"\| ([A-Z]\d+) \|", line)
            if row:
                table[row.group(1)] = re.findall(r"`(\w+\.\w+)`", line)
        self.assertEqual(list(table), ROWS)
        existing = tests_of_the_tree()
        for row, tests in table.items():
            self.assertTrue(tests, row)
            for test in tests:
                self.assertIn(test, existing, row)
                self.assertRegex(test, rf"{row}(?!\d)", row)


if __name__ == "__main__":
    unittest.main()
