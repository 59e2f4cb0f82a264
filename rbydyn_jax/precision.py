"""Precision of float32 on a robot: errors against float64 for each algorithm and joint, and the condition of M."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from ._check import check_integer, check_key
from ._errors import ModelError, NameNotFoundError
from .algorithms.aba import aba
from .algorithms.coriolis import coriolis_matrix
from .algorithms.crba import crba, mass_matrix_inverse
from .algorithms.derivatives import aba_derivatives, rnea_derivatives
from .algorithms.inverse_dynamics import rnea
from .algorithms.jacobians import jacobian
from .algorithms.kinematics import fk
from .model.model import Model, check_model
from .model.states import random_states

GOOD, POOR = 1e-5, 1e-3  # relative errors: up to GOOD float32 is sufficient, above POOR it is not
_PART = 1e-3  # of the largest entry of a motion: a joint with less does not take part

_SOLVES = ("mass_matrix_inverse", "aba", "aba_derivatives")
# Each function runs once: compiled without LLVM optimizations, which hardly change the rounding.
_QUICK = {"xla_backend_optimization_level": 0}


@dataclass(frozen=True)
class AlgorithmPrecision:
    """The error of one algorithm in float32, relative to the size of its results.

    The size is the median over the states of the largest entry. A result that is finite in float64 but not in float32
    has an infinite error; if it is not finite in float64 either, all errors are NaN.

    Attributes:
        name: The algorithm.
        median: Median over the states of the largest error of an entry.
        worst: The largest error.
        elements: Names of the joints or links to which the entries of the result belong.
        errors: The largest error of each.
    """

    name: str
    median: float
    worst: float
    elements: tuple[str, ...]
    errors: tuple[float, ...]

    @property
    def worst_element(self) -> str:
        """The joint or link with the largest error; empty if the errors are undefined."""
        return "" if np.isnan(self.worst) else self.elements[int(np.argmax(self.errors))]


@dataclass(frozen=True)
class PrecisionReport:
    """Precision of float32 on a robot, over random states within its limits.

    Attributes:
        robot: Its name.
        samples: Number of states.
        algorithms: The algorithms that were compared.
        condition_median: Median of the condition number of the mass matrix (2-norm).
        condition_worst: The largest one; infinite where M is singular.
        light_joint: The joint that moves most in the motion with minimum inertia, in the worst-conditioned state.
        heavy_joint: The same for the motion with maximum inertia.
        massless: Where M is singular, the joints that take part in a motion that moves nothing that has mass.
    """

    robot: str
    samples: int
    algorithms: tuple[AlgorithmPrecision, ...]
    condition_median: float
    condition_worst: float
    light_joint: str
    heavy_joint: str
    massless: tuple[str, ...] = ()

    def __str__(self) -> str:
        lines = [
            f"{self.robot}: float32 against float64 in {self.samples} random states inside the limits; error by the "
            "size of the result",
            "",
            f"{'algorithm':22}{'median':>10}{'worst':>10}  worst at",
            *(f"{x.name:22}{x.median:>10.1e}{x.worst:>10.1e}  {x.worst_element}" for x in self.algorithms),
            "",
            f"cond(M): median {self.condition_median:.2g}, worst {self.condition_worst:.2g}",
            "",
        ]
        by_joint = [(x, max(len(x.name) + 2, 11)) for x in self.algorithms if x.name != "fk"]
        joints = by_joint[0][0].elements
        width = max(22, *(len(joint) + 2 for joint in joints))
        lines.append(f"{'worst error by joint':{width}}" + "".join(f"{x.name:>{size}}" for x, size in by_joint))
        for k, joint in enumerate(joints):
            lines.append(f"{joint:{width}}" + "".join(f"{x.errors[k]:>{size}.1e}" for x, size in by_joint))
        return "\n".join([*lines, "", self.recommendation])

    __repr__ = __str__

    def __getitem__(self, name: str) -> AlgorithmPrecision:
        found = next((x for x in self.algorithms if x.name == name), None) if isinstance(name, str) else None
        if found is None:
            raise NameNotFoundError(str(name), "algorithm", [x.name for x in self.algorithms])
        return found

    @property
    def recommendation(self) -> str:
        """Recommends, as text, where float32 is sufficient and where to use float64."""
        good = [x for x in self.algorithms if x.worst <= GOOD]
        fair = [x for x in self.algorithms if GOOD < x.worst <= POOR]
        poor = [x for x in self.algorithms if x.worst > POOR]
        undefined = [x for x in self.algorithms if np.isnan(x.worst)]
        lines = []
        if good:
            lines.append(f"float32 is accurate to {max(x.worst for x in good):.0e} for {_names(good)}.")
        for x in fair:
            lines.append(
                f"float32 keeps {int(-np.log10(x.worst))} digits of {x.name}: {x.median:.0e} in the median, "
                f"{x.worst:.0e} at worst, at {x.worst_element!r}."
            )
        for x in poor:
            size = f"up to {x.worst:.0e} of the result" if np.isfinite(x.worst) else "not finite"
            lines.append(
                f"Use float64 for {x.name}: the error of float32 is {size}, the largest at {x.worst_element!r}."
            )
        if undefined:
            lines.append(f"Not even float64 gives a finite {_names(undefined)}.")
        if self.massless:
            joints = _listed([repr(joint) for joint in self.massless])
            lines.append(f"M is singular: a motion of {joints} moves nothing that has mass.")
        elif np.isfinite(self.condition_worst) and any(x.name in _SOLVES for x in fair + poor):
            lines.append(
                f"cond(M) is {self.condition_median:.1e} in the median and {self.condition_worst:.1e} at worst, "
                f"between {self.light_joint!r} (light) and {self.heavy_joint!r} (heavy): a solve with M may lose "
                f"{np.log10(self.condition_worst):.0f} of the 7 digits of float32."
            )
        if not fair + poor + undefined:
            lines.append("float32 is sufficient.")
        return "\n".join(lines)


def precision_report(model: Model, key: PRNGKeyArray | None = None, samples: int = 256) -> PrecisionReport:
    r"""Compares float32 with float64 on random states inside the limits of a robot.

    The robot and its states are rounded from float64 to float32, so that errors include the rounding of the arguments.
    Forward dynamics takes the torques that inverse dynamics computes in float64. The error of a solve with M grows with
    its condition number, $\|\delta a\| / \|a\| \lesssim \operatorname{cond}(M)\, \epsilon$ [Higham 2002, theorem 7.2],
    which is therefore reported too. Enables float64 locally, regardless of JAX's setting; the parameters of a model
    that was created in float32 keep their 24 bits.

    Args:
        model: The robot, with at least one joint that moves.
        key: A key of `jax.random` for the states; default is one of seed 0.
        samples: Number of states.

    Raises:
        ArgumentError: `samples` is less than 1.
        DtypeError: `samples` is not an integer, or `key` no key.
        ModelError: The robot has no joint that moves.

    Example:
        >>> report = precision_report(robots.two_link_arm(), jax.random.key(0), samples=32)
        >>> report["rnea"].worst < 1e-5, report.condition_worst < 100
        (True, True)
        >>> print(report.recommendation.splitlines()[-1])
        float32 is sufficient.
    """
    tree = check_model(model).tree
    check_integer(samples, "samples", 1)
    key = jax.random.key(0) if key is None else check_key(key)
    if tree.nv == 0:
        raise ModelError(f"{model.name} has no joint that moves")
    link = tree.principal_links[max(range(tree.nb), key=lambda i: len(tree.path(i)))]
    with jax.enable_x64(True):
        model = jax.tree.map(lambda x: x.astype(jnp.float64), model)
        q, v, a = random_states(model, key, samples)
        want = _run(link, model, q, v, a)
        rounded = jax.tree.map(lambda x: x.astype(jnp.float32), (model, q, v, a, want["rnea"]))
        got, want = jax.device_get((_run(link, *rounded), want))
    axes = _axes(model)
    algorithms = tuple(_compare(name, got[name], want[name], *axes[_AXIS[name]]) for name in _AXIS)
    M = np.asarray(want["crba"])
    condition = np.linalg.cond(M)
    condition = np.where(np.isfinite(condition) & (condition < 1.0 / np.finfo(np.float64).eps), condition, np.inf)
    motions = np.linalg.eigh(M[int(np.argmax(condition))]).eigenvectors
    joints, slices = axes["v"]
    light, heavy = (np.array([np.abs(motions[s, k]).max() for s in slices]) for k in (0, -1))
    worst = float(condition.max())
    return PrecisionReport(
        robot=model.name,
        samples=samples,
        algorithms=algorithms,
        condition_median=float(np.median(condition)),
        condition_worst=worst,
        light_joint=joints[int(np.argmax(light))],
        heavy_joint=joints[int(np.argmax(heavy))],
        massless=() if np.isfinite(worst) else tuple(joints[k] for k in np.flatnonzero(light > _PART * light.max())),
    )


# The algorithms, and what the first axis of their result goes over.
_AXIS = {
    "fk": "links",
    "jacobian": "v",
    "rnea": "v",
    "rnea_gradient": "q",
    "rnea_derivatives": "v",
    "crba": "v",
    "coriolis_matrix": "v",
    "mass_matrix_inverse": "v",
    "aba": "v",
    "aba_derivatives": "v",
}


def _run(link: int, model: Model, *arrays: jax.Array) -> dict[str, jax.Array]:
    batched = jax.vmap(lambda model, *state: _results(link, model, *state), in_axes=(None, *(0 for _ in arrays)))
    return jax.jit(batched, compiler_options=_QUICK)(model, *arrays)


def _results(
    link: int, model: Model, q: jax.Array, v: jax.Array, a: jax.Array, tau: jax.Array | None = None
) -> dict[str, jax.Array]:
    forces = rnea(model, q, v, a)
    tau = forces if tau is None else tau
    return {
        "fk": fk(model, q),
        "jacobian": jacobian(model, q, link).T,
        "rnea": forces,
        "rnea_gradient": jax.grad(lambda q: 0.5 * jnp.sum(rnea(model, q, v, a) ** 2))(q),
        "rnea_derivatives": rnea_derivatives(model, q, v, a).dtau_dq,
        "crba": crba(model, q),
        "coriolis_matrix": coriolis_matrix(model, q, v),
        "mass_matrix_inverse": mass_matrix_inverse(model, q),
        "aba": aba(model, q, v, tau),
        "aba_derivatives": aba_derivatives(model, q, v, tau).da_dq,
    }


def _axes(model: Model) -> dict[str, tuple[tuple[str, ...], Sequence[slice]]]:
    """For each kind of axis: the names of its elements, and their slices."""
    tree = model.tree
    independent = [i for i in range(tree.nb) if tree.mimics[i] is None and tree.joints[i].nv]
    names = tuple(tree.joint_names[i] for i in independent)
    return {
        "links": (tree.link_names, [slice(k, k + 1) for k in range(len(tree.link_names))]),
        "q": (names, [tree.q_slices[i] for i in independent]),
        "v": (names, [tree.v_slices[i] for i in independent]),
    }


def _compare(
    name: str, got: np.ndarray, want: np.ndarray, elements: tuple[str, ...], slices: Sequence[slice]
) -> AlgorithmPrecision:
    got, want = (np.asarray(x, np.float64).reshape(*x.shape[:2], -1) for x in (got, want))
    if not np.isfinite(want).all():
        return AlgorithmPrecision(name, np.nan, np.nan, elements, (np.nan,) * len(elements))
    size = float(np.median(np.abs(want).max(axis=(1, 2))))
    error = np.abs(got - want).max(axis=2)  # (samples, entries)
    error = np.where(np.isfinite(error), error, np.inf) / (size if size > 0.0 else 1.0)
    errors = tuple(float(error[:, s].max()) for s in slices)
    return AlgorithmPrecision(name, float(np.median(error.max(axis=1))), float(error.max()), elements, errors)


def _names(algorithms: Sequence[AlgorithmPrecision]) -> str:
    return _listed([x.name for x in algorithms])


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]
