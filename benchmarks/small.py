"""Programs of many operations on few numbers, as users write them: what `programs.py --small`
compares."""

import math
from typing import Any, NamedTuple

import numpy as np


class Program(NamedTuple):
    """A step from state to state, the first state, and a compiled function with its arguments."""

    step: Any
    state: Any
    main: Any = None


def normal(rng, *shape):
    return (rng.standard_normal(shape) / math.prod(shape[:-1]) ** 0.5).astype("float32")


def called(jax, function, *arguments):
    """The program that calls a compiled function on the same arguments, again and again."""
    arguments = jax.tree.map(jax.numpy.asarray, arguments)
    compiled = jax.jit(function)
    return Program(lambda _: compiled(*arguments), None, (compiled, *arguments))


def tracking():
    """Motion in a plane in steps of 0.1, seen by its place: transition, noise, and what is seen."""
    motion = np.eye(4, dtype="float32") + 0.1 * np.eye(4, k=2, dtype="float32")
    return motion, 0.01 * np.eye(4, dtype="float32"), np.eye(2, 4, dtype="float32")


def kalman(jax, jnp, rng):
    """A Kalman filter of four states over 2,000 steps, each of which sees one number."""
    motion, noise, seen = tracking()
    row = seen[0] + 0.5 * seen[1]

    def filtered(places):
        def step(state, place):
            mean, cov = state
            mean, cov = motion @ mean, motion @ cov @ motion.T + noise
            gain = cov @ row / (row @ cov @ row + 0.1)
            mean = mean + gain * (place - row @ mean)
            cov = cov - jnp.outer(gain, row @ cov)
            return (mean, cov), mean
        return jax.lax.scan(step, (jnp.zeros(4), jnp.eye(4)), places)[1]

    return called(jax, filtered, normal(rng, 2000))


def kalman_solve(jax, jnp, rng):
    """The same where each step sees two numbers and solves a system."""
    motion, noise, seen = tracking()

    def filtered(places):
        def step(state, place):
            mean, cov = state
            mean, cov = motion @ mean, motion @ cov @ motion.T + noise
            spread = seen @ cov @ seen.T + 0.1 * jnp.eye(2)
            gain = jnp.linalg.solve(spread, seen @ cov).T
            mean = mean + gain @ (place - seen @ mean)
            return (mean, cov - gain @ seen @ cov), mean
        return jax.lax.scan(step, (jnp.zeros(4), jnp.eye(4)), places)[1]

    return called(jax, filtered, normal(rng, 2000, 2))


def filter8(jax, jnp, rng):
    """A filter of eight states over 1,000 steps, each of which sees four numbers."""
    motion = np.eye(8, dtype="float32") + 0.1 * np.eye(8, k=4, dtype="float32")
    seen = np.eye(4, 8, dtype="float32")

    def filtered(places):
        def step(state, place):
            mean, cov = state
            mean, cov = motion @ mean, motion @ cov @ motion.T + 0.01 * jnp.eye(8)
            gain = jnp.linalg.solve(seen @ cov @ seen.T + 0.1 * jnp.eye(4), seen @ cov).T
            mean = mean + gain @ (place - seen @ mean)
            return (mean, cov - gain @ seen @ cov), mean
        return jax.lax.scan(step, (jnp.zeros(8), jnp.eye(8)), places)[1]

    return called(jax, filtered, normal(rng, 1000, 4))


def fourth_order(field, y, h):
    """A step of the classical Runge-Kutta method."""
    a = field(y)
    b = field(y + h / 2 * a)
    c = field(y + h / 2 * b)
    d = field(y + h * c)
    return y + h / 6 * (a + 2 * b + 2 * c + d)


def rk4(jax, jnp, rng):
    """Lorenz's model of 40 numbers over 1,000 steps."""
    def field(x):
        return (jnp.roll(x, -1) - jnp.roll(x, 2)) * jnp.roll(x, 1) - x + 8.0

    def solved(x):
        return jax.lax.fori_loop(0, 1000, lambda _, x: fourth_order(field, x, 0.01), x)

    return called(jax, solved, normal(rng, 40))


def diffused(jnp, u):
    """Fisher's equation on a grid of 64 x 64, one step."""
    def slope(u):
        near = sum(jnp.roll(u, i, axis) for i in (1, -1) for axis in (0, 1))
        return 0.2 * (near - 4 * u) + u * (1 - u)
    return fourth_order(slope, u, 0.1)


def grid(jax, jnp, rng):
    """A wave on a grid over 200 steps."""
    def solved(u):
        return jax.lax.fori_loop(0, 200, lambda _, u: diffused(jnp, u), u)

    return called(jax, solved, np.float32(rng.random((64, 64))))


def grid_gradient(jax, jnp, rng):
    """The gradient of where such a wave ends after 50 steps."""
    def end(u):
        return jnp.sum(jax.lax.scan(lambda u, _: (diffused(jnp, u), None), u, None, 50)[0] ** 2)

    return called(jax, jax.grad(end), np.float32(rng.random((64, 64))))


def pendulum(jnp, y, length):
    return jnp.stack([y[1], -9.81 / length * jnp.sin(y[0]) - 0.1 * y[1]])


def adaptive(jax, jnp, rng):
    """Heun's method of a pendulum with steps that are accepted or not."""
    def solved(y, length):
        def step(state):
            t, y, h = state
            h = jnp.minimum(h, 20.0 - t)
            a = pendulum(jnp, y, length)
            b = pendulum(jnp, y + h * a, length)
            error = jnp.max(jnp.abs(h / 2 * (b - a))) / 1e-4
            t, y = jax.lax.cond(error < 1, lambda: (t + h, y + h / 2 * (a + b)), lambda: (t, y))
            return t, y, h * jnp.clip(0.9 * error**-0.5, 0.3, 3.0)
        return jax.lax.while_loop(lambda s: s[0] < 20.0, step, (jnp.float32(0), y,
                                                                jnp.float32(0.1)))[1]

    return called(jax, solved, np.float32([1.0, 0.0]), np.float32(1.5))


def through_integrator(jax, jnp, rng):
    """The gradient of where a pendulum ends after 500 steps."""
    def end(length, y):
        def step(y, _):
            return fourth_order(lambda y: pendulum(jnp, y, length), y, 0.02), None
        return jnp.sum(jax.lax.scan(step, y, None, 500)[0] ** 2)

    return called(jax, jax.grad(end, (0, 1)), np.float32(1.5), np.float32([1.0, 0.0]))


def chain(jax, jnp, rng):
    """Two hundred draws by HMC from a posterior of five numbers."""
    x, y = normal(rng, 20, 5) * 4, np.float32(rng.random(20) > 0.5)

    def energy(w):
        logits = x @ w
        return jnp.sum(jnp.logaddexp(logits, 0) - y * logits) + 0.5 * jnp.sum(w**2)

    def draw(w, key):
        for_momentum, for_choice = jax.random.split(key)
        start = momentum = jax.random.normal(for_momentum, w.shape)

        def leap(_, state):
            w, m = state
            m = m - 0.05 * jax.grad(energy)(w)
            w = w + 0.1 * m
            return w, m - 0.05 * jax.grad(energy)(w)

        moved, momentum = jax.lax.fori_loop(0, 8, leap, (w, momentum))
        gain = energy(w) - energy(moved) + 0.5 * jnp.sum(start**2 - momentum**2)
        w = jnp.where(jnp.log(jax.random.uniform(for_choice)) < gain, moved, w)
        return w, w

    def sampled(key, w):
        return jax.lax.scan(draw, w, jax.random.split(key, 200))[1]

    return called(jax, sampled, jax.random.key(0), np.zeros(5, "float32"))


def recurrent(width, length, gates, cell):
    def make(jax, jnp, rng):
        weights = normal(rng, width, gates * width), normal(rng, width, gates * width), \
            normal(rng, gates * width)

        def run(weights, sequence):
            state = (jnp.zeros(width), jnp.zeros(width))
            return jax.lax.scan(lambda s, x: (cell(jax, jnp, weights, s, x), None), state,
                                sequence)[0][0]

        return called(jax, run, weights, normal(rng, length, width))
    return make


def gru_cell(jax, jnp, weights, state, x):
    (w, u, b), (h, _) = weights, state
    xr, xz, xn = jnp.split(x @ w + b, 3)
    hr, hz, hn = jnp.split(h @ u, 3)
    z = jax.nn.sigmoid(xz + hz)
    h = (1 - z) * jnp.tanh(xn + jax.nn.sigmoid(xr + hr) * hn) + z * h
    return h, h


def lstm_cell(jax, jnp, weights, state, x):
    (w, u, b), (h, c) = weights, state
    i, f, g, o = jnp.split(x @ w + h @ u + b, 4)
    c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
    return jax.nn.sigmoid(o) * jnp.tanh(c), c


def gru8(jax, jnp, rng):
    """A GRU cell of width 8 over 500 steps."""
    return recurrent(8, 500, 3, gru_cell)(jax, jnp, rng)


def gru64(jax, jnp, rng):
    """A GRU cell of width 64 over 200 steps."""
    return recurrent(64, 200, 3, gru_cell)(jax, jnp, rng)


def lstm16(jax, jnp, rng):
    """An LSTM cell of width 16 over 500 steps."""
    return recurrent(16, 500, 4, lstm_cell)(jax, jnp, rng)


def links(jax, jnp, rng):
    """Where an arm of seven rigid links ends, for 200 sets of angles, one after the other."""
    axes, steps = normal(rng, 7, 3) * 2, normal(rng, 7, 3)

    def turned(axis, angle):
        a = axis / jnp.linalg.norm(axis)
        k = jnp.array([[0, -a[2], a[1]], [a[2], 0, -a[0]], [-a[1], a[0], 0]])
        return jnp.eye(3) + jnp.sin(angle) * k + (1 - jnp.cos(angle)) * (k @ k)

    def end(angles):
        def link(state, parts):
            place, frame = state
            axis, step, angle = parts
            frame = frame @ turned(axis, angle)
            return (place + frame @ step, frame), None
        return jax.lax.scan(link, (jnp.zeros(3), jnp.eye(3)), (axes, steps, angles))[0][0]

    return called(jax, lambda angles: jax.lax.map(end, angles), normal(rng, 200, 7) * 3)


def frames(jax, jnp, rng):
    """A frame that turns over 2,000 steps, made orthogonal again in each."""
    def turned(rates):
        def step(frame, rate):
            k = jnp.array([[0, -rate[2], rate[1]], [rate[2], 0, -rate[0]], [-rate[1], rate[0], 0]])
            q, r = jnp.linalg.qr(frame + 0.01 * k @ frame)
            frame = q * jnp.sign(jnp.diagonal(r))
            return frame, frame[:, 0]
        return jax.lax.scan(step, jnp.eye(3), rates)[1]

    return called(jax, turned, normal(rng, 2000, 3))


def particles(jax, jnp, rng):
    """A filter of 64 particles over 200 steps, drawn anew in each."""
    def filtered(key, places):
        def step(state, parts):
            key, place = parts
            noise, choice = jax.random.split(key)
            moved = 0.9 * state + 0.3 * jax.random.normal(noise, state.shape)
            weights = jax.nn.softmax(-0.5 * ((place - moved) / 0.5) ** 2)
            at = (jnp.arange(64) + jax.random.uniform(choice)) / 64
            chosen = jnp.clip(jnp.searchsorted(jnp.cumsum(weights), at), 0, 63)
            return moved[chosen], jnp.sum(weights * moved)
        keys = jax.random.split(key, len(places))
        return jax.lax.scan(step, jnp.zeros(64), (keys, places))[1]

    return called(jax, filtered, jax.random.key(0), normal(rng, 200))


def newton3(jax, jnp, rng):
    """Fifty steps of Newton's method for three equations, for 20 right sides, one by one."""
    def equations(x, c):
        return jnp.stack([x[0] ** 2 + x[1] - c[0], jnp.sin(x[1]) + 2 * x[2] - c[1],
                          x[0] * x[2] + 3 * x[1] - c[2]])

    def solved(c):
        def step(_, x):
            return x - jnp.linalg.solve(jax.jacfwd(equations)(x, c), equations(x, c))
        return jax.lax.fori_loop(0, 50, step, jnp.ones(3))

    return called(jax, lambda cs: jax.lax.map(solved, cs), normal(rng, 20, 3) + 1)


def counted(jax, jnp, rng):
    """Numbers counted one by one into a table of 100."""
    def count(numbers):
        def step(table, n):
            return table.at[n].add(1.0), table[n]
        return jax.lax.scan(step, jnp.zeros(100), numbers)

    return called(jax, count, rng.integers(0, 100, 2000).astype("int32"))


def ledger(jax, jnp, rng):
    """Transfers between 500 accounts, 2,000 of them, each with a fee that a third one gets."""
    def kept(accounts, pairs, amounts):
        def step(accounts, transfer):
            pair, amount = transfer
            amount = jnp.minimum(amount, accounts[pair[0]])
            fee = jnp.clip(0.01 * amount, 0.001, 0.1)
            changes = jnp.stack([-amount, amount - fee, fee])
            return accounts.at[jnp.append(pair, 0)].add(changes), fee
        return jax.lax.scan(step, accounts, (pairs, amounts))

    return called(jax, kept, np.ones(500, "float32"),
                  rng.integers(0, 500, (2000, 2)).astype("int32"), np.abs(normal(rng, 2000)))


def tridiagonal(jax, jnp, rng):
    """A tridiagonal system of 1,000 by a sweep down and one up."""
    def solved(lower, middle, upper, right):
        def down(state, row):
            c, d = state
            a, b, u, r = row
            scale = 1 / (b - a * c)
            state = u * scale, (r - a * d) * scale
            return state, state
        def up(x, row):
            x = row[1] - row[0] * x
            return x, x
        zero = jnp.float32(0)
        _, rows = jax.lax.scan(down, (zero, zero), (lower, middle, upper, right))
        return jax.lax.scan(up, zero, rows, reverse=True)[1]

    return called(jax, solved, *[normal(rng, 1000) + k for k in (0, 4, 0, 0)])


def pid(jax, jnp, rng):
    """A controller of a motor over 5,000 steps."""
    def controlled(targets):
        def step(state, target):
            speed, total, last = state
            error = target - speed
            total = jnp.clip(total + 0.01 * error, -1, 1)
            force = jnp.clip(2 * error + total + 0.1 * (error - last), -5, 5)
            speed = speed + 0.01 * (force - 0.5 * speed)
            return (speed, total, error), speed
        zero = jnp.float32(0)
        return jax.lax.scan(step, (zero, zero, zero), targets)[1]

    return called(jax, controlled, normal(rng, 5000))


def life(jax, jnp, rng):
    """Conway's game on 32 x 32 cells over 200 steps."""
    def played(cells):
        def step(_, cells):
            near = sum(jnp.roll(cells, (i, j), (0, 1)) for i in (-1, 0, 1) for j in (-1, 0, 1)
                       if i or j)
            return ((near == 3) | ((near == 2) & (cells == 1))).astype(cells.dtype)
        return jax.lax.fori_loop(0, 200, step, cells)

    return called(jax, played, (rng.random((32, 32)) > 0.6).astype("int32"))


def leapfrog(jax, jnp, rng):
    """Five bodies by the leapfrog method over 500 steps."""
    def force(x):
        gap = x[None] - x[:, None]
        return jnp.sum(gap / (jnp.sum(gap**2, -1, keepdims=True) + 0.1) ** 1.5, 1)

    def run(x, v):
        def step(_, state):
            x, v = state
            v = v + 0.005 * force(x)
            x = x + 0.01 * v
            return x, v + 0.005 * force(x)
        return jax.lax.fori_loop(0, 500, step, (x, v))

    return called(jax, run, normal(rng, 5, 3) * 3, normal(rng, 5, 3))


def matrices(rng, count, size):
    x = rng.standard_normal((count, size, size))
    return (x @ np.swapaxes(x, -1, -2) + size * np.eye(size)).astype("float32")


def cholesky4(jax, jnp, rng):
    """100,000 factorizations of 4 x 4."""
    return called(jax, jnp.linalg.cholesky, matrices(rng, 100_000, 4))


def solve4(jax, jnp, rng):
    """100,000 systems of four unknowns."""
    return called(jax, jnp.linalg.solve, matrices(rng, 100_000, 4), normal(rng, 100_000, 4, 1))


def qr4(jax, jnp, rng):
    """100,000 QR decompositions of 4 x 4."""
    return called(jax, jnp.linalg.qr, normal(rng, 100_000, 4, 4) * 600)


PROGRAMS = [kalman, kalman_solve, filter8, rk4, grid, grid_gradient, adaptive, through_integrator,
            chain, gru8, gru64, lstm16, links, frames, particles, newton3, counted, ledger,
            tridiagonal, pid, life, leapfrog, cholesky4, solve4, qr4]
