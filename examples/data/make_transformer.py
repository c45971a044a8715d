#!/usr/bin/env python3
"""Writes the tensors of examples/transformer.uop into transformer/ beside itself: what goes in,
always the same, and what NumPy says comes out, computed in f64 and rounded to f32. Needs NumPy."""
import math
import os

import numpy as np

BATCH, TOKENS, WIDTH, HEADS, INNER = 2, 12, 32, 4, 64
random = np.random.RandomState(2024)  # its stream is frozen
folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "transformer")


def normal(*shape, scale=1.0, mean=0.0):
    return (mean + scale * random.standard_normal(shape)).astype(np.float32)


def layer_norm(x, gain, bias):
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred ** 2).mean(-1, keepdims=True) + 1e-5) * gain + bias


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def gelu(x):
    return x * (1 + np.vectorize(math.erf)(x / math.sqrt(2))) / 2


tensors = {
    "x": normal(BATCH, TOKENS, WIDTH),
    "lengths": np.array([12, 7], np.int32),
    "qkv": normal(3 * WIDTH, WIDTH, scale=WIDTH ** -0.5),
    "qkv_bias": normal(3 * WIDTH, scale=0.1),
    "out": normal(WIDTH, WIDTH, scale=WIDTH ** -0.5),
    "out_bias": normal(WIDTH, scale=0.1),
    "up": normal(INNER, WIDTH, scale=WIDTH ** -0.5),
    "up_bias": normal(INNER, scale=0.1),
    "down": normal(WIDTH, INNER, scale=INNER ** -0.5),
    "down_bias": normal(WIDTH, scale=0.1),
    "gain": normal(2, WIDTH, scale=0.1, mean=1.0),
    "shift": normal(2, WIDTH, scale=0.1),
}


def heads(x):
    return x.reshape(BATCH, TOKENS, HEADS, WIDTH // HEADS).transpose(0, 2, 1, 3)


t = {name: values.astype(np.float64) for name, values in tensors.items()}
h = layer_norm(t["x"], t["gain"][0], t["shift"][0])
q, k, v = (heads(part) for part in np.split(h @ t["qkv"].T + t["qkv_bias"], 3, axis=-1))
scores = q @ k.transpose(0, 1, 3, 2) / math.sqrt(WIDTH // HEADS)
seen = np.arange(TOKENS) < t["lengths"].reshape(BATCH, 1, 1, 1)
attended = softmax(np.where(seen, scores, -np.inf)) @ v
merged = attended.transpose(0, 2, 1, 3).reshape(BATCH, TOKENS, WIDTH)
y = t["x"] + merged @ t["out"].T + t["out_bias"]
h = layer_norm(y, t["gain"][1], t["shift"][1])
y = y + gelu(h @ t["up"].T + t["up_bias"]) @ t["down"].T + t["down_bias"]
tensors["y"] = y.astype(np.float32)

os.makedirs(folder, exist_ok=True)
for name, values in tensors.items():
    np.save(os.path.join(folder, name + ".npy"), values)
