"""Checkpoints of orbax: saved, managed and restored."""

import json
import tempfile

import jax
import jax.numpy as jnp
import numpy as np
import orbax.checkpoint as ocp

tree = {"w": jnp.arange(12.0).reshape(3, 4), "b": jnp.ones(4, jnp.bfloat16), "step": 3,
        "key": np.arange(3)}
with tempfile.TemporaryDirectory() as folder:
    with ocp.StandardCheckpointer() as saver:
        saver.save(f"{folder}/one", tree)
        saver.wait_until_finished()
        abstract = jax.tree.map(ocp.utils.to_shape_dtype_struct, tree)
        again = saver.restore(f"{folder}/one", abstract)
    with ocp.CheckpointManager(f"{folder}/many", options=ocp.CheckpointManagerOptions(
            max_to_keep=2)) as manager:
        for step in range(4):
            manager.save(step, args=ocp.args.StandardSave(
                {"w": tree["w"] + step}))
        manager.wait_until_finished()
        steps = manager.all_steps()
        last = manager.restore(3, args=ocp.args.StandardRestore({"w": abstract["w"]}))
print(json.dumps({
    "w": float(again["w"].sum()), "dtype": str(again["b"].dtype), "step": int(again["step"]),
    "key": again["key"].tolist(), "steps": sorted(steps), "last": float(last["w"].sum()),
    "array": isinstance(last["w"], jax.Array)}))
