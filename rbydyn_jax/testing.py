"""Random robots for tests: every topology and joint type, with physically valid inertias.

Physical identities (power balance, symmetry of the mass matrix, forward after inverse dynamics, ...) hold on *every*
tree, so random trees are a thorough test of an algorithm. The generators use plain NumPy and are deterministic.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np

from ._check import check_choice, check_flag, check_integer, check_key, check_number, check_sequence
from ._errors import ArgumentError
from .io.build import build_model
from .io.description import (
    Inertial,
    JointDescription,
    LinkDescription,
    Mimic,
    RobotDescription,
)
from .joints import JOINT_TYPES
from .model.model import Model

Seed = int | np.random.Generator | jax.Array
# Not all of `JOINT_TYPES`: the tree of a seed stays the same when a type joins them.
_TYPES = (
    "revolute",
    "continuous",
    "prismatic",
    "fixed",
    "planar",
    "spherical",
    "floating",
    "sin_cos_revolute",
    "mrp_floating",
)


def random_tree(
    seed: Seed,
    joint_types: Sequence[str] = _TYPES,
    n: int = 10,
    *,
    branching: float = 0.4,
    mimics: int = 0,
    armature: bool = True,
) -> Model:
    """Builds a random robot; the arguments are those of `random_description`.

    Example:
        >>> model = random_tree(0, ("floating", "revolute"), n=3)
        >>> sorted(model.tree.joint_types)
        ['floating', 'floating', 'revolute']
    """
    return build_model(random_description(seed, joint_types, n, branching=branching, mimics=mimics, armature=armature))


def random_description(
    seed: Seed,
    joint_types: Sequence[str] = _TYPES,
    n: int = 10,
    *,
    branching: float = 0.4,
    mimics: int = 0,
    armature: bool = True,
) -> RobotDescription:
    """Describes a random tree of `n` joints.

    The types in `joint_types` come round in turn (so `n >= len(joint_types)` has each of them), in a shuffled order.
    Placements are a mixture of the identity, pure translations, pure rotations and general poses; axes of coordinate
    axes, of both signs, and general ones. Every moving link has a physically consistent inertia; of the links behind a
    fixed joint half have one, and the others have no mass, as tool frames do. Every 1-dof joint has position limits,
    and all moving ones have velocity, acceleration and effort limits.

    Args:
        seed: An integer, a numpy Generator (which advances), or a JAX key.
        joint_types: The types of joint to choose from, keys of `joints.JOINT_TYPES`; by default most of them.
        n: Number of joints, fixed ones included.
        branching: Probability that a link hangs from any earlier link rather than from the last one: 0 gives a chain.
        mimics: How many 1-dof joints follow an earlier 1-dof joint (which may itself follow another).
        armature: Whether half of the 1-dof joints have rotor inertia.

    Returns:
        The description, with links ``link_0`` (the root, without mass) to ``link_n`` and joints ``joint_1`` to
        ``joint_n``; joint i moves link i.

    Raises:
        ArgumentError: No joint type is given, one is unknown, or there are too few 1-dof joints for `mimics`.

    Example:
        >>> robot = random_description(7, ("revolute", "prismatic"), n=4)
        >>> [joint.name for joint in robot.joints]
        ['joint_1', 'joint_2', 'joint_3', 'joint_4']
        >>> {joint.kind for joint in robot.joints} == {"revolute", "prismatic"}
        True
    """
    if not check_sequence(joint_types, "joint_types", "names of joint types"):
        raise ArgumentError(f"joint_types must be of {', '.join(JOINT_TYPES)}; got none")
    for kind in joint_types:
        check_choice(kind, "joint_types", JOINT_TYPES)
    n, mimics = check_integer(n, "n", 0), check_integer(mimics, "mimics", 0)
    branching, armature = check_number(branching, "branching"), check_flag(armature, "armature")
    rng = _generator(seed)
    kinds = [joint_types[int(i) % len(joint_types)] for i in rng.permutation(n)]
    links = [LinkDescription("link_0")]
    joints: list[JointDescription] = []
    for i, kind in enumerate(kinds, start=1):
        parent = int(rng.integers(i)) if rng.random() < branching else i - 1
        has_mass = JOINT_TYPES[kind].nv > 0 or rng.random() < 0.5
        links.append(LinkDescription(f"link_{i}", random_inertial(rng) if has_mass else None))
        joints.append(_random_joint(rng, i, kind, f"link_{parent}", armature))
    return RobotDescription("random_tree", tuple(links), tuple(_with_mimics(rng, joints, mimics)))


def random_inertial(seed: Seed) -> Inertial:
    """Draws physically valid mass properties: the second moments of mass about the centre are positive definite.

    Example:
        >>> moments = np.linalg.eigvalsh(random_inertial(0).inertia)
        >>> bool(moments[0] > 0 and moments[0] + moments[1] > moments[2])
        True
    """
    rng = _generator(seed)
    mass = float(np.exp(rng.uniform(np.log(0.3), np.log(6.0))))
    axes = random_rotation(rng)
    second_moment = axes @ np.diag(mass * rng.uniform(0.03, 0.2, 3) ** 2) @ axes.T
    inertia = np.trace(second_moment) * np.eye(3) - second_moment
    return Inertial(mass, rng.uniform(-0.2, 0.2, 3), (inertia + inertia.T) / 2)


def random_rotation(seed: Seed) -> np.ndarray:
    """Draws a rotation matrix uniformly, by a normalized Gaussian quaternion.

    Example:
        >>> R = random_rotation(0)
        >>> bool(np.allclose(R @ R.T, np.eye(3)) and np.linalg.det(R) > 0)
        True
    """
    q = _generator(seed).normal(size=4)
    w, x, y, z = q / np.linalg.norm(q)
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def random_transform(seed: Seed) -> np.ndarray:
    """Draws a homogeneous transform: uniform rotation, translation of up to half a metre along each axis.

    Example:
        >>> random_transform(0).shape
        (4, 4)
    """
    rng = _generator(seed)
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = random_rotation(rng), rng.uniform(-0.5, 0.5, 3)
    return T


def _generator(seed: Seed) -> np.random.Generator:
    if isinstance(seed, np.random.Generator):
        return seed
    if isinstance(seed, jax.Array):
        key = check_key(seed, "seed")
        is_key = jnp.issubdtype(key.dtype, jax.dtypes.prng_key)
        return np.random.default_rng(np.asarray(jax.random.key_data(key) if is_key else key))
    return np.random.default_rng(check_integer(seed, "seed", 0))


def _random_placement(rng: np.random.Generator) -> np.ndarray:
    T, form = random_transform(rng), rng.integers(5)
    if form in (0, 1):
        T[:3, :3] = np.eye(3)
    if form in (0, 2):
        T[:3, 3] = 0.0
    return T


def _random_axis(rng: np.random.Generator) -> np.ndarray:
    if rng.random() < 0.5:
        axis = np.zeros(3)
        axis[rng.integers(3)] = rng.choice([-1.0, 1.0])
        return axis
    axis = rng.normal(size=3)
    return axis / np.linalg.norm(axis)


def _random_joint(rng: np.random.Generator, i: int, kind: str, parent: str, armature: bool) -> JointDescription:
    name, child = f"joint_{i}", f"link_{i}"
    joint = JOINT_TYPES[kind]
    if not joint.nv:
        return JointDescription(name, kind, parent, child, origin=_random_placement(rng))
    scalar, bounded = joint.scalar, joint.limited
    return JointDescription(
        name,
        kind,
        parent,
        child,
        origin=_random_placement(rng),
        axis=_random_axis(rng),
        lower=-float(rng.uniform(0.5, 3.0)) if bounded else -np.inf,
        upper=float(rng.uniform(0.5, 3.0)) if bounded else np.inf,
        velocity=float(rng.uniform(1.0, 5.0)),
        acceleration=float(rng.uniform(1.0, 20.0)),
        effort=float(rng.uniform(10.0, 100.0)),
        damping=float(rng.uniform(0.0, 1.0)) if scalar else 0.0,
        friction=float(rng.uniform(0.0, 1.0)) if scalar else 0.0,
        armature=float(rng.uniform(0.01, 0.2)) if armature and scalar and rng.random() < 0.5 else 0.0,
        parameters={what: float(rng.choice([-1.0, 1.0]) * rng.uniform(0.05, 0.5)) for what in joint.parameters},
    )


def _with_mimics(rng: np.random.Generator, joints: list[JointDescription], mimics: int) -> list[JointDescription]:
    scalars = [i for i, joint in enumerate(joints) if JOINT_TYPES[joint.kind].scalar]
    if mimics and len(scalars) <= mimics:
        raise ArgumentError(f"{mimics} mimic joints need at least {mimics + 1} 1-dof joints, got {len(scalars)}")
    for k in sorted(rng.choice(len(scalars) - 1, mimics, replace=False) + 1) if mimics else ():
        leader = joints[scalars[int(rng.integers(k))]].name
        rule = Mimic(leader, float(rng.choice([-1.0, 1.0]) * rng.uniform(0.3, 1.5)), float(rng.uniform(-0.5, 0.5)))
        joints[scalars[k]] = replace(joints[scalars[k]], mimic=rule, armature=0.0)
    return joints
