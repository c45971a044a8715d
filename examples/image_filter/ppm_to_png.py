#!/usr/bin/env python3
"""ppm_to_png.py PICTURE.ppm...: writes each picture (P6, 8 bits, no comments) as PICTURE.png."""
import re
import struct
import sys
import zlib


def chunk(kind, data):
    checksum = zlib.crc32(kind + data)
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", checksum)


def predicted(row, above):
    """The row less what PNG's filter 4 (Paeth) predicts from the pixel to the left and those above."""
    out = bytearray([4])
    for i, value in enumerate(row):
        left, corner = (row[i - 3], above[i - 3]) if i >= 3 else (0, 0)
        guess = left + above[i] - corner
        nearest = min((abs(guess - left), 0, left), (abs(guess - above[i]), 1, above[i]),
                      (abs(guess - corner), 2, corner))[2]
        out.append((value - nearest) & 255)
    return bytes(out)


for path in sys.argv[1:]:
    with open(path, "rb") as file:
        data = file.read()
    header = re.match(rb"P6\s+(\d+)\s+(\d+)\s+255\s", data)
    width, height = int(header[1]), int(header[2])
    stride = 3 * width
    rows = [data[i:i + stride] for i in range(header.end(), header.end() + height * stride, stride)]
    filtered = b"".join(map(predicted, rows, [bytes(stride), *rows]))
    with open(re.sub(r"\.ppm$", "", path) + ".png", "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" +
                   chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)) +
                   chunk(b"IDAT", zlib.compress(filtered, 9)) + chunk(b"IEND", b""))
