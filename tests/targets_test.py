#!/usr/bin/env python3
"""Kernels compiled for other targets give the bits that they give here: targets_test.py SVOD_JIT TARGET

TARGET is a CPU of this machine's architecture, which `svod-jit run --cpu` compiles for, or aarch64:
then each kernel is lowered to assembly, linked with a main program that calls it once, and run under
qemu-user. Its output is compared with what `svod-jit run` writes. Exit code 77 (skipped) where the
machine cannot run such code, or without the cross compiler or qemu.
"""
import array
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile

COMPILER, EMULATOR = "aarch64-linux-gnu-gcc", "qemu-aarch64"

# name: (text, [(parameter, elements, type)]); parameter 0 is the output.
KERNELS = {
    "matmul": ("""
kernel @matmul(%y: out f32[17, 70], %a: f32[17, 19], %b: f32[19, 70]) opts=[auto, mulacc] {
  %i = range 17 loop
  %j = range 70 loop
  %k = range 19 reduce
  %v = load %a[%i, %k]
  %w = load %b[%k, %j]
  %p = mul %v, %w
  %s = reduce_add %p, %k
  store %y[%i, %j], %s
  end %j
  end %i
}""", [("y", (17, 70), "f"), ("a", (17, 19), "f"), ("b", (19, 70), "f")]),
    "transposed": ("""
kernel @transposed(%y: out f32[24, 40], %a: f32[24, 9], %b: f32[40, 9]) opts=[auto, mulacc] {
  %i = range 24 loop
  %j = range 40 loop
  %k = range 9 reduce
  %v = load %a[%i, %k]
  %w = load %b[%j, %k]
  %p = mul %v, %w
  %s = reduce_add %p, %k
  store %y[%i, %j], %s
  end %j
  end %i
}""", [("y", (24, 40), "f"), ("a", (24, 9), "f"), ("b", (40, 9), "f")]),
    "softmax": ("""
kernel @softmax(%y: out f32[5, 67], %x: f32[5, 67]) opts=[auto] {
  %r = range 5 loop
    %k = range 67 reduce
    %v = load %x[%r, %k]
    %max = reduce_max %v, %k
    %l = range 67 reduce
    %w = load %x[%r, %l]
    %d = sub %w, %max
    %e = exp %d
    %sum = reduce_add %e, %l
    %i = range 67 loop
      %z = load %x[%r, %i]
      %f = sub %z, %max
      %g = exp %f
      %q = fdiv %g, %sum
      store %y[%r, %i], %q
    end %i
  end %r
}""", [("y", (5, 67), "f"), ("x", (5, 67), "f")]),
    "functions": ("""
kernel @functions(%y: out f64[101], %x: f64[101]) opts=[auto] {
  %i = range 101 loop
  %v = load %x[%i]
  %s = sin %v
  %a = abs %v
  %b = add %a, 0.5
  %l = log2 %b
  %t = sqrt %b
  %u = add %s, %l
  %w = add %u, %t
  store %y[%i], %w
  end %i
}""", [("y", (101,), "d"), ("x", (101,), "d")]),
    "windows": ("""
kernel @windows(%y: out f32[31], %x: f32[64]) opts=[auto] {
  %i = range 31 loop
  %k = range 3 reduce
  %a = mul %i, 2
  %p = add %a, %k
  %g = cmplt 0, %p
  %q = add %p, -1
  %v = load %x[%q], gate=%g
  %m = reduce_max %v, %k
  store %y[%i], %m
  end %i
}""", [("y", (31,), "f"), ("x", (64,), "f")]),
    "integers": ("""
kernel @integers(%y: out i32[45], %x: i32[45], %z: i32[45]) opts=[auto] {
  %i = range 45 loop
  %a = load %x[%i]
  %b = load %z[%i]
  %q = cdiv %a, %b
  %r = floormod %a, %b
  %s = mul %q, 3
  %t = xor %s, %r
  store %y[%i], %t
  end %i
}""", [("y", (45,), "i"), ("x", (45,), "i"), ("z", (45,), "i")]),
}


def values(count, kind, seed):
    """Numbers of both signs and several sizes, the same every time."""
    numbers = [((i * 2654435761 + seed * 40503) % 4294967296) / 2147483648 - 1 for i in range(count)]
    if kind == "i":
        return array.array("i", [int(number * 2000) for number in numbers])
    return array.array(kind, [number * 4 for number in numbers])


def write_npy(path, shape, kind, data):
    code = {"f": "<f4", "d": "<f8", "i": "<i4"}[kind]
    header = "{'descr': '%s', 'fortran_order': False, 'shape': (%s), }" % (
        code, "".join("%d, " % size for size in shape))
    header += " " * (-(len(header) + 11) % 64) + "\n"
    path.write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() +
                     data.tobytes())


def npy_bytes(path):
    content = path.read_bytes()
    (size,) = struct.unpack("<H", content[8:10])
    return content[10 + size:]


def run(*command):
    done = subprocess.run(command, capture_output=True, check=False)
    if b"cannot run on this machine" in done.stderr:
        print(f"skipped: {done.stderr.decode().strip()}")
        sys.exit(77)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, command))}: {done.stderr.decode()}")
    return done.stdout


def check(tool, target, folder, name, text, parameters):
    source = folder / f"{name}.uop"
    source.write_text(text)
    inputs, arrays = [], []
    for number, (label, shape, kind) in enumerate(parameters):
        count = 1
        for size in shape:
            count *= size
        data = values(count, kind, number)
        arrays.append(data)
        if number > 0:
            path = folder / f"{name}_{label}.npy"
            write_npy(path, shape, kind, data)
            inputs.append(f"--input={label}=@{path}")
    output = folder / f"{name}_y.npy"
    run(tool, "run", "--cache_dir=off", source, *inputs, f"--output=@{output}")

    if target == "aarch64":
        got = run_emulated(tool, folder, source, arrays)
    else:
        other = folder / f"{name}_other.npy"
        run(tool, "run", "--cache_dir=off", f"--cpu={target}", source, *inputs, f"--output=@{other}")
        got = npy_bytes(other)
    expected = npy_bytes(output)
    if got == expected:
        return True
    differing = next(i for i in range(0, len(expected), 4) if got[i:i + 4] != expected[i:i + 4])
    print(f"{name}: byte {differing}: got {got[differing:differing + 4].hex()}, "
          f"expected {expected[differing:differing + 4].hex()}")
    return False


def run_emulated(tool, folder, source, arrays):
    """The first parameter's bytes after one call of the kernel."""
    name = source.stem
    assembly = folder / f"{name}.s"
    assembly.write_bytes(run(tool, "lower", "--emit=asm", "--triple=aarch64-linux-gnu", source))
    symbol = re.search(r"\.globl\s+(svod_\w+)", assembly.read_text()).group(1)
    program = ["#include <stdint.h>", "#include <stdio.h>",
               f"int32_t {symbol}(void* const*, const int64_t*, int64_t, void*);",
               "static _Alignas(64) unsigned char scratch[1 << 20];"]
    for number, data in enumerate(arrays):
        content = ",".join(str(byte) for byte in data.tobytes())
        program.append(f"static _Alignas(64) unsigned char p{number}[] = {{{content}}};")
    program.append("int main(void) {\n  void* buffers[] = {%s};\n  int32_t code = %s(buffers, 0, 0, "
                   "scratch);\n  fwrite(p0, 1, sizeof p0, stdout);\n  return code;\n}" %
                   (", ".join(f"p{number}" for number in range(len(arrays))), symbol))
    main = folder / f"{name}.c"
    main.write_text("\n".join(program))
    binary = folder / name
    run(COMPILER, "-static", "-O1", main, assembly, "-o", binary)
    return run(EMULATOR, binary)


def main():
    tool, target = sys.argv[1:]
    if target == "aarch64" and not (shutil.which(COMPILER) and shutil.which(EMULATOR)):
        print(f"skipped: no {COMPILER} or {EMULATOR}")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        results = [check(tool, target, pathlib.Path(folder), name, *kernel)
                   for name, kernel in KERNELS.items()]
    print(f"{sum(results)} of {len(results)} kernels give the same bits on {target}")
    return 0 if all(results) else 1


sys.exit(main())
