#!/usr/bin/env python3
"""Writes digits.npy beside itself from scikit-learn's digits.csv.gz, which is named on the command
line. It holds 1,797 rows of u8: 64 pixels of 0 to 16, row by row, then the digit. Where the pictures
come from and their licence stand in examples/README.md."""
import gzip
import os
import struct
import sys

rows = [[int(float(field)) for field in line.split(",")]
        for line in gzip.open(sys.argv[1], "rt", encoding="ascii")]
assert len(rows) == 1797 and all(len(row) == 65 for row in rows)
header = f"{{'descr': '|u1', 'fortran_order': False, 'shape': ({len(rows)}, 65), }}"
header = header.ljust(128 - 10 - 1) + "\n"  # the data starts at byte 128
path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "digits.npy")
with open(path, "wb") as file:
    file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
    for row in rows:
        file.write(bytes(row))
