"""Functions of pytensor, compiled by JAX."""

import json

import numpy as np
import pytensor
import pytensor.tensor as pt

x = pt.matrix("x")
cost = (pt.special.softmax(x, axis=1) * pt.log(pt.abs(x) + 1)).sum() + pt.linalg.det(x)
f = pytensor.function([x], [cost, pytensor.grad(cost, x), pt.sort(x, axis=1)], mode="JAX")
value, gradient, ordered = f(np.arange(9.0).reshape(3, 3) ** 1.5 - 2)
print(json.dumps({"value": float(value), "gradient": np.asarray(gradient).ravel().tolist(),
                  "ordered": np.asarray(ordered)[0].tolist()}))
