"""Optimal transport with ott: Sinkhorn's iterations, their gradient, barycenters of ranks."""

import json

import jax
from ott.geometry import pointcloud
from ott.problems.linear import linear_problem
from ott.solvers.linear import sinkhorn, sinkhorn_lr
from ott.tools import soft_sort

x = jax.random.normal(jax.random.key(0), (12, 2))
y = jax.random.normal(jax.random.key(1), (15, 2)) + 1.0


def cost(x):
    geometry = pointcloud.PointCloud(x, y, epsilon=0.1)
    return sinkhorn.Sinkhorn()(linear_problem.LinearProblem(geometry)).reg_ot_cost


low_rank = sinkhorn_lr.LRSinkhorn(rank=3)(
    linear_problem.LinearProblem(pointcloud.PointCloud(x, y, epsilon=0.1)))
print(json.dumps({"cost": float(cost(x)), "gradient": jax.grad(cost)(x).sum(0).tolist(),
                  "low_rank": float(low_rank.primal_cost),
                  "ranks": soft_sort.ranks(x[:5, 0]).tolist()}))
