"""A flow with jax-cfd: decaying turbulence on a periodic grid."""

import json

import jax
import jax.numpy as jnp
import jax_cfd.base as cfd

grid = cfd.grids.Grid((32, 32), domain=((0, 2 * jnp.pi), (0, 2 * jnp.pi)))
velocity = cfd.initial_conditions.filtered_velocity_field(jax.random.PRNGKey(0), grid, 3.0, 4)
step = cfd.equations.semi_implicit_navier_stokes(
    density=1.0, viscosity=1e-2, dt=0.01, grid=grid)
later = jax.jit(cfd.funcutils.repeated(step, 10))(velocity)
print(json.dumps({
    "before": [float(jnp.abs(v.data).mean()) for v in velocity],
    "after": [float(jnp.abs(v.data).mean()) for v in later],
    "divergence": float(jnp.abs(cfd.finite_differences.divergence(later).data).max() < 1e-4),
    "curl": float(jnp.abs(cfd.finite_differences.curl_2d(later).data).mean())}))
