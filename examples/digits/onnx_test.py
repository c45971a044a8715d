#!/usr/bin/env python3
"""onnx_test.py DIGITS SVOD_JIT: trains the network, exports it, and reads the pictures that were
kept back through svod-jit: all at once, and in two parts of other sizes. Fails unless the share
that is read right is the one that the training program reports. Run it from the root of the tree.
"""
import os
import re
import struct
import subprocess
import sys
import tempfile

import export

PICTURES, PIXELS, DIGITS, HEADER = 1797, 64, 10, 128


def held_out():
    """Rows of 64 pixels and the digit: every fifth picture, as main.cc keeps them back."""
    with open("examples/data/digits.npy", "rb") as file:
        content = file.read()
    row = PIXELS + 1
    return [content[HEADER + i * row:HEADER + (i + 1) * row] for i in range(0, PICTURES, 5)]


def write_npy(path, shape, values):
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}"
    header = header.ljust(HEADER - 10 - 1) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        file.write(struct.pack(f"<{len(values)}f", *values))


def read_digits(svod_jit, folder, rows):
    """The digits that the model takes the pictures for."""
    pictures, scores = os.path.join(folder, "pictures.npy"), os.path.join(folder, "scores.npy")
    write_npy(pictures, (len(rows), PIXELS), [pixel / 16 for row in rows for pixel in row[:PIXELS]])
    subprocess.run([svod_jit, "run", os.path.join(folder, "digits.onnx"), "--dim=N=1..512",
                    f"--input=@{pictures}", f"--output=@{scores}"],
                   check=True, stdout=subprocess.DEVNULL)
    shape, data = export.read_npy(scores)
    if shape != (len(rows), DIGITS):
        sys.exit(f"expected scores of shape {(len(rows), DIGITS)}, got {shape}")
    return [max(range(DIGITS), key=of_picture.__getitem__)
            for of_picture in struct.iter_unpack(f"<{DIGITS}f", data)]


def main():
    digits, svod_jit = sys.argv[1:]
    rows = held_out()
    with tempfile.TemporaryDirectory() as folder:
        report = subprocess.run([digits, folder], check=True, capture_output=True, text=True).stdout
        subprocess.run([sys.executable, export.__file__, folder], check=True)
        together = read_digits(svod_jit, folder, rows)
        in_parts = read_digits(svod_jit, folder, rows[:1]) + read_digits(svod_jit, folder, rows[1:])

    if together != in_parts:
        sys.exit("pictures are read as other digits in a batch of another size")
    reported = re.search(r"([\d.]+) % of the (\d+) kept back", report)
    num_right = sum(digit == row[PIXELS] for digit, row in zip(together, rows))
    share = f"{100 * num_right / len(rows):.2f}"
    print(f"{num_right} of {len(rows)}: {share} %, the training program reads {reported[1]} %")
    if (share, str(len(rows))) != reported.groups() or num_right < 0.95 * len(rows):
        sys.exit("WRONG")


if __name__ == "__main__":
    main()
