"""Rotations against SciPy's."""

import numpy as np
import pytest
from scipy.spatial import transform as reference

import pyjx as jax
import pyjx.numpy as jnp
from pyjx.scipy.spatial.transform import Rotation, Slerp

QUATS = reference.Rotation.random(20, random_state=0).as_quat()
QUATS[0] = [0, 0, 0, 1]
QUATS[1] = [1, 0, 0, 0]
QUATS[2] = [1e-9, 0, 0, 1]
SEQUENCES = ["xyz", "zyx", "XYZ", "ZYX", "zxz", "ZXZ", "yxy", "XZY"]


@pytest.fixture(autouse=True)
def double():
    with jax.enable_x64(True):
        yield


def same(x, y):
    """As rotations: q and -q are one."""
    x, y = np.asarray(x), np.asarray(y)
    np.testing.assert_allclose(np.abs((x * y).sum(-1)), np.ones(x.shape[:-1]), rtol=1e-12)


@pytest.mark.parametrize("quats", [QUATS, QUATS[5]], ids=["several", "single"])
def test_forms(quats):
    got, want = Rotation.from_quat(2 * quats), reference.Rotation.from_quat(quats)
    same(got.as_quat(), want.as_quat())
    np.testing.assert_allclose(got.as_matrix(), want.as_matrix(), atol=1e-12)
    np.testing.assert_allclose(abs(got.as_rotvec()), abs(want.as_rotvec()), atol=1e-9)
    np.testing.assert_allclose(abs(got.as_mrp()), abs(want.as_mrp()), atol=1e-9)
    np.testing.assert_allclose(got.magnitude(), want.magnitude(), atol=1e-12)
    np.testing.assert_allclose(got.as_quat(canonical=True), want.as_quat(canonical=True),
                               atol=1e-12)
    np.testing.assert_allclose(got.as_quat(True, True), want.as_quat(canonical=True,
                                                                     scalar_first=True), atol=1e-12)
    same(Rotation.from_matrix(want.as_matrix()).quat, quats)
    same(Rotation.from_rotvec(want.as_rotvec()).quat, quats)
    same(Rotation.from_rotvec(want.as_rotvec(degrees=True), degrees=True).quat, quats)
    same(Rotation.from_mrp(want.as_mrp()).quat, quats)
    same(got.inv().quat, want.inv().as_quat())
    assert got.single == want.single
    v = np.array([1.0, 2.0, 3.0])
    np.testing.assert_allclose(got.apply(v), want.apply(v), atol=1e-12)
    np.testing.assert_allclose(got.apply(v, inverse=True), want.apply(v, inverse=True), atol=1e-12)


@pytest.mark.parametrize("seq", SEQUENCES)
def test_euler_angles(seq):
    angles = np.random.default_rng(0).uniform(-np.pi, np.pi, (9, 3))
    got = Rotation.from_euler(seq, angles)
    want = reference.Rotation.from_euler(seq, angles)
    same(got.quat, want.as_quat())
    np.testing.assert_allclose(got.as_euler(seq), want.as_euler(seq), atol=1e-9)
    np.testing.assert_allclose(got.as_euler(seq, degrees=True), want.as_euler(seq, degrees=True),
                               atol=1e-7)
    lock = Rotation.from_euler(seq, np.array([0.3, 0.0 if seq[0] == seq[2] else np.pi / 2, 0.4]))
    same(Rotation.from_euler(seq, lock.as_euler(seq)).quat, lock.quat)
    single = Rotation.from_euler(seq[0], angles[:, 0])
    same(single.quat, reference.Rotation.from_euler(seq[0], angles[:, :1]).as_quat())


def test_operations():
    p, q = Rotation.from_quat(QUATS[:5]), Rotation.from_quat(QUATS[5:10])
    rp, rq = reference.Rotation.from_quat(QUATS[:5]), reference.Rotation.from_quat(QUATS[5:10])
    same((p * q).quat, (rp * rq).as_quat())
    same((p * q[0]).quat, (rp * rq[0]).as_quat())
    same(p.mean().quat, rp.mean().as_quat())
    weights = np.arange(1.0, 6.0)
    same(p.mean(weights).quat, rp.mean(weights).as_quat())
    assert len(p) == 5 and p[1:3].quat.shape == (2, 4) and p[0].single
    assert Rotation.concatenate([p, q[0]]).quat.shape == (6, 4)
    assert Rotation.identity().quat.tolist() == [0, 0, 0, 1]
    assert Rotation.identity(3).quat.shape == (3, 4)
    drawn = Rotation.random(jax.random.key(0), 5)
    np.testing.assert_allclose(jnp.linalg.norm(drawn.quat, axis=-1), np.ones(5), rtol=1e-6)


def test_transformations():
    def turned(v):
        return Rotation.from_rotvec(v).apply(jnp.array([1.0, 0.0, 0.0]))

    # about 0 the rotation is that by the cross product
    np.testing.assert_allclose(jax.jacobian(turned)(jnp.zeros(3)),
                               [[0, 0, 0], [0, 0, 1], [0, -1, 0]], atol=1e-12)
    back = jax.jit(jax.jacobian(lambda v: Rotation.from_rotvec(v).as_rotvec()))
    for v in (np.zeros(3), np.array([1e-5, 0, 0]), np.array([0.3, -0.4, 1.0])):
        np.testing.assert_allclose(back(v), np.eye(3), atol=1e-6)
    several = jax.vmap(lambda q: Rotation.from_quat(q).as_matrix())(QUATS)
    np.testing.assert_allclose(several, Rotation.from_quat(QUATS).as_matrix())
    assert isinstance(jax.tree.map(lambda x: x, Rotation.from_quat(QUATS)), Rotation)


def test_slerp():
    times = np.array([0.0, 1.0, 2.5, 3.0])
    got = Slerp.init(times, Rotation.from_quat(QUATS[5:9]))
    want = reference.Slerp(times, reference.Rotation.from_quat(QUATS[5:9]))
    places = np.array([0.0, 0.3, 1.0, 1.7, 2.6, 3.0])
    same(got(places).quat, want(places).as_quat())
    same(jax.jit(lambda t: got(t).quat)(0.4), want(0.4).as_quat())


def test_refuses():
    with pytest.raises(ValueError, match="axis specification"):
        Rotation.from_euler("xyZ", np.zeros(3))
    with pytest.raises(ValueError, match="consecutive axes"):
        Rotation.from_euler("xxz", np.zeros(3))
    with pytest.raises(ValueError, match="expected 3 angles"):
        Rotation.from_euler("xyz", np.zeros(2))
    with pytest.raises(ValueError, match="Expected 3 axes"):
        Rotation.identity().as_euler("xy")
    with pytest.raises(ValueError, match="at least 2"):
        Slerp.init(np.zeros(1), Rotation.identity())
    with pytest.raises(ValueError, match="equal to number of timestamps"):
        Slerp.init(np.zeros(3), Rotation.identity(2))
    with pytest.raises(TypeError, match="subscriptable"):
        Rotation.identity()[0]
    with pytest.raises(ValueError, match="weights"):
        Rotation.identity(2).mean(np.ones(3))


def test_a_rotation_by_a_number_has_no_weak_type():
    for made in (Rotation.from_euler("z", 90, degrees=True), Rotation.from_euler("z", 1.0)):
        assert not made.as_matrix().weak_type and not made.as_quat().weak_type


@pytest.mark.parametrize(("make", "shape", "expected"), [
    ("from_matrix", (2, 3), r"\(\.\.\., 3, 3\)"), ("from_matrix", (3,), r"\(\.\.\., 3, 3\)"),
    ("from_matrix", (2, 2), r"\(\.\.\., 3, 3\)"), ("from_mrp", (4,), r"\(\.\.\., 3\)"),
    ("from_quat", (2, 3), r"\(\.\.\., 4\)"), ("from_rotvec", (), r"\(\.\.\., 3\)")])
def test_arrays_of_other_shapes_are_refused(make, shape, expected):
    words = rf"Rotation\.{make}: expected .* of shape {expected}, got"
    with pytest.raises(ValueError, match=words):
        getattr(Rotation, make)(jnp.ones(shape))
    with pytest.raises(ValueError, match=r"Rotation\.apply: expected vectors of shape"):
        Rotation.identity().apply(jnp.ones(2))


def test_rotations_are_multiplied_by_rotations_and_apply_to_as_many_vectors():
    turns, vectors = Rotation.from_rotvec(jnp.ones((3, 3))), jnp.ones((2, 3))
    with pytest.raises(TypeError, match=r"other must be a Rotation, got .* r\.apply\(vectors\)\."):
        turns * vectors
    with pytest.raises(ValueError, match=r"of shape \(3,\) and vectors of shape \(2, 3\)"):
        turns.apply(vectors)
    assert turns.apply(vectors[..., None, :]).shape == (2, 3, 3)


def test_matrices_of_affine_maps_are_rotations_by_their_first_rows():
    rotation = Rotation.from_quat(QUATS)
    matrices = jnp.pad(rotation.as_matrix(), ((0, 0), (0, 1), (0, 1)), constant_values=7)
    np.testing.assert_allclose(Rotation.from_matrix(matrices).as_matrix(), rotation.as_matrix(),
                               atol=1e-6)
