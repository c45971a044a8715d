#!/usr/bin/env python3
"""export.py FOLDER: writes the model digits.onnx from the weights that `digits FOLDER` left there.

    scores = Gemm(Relu(Gemm(pictures, w1, b1)), w2, b2)

for any number N of pictures. The file is written by hand, with nothing but Python: a message of
Protocol Buffers is a row of fields, each a number, a kind and a value. The numbers of the fields
are those of onnx.proto: https://github.com/onnx/onnx/blob/main/onnx/onnx.proto
"""
import ast
import os
import struct
import sys

IR_VERSION, OPSET = 8, 17
FLOAT = 1  # TensorProto.DataType


def read_npy(path):
    """The shape and the bytes of an array of little-endian f32."""
    with open(path, "rb") as file:
        content = file.read()
    if content[:8] != b"\x93NUMPY\x01\x00":
        raise ValueError(f"{path}: not a NumPy file of version 1.0")
    begin = 10 + struct.unpack_from("<H", content, 8)[0]
    header = ast.literal_eval(content[10:begin].decode("latin1"))
    if header["descr"] != "<f4" or header["fortran_order"]:
        raise ValueError(f"{path}: expected rows of f32, got {header}")
    return header["shape"], content[begin:]


def varint(value):
    """Seven bits a byte, the lowest first; the highest bit says that more follow."""
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def field(number, value):
    """A field: of kind 0 for a number, of kind 2 with its length for text and messages."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    if isinstance(value, str):
        value = value.encode()
    return varint(number << 3 | 2) + varint(len(value)) + value


def tensor(name, shape, raw_data):
    dims = b"".join(field(1, size) for size in shape)
    return dims + field(2, FLOAT) + field(8, name) + field(9, raw_data)


def value_info(name, shape):
    """The type of an input or output. A size is a number, or the name of what is known later."""
    dims = b"".join(field(1, field(1 if isinstance(size, int) else 2, size)) for size in shape)
    tensor_type = field(1, FLOAT) + field(2, dims)
    return field(1, name) + field(2, field(1, tensor_type))


def node(operator, inputs, output):
    names = b"".join(field(1, name) for name in inputs)
    return names + field(2, output) + field(3, f"{operator}_{output}") + field(4, operator)


def model(weights):
    """The bytes of the model, of {name: (shape, bytes)}."""
    nodes = [
        node("Gemm", ["pictures", "w1", "b1"], "sums"),
        node("Relu", ["sums"], "hidden"),
        node("Gemm", ["hidden", "w2", "b2"], "scores"),
    ]
    pixels, digits = weights["w1"][0][0], weights["b2"][0][0]
    graph = b"".join(field(1, each) for each in nodes)
    graph += field(2, "digits")
    graph += b"".join(field(5, tensor(name, *array)) for name, array in weights.items())
    graph += field(11, value_info("pictures", ["N", pixels]))
    graph += field(12, value_info("scores", ["N", digits]))
    return field(1, IR_VERSION) + field(2, "svod") + field(7, graph) + field(8, field(2, OPSET))


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = sys.argv[1]
    weights = {name: read_npy(os.path.join(folder, name + ".npy"))
               for name in ("w1", "b1", "w2", "b2")}
    with open(os.path.join(folder, "digits.onnx"), "wb") as file:
        file.write(model(weights))


if __name__ == "__main__":
    main()
