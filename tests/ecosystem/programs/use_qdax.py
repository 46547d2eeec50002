"""Quality and diversity with qdax: a repertoire of centroids, filled."""

import json

import jax
import jax.numpy as jnp
from qdax.core.containers.mapelites_repertoire import MapElitesRepertoire, compute_cvt_centroids
from qdax.core.emitters.mutation_operators import isoline_variation, polynomial_mutation

points = jax.random.uniform(jax.random.key(0), (64, 2))
found = compute_cvt_centroids(2, 200, 16, 0.0, 1.0, jax.random.key(1))
centroids = found[0] if isinstance(found, tuple) else found
repertoire = MapElitesRepertoire.init(
    genotypes=points, fitnesses=-jnp.sum(points ** 2, -1, keepdims=True), descriptors=points,
    centroids=jnp.stack(jnp.meshgrid(*[jnp.linspace(0.1, 0.9, 4)] * 2), -1).reshape(-1, 2))
mixed = isoline_variation(points[:32], points[32:], jax.random.key(2), 0.05, 0.1)
mixed = mixed[0] if isinstance(mixed, tuple) else mixed
changed = polynomial_mutation(points, jax.random.key(3), 0.5, 1.0, 0.0, 1.0)
changed = changed[0] if isinstance(changed, tuple) else changed
print(json.dumps({
    "centroids": list(centroids.shape), "filled": int((repertoire.fitnesses > -jnp.inf).sum()),
    "fitness": float(jnp.where(repertoire.fitnesses > -jnp.inf, repertoire.fitnesses, 0).sum()),
    "mixed": float(mixed.sum()), "changed": float(changed.sum())}))
