"""Compiles one training step of a sharded transformer for 256 devices, and prints it as HLO text. No device is needed.

Usage: ``python transformer.py > transformer.hlo``. It needs JAX (the extra ``jax``).
"""

import os
import re
from typing import Any

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=256"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

LAYERS, BATCH, LENGTH, WIDTH, HEADS = 4, 64, 2048, 4096, 32
#: The axis `data` splits the batch and the stored weights into 32 parts, `tensor` each matrix product into 8.
mesh = Mesh(np.array(jax.devices()).reshape(32, 8), ("data", "tensor"))


def sharded(shape: tuple[int, ...], *axes: str) -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=NamedSharding(mesh, PartitionSpec(*axes)))


def layer(x: jax.Array, weights: dict[str, jax.Array]) -> jax.Array:
    # The columns of `qkv` are ordered by head, so no part of q, k or v moves to another device.
    q, k, v = jnp.split((x @ weights["qkv"]).reshape(*x.shape[:2], HEADS, -1), 3, axis=-1)
    scores = jax.nn.softmax(jnp.einsum("bqhd,bkhd->bhqk", q, k))
    x = x + jnp.einsum("bhqk,bkhd->bqhd", scores, v).reshape(x.shape) @ weights["out"]
    return x + jax.nn.gelu(x @ weights["up"]) @ weights["down"]


def loss(model: Any, x: jax.Array) -> jax.Array:
    for weights in model:
        x = layer(x, weights)
    return jnp.mean(x**2)


def step(model: Any, x: jax.Array) -> Any:
    return jax.tree.map(lambda weight, slope: weight - 0.01 * slope, model, jax.grad(loss)(model, x))


weights = {
    "qkv": sharded((WIDTH, 3 * WIDTH), "data", "tensor"),
    "out": sharded((WIDTH, WIDTH), "tensor", "data"),
    "up": sharded((WIDTH, 4 * WIDTH), "data", "tensor"),
    "down": sharded((4 * WIDTH, WIDTH), "tensor", "data"),
}
model = [weights] * LAYERS
kept = jax.tree.map(lambda weight: weight.sharding, model)
compiled = jax.jit(step, out_shardings=kept).lower(model, sharded((BATCH, LENGTH, WIDTH), "data")).compile()
# Source locations are left out, because they are a third of the text.
print(re.sub(r", metadata=\{[^}]*\}|\nFileNames.*?(?=\n\n%)", "", compiled.as_text(), flags=re.DOTALL))
