#!/usr/bin/env python3
"""Writes x.npy beside itself: 64 x 128 values of f32 from the standard normal distribution, always
the same ones. It is the input of examples/softmax.uop."""
import os
import random
import struct

ROWS, COLUMNS = 64, 128

values = random.Random(2024)
data = struct.pack(f"<{ROWS * COLUMNS}f", *(values.gauss(0, 1) for _ in range(ROWS * COLUMNS)))
header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({ROWS}, {COLUMNS}), }}"
header = header.ljust(128 - 10 - 1) + "\n"  # the data starts at byte 128
path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "x.npy")
with open(path, "wb") as file:
    file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data)
