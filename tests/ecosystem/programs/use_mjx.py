"""A MuJoCo model stepped by mjx."""

import json

import jax
import mujoco
from mujoco import mjx

XML = """<mujoco><worldbody><light/><geom type="plane" size="1 1 .1"/>
<body pos="0 0 .3"><freejoint/><geom type="sphere" size=".1"/></body>
<body pos="1 0 1"><joint type="hinge" axis="0 1 0"/>
<geom type="capsule" size=".05" fromto="0 0 0 .3 0 0"/></body></worldbody></mujoco>"""
model = mujoco.MjModel.from_xml_string(XML)
m = mjx.put_model(model)
d = mjx.make_data(m)
step = jax.jit(mjx.step)
for _ in range(50):
    d = step(m, d)
print(json.dumps({"qpos": [float(v) for v in d.qpos], "qvel": [float(v) for v in d.qvel]}))
