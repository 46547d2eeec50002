"""A neuron with jaxley: simulated, and differentiated by a conductance."""

import json

import jax
import jax.numpy as jnp
import jaxley as jx
from jaxley.channels import HH

cell = jx.Cell(jx.Branch(jx.Compartment(), ncomp=2), parents=[-1, 0, 0])
cell.insert(HH())
cell.branch(0).loc(0.0).stimulate(jx.step_current(1.0, 2.0, 0.1, 0.025, 8.0), verbose=False)
cell.branch(1).loc(1.0).record(verbose=False)
cell.make_trainable("HH_gNa", verbose=False)


def peak(params):
    return jnp.max(jx.integrate(cell, params=params))


params = cell.get_parameters()
gradient = jax.grad(peak)(params)
print(json.dumps({"peak": float(peak(params)), "gradient": float(gradient[0]["HH_gNa"].sum())}))
