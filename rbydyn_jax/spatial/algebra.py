"""Small value types in which the algorithms are written: 3-vectors, 3x3 matrices and spatial quantities.

Their entries are the scalars of `xla.structural`: arrays, or the constants 0, 1 and -1. Nothing here knows of robots.
"""

from __future__ import annotations

from typing import NamedTuple

from ..xla.structural import ONE, ZERO, Scalar, add, mul, neg, sub


class Vec3(NamedTuple):
    """A 3-vector."""

    x: Scalar
    y: Scalar
    z: Scalar

    def __add__(self, other: Vec3) -> Vec3:  # type: ignore[override]
        return Vec3(*(add(a, b) for a, b in zip(self, other, strict=True)))

    def __sub__(self, other: Vec3) -> Vec3:
        return Vec3(*(sub(a, b) for a, b in zip(self, other, strict=True)))

    def __neg__(self) -> Vec3:
        return Vec3(*(neg(a) for a in self))

    def scale(self, k: Scalar) -> Vec3:
        return Vec3(*(mul(k, a) for a in self))

    def dot(self, other: Vec3) -> Scalar:
        return add(add(mul(self.x, other.x), mul(self.y, other.y)), mul(self.z, other.z))

    def cross(self, other: Vec3) -> Vec3:
        return Vec3(
            sub(mul(self.y, other.z), mul(self.z, other.y)),
            sub(mul(self.z, other.x), mul(self.x, other.z)),
            sub(mul(self.x, other.y), mul(self.y, other.x)),
        )

    def outer(self, other: Vec3) -> Mat3:
        return Mat3(*(other.scale(a) for a in self))


class Mat3(NamedTuple):
    """A 3x3 matrix, by rows."""

    r0: Vec3
    r1: Vec3
    r2: Vec3

    @property
    def T(self) -> Mat3:
        return Mat3(*(Vec3(*column) for column in zip(*self, strict=True)))

    def __add__(self, other: Mat3) -> Mat3:  # type: ignore[override]
        return Mat3(*(a + b for a, b in zip(self, other, strict=True)))

    def __sub__(self, other: Mat3) -> Mat3:
        return Mat3(*(a - b for a, b in zip(self, other, strict=True)))

    def __neg__(self) -> Mat3:
        return Mat3(*(-r for r in self))

    def apply(self, v: Vec3) -> Vec3:
        return Vec3(self.r0.dot(v), self.r1.dot(v), self.r2.dot(v))

    def apply_transposed(self, v: Vec3) -> Vec3:
        return self.r0.scale(v.x) + self.r1.scale(v.y) + self.r2.scale(v.z)

    def __matmul__(self, other: Mat3) -> Mat3:
        columns = other.T
        return Mat3(*(Vec3(*(row.dot(c) for c in columns)) for row in self))

    def scale(self, k: Scalar) -> Mat3:
        return Mat3(*(r.scale(k) for r in self))

    def symmetric(self) -> Sym3:
        """The upper triangle, for a matrix known to be symmetric."""
        return Sym3(self.r0.x, self.r0.y, self.r0.z, self.r1.y, self.r1.z, self.r2.z)


class Sym3(NamedTuple):
    """A symmetric 3x3 matrix."""

    xx: Scalar
    xy: Scalar
    xz: Scalar
    yy: Scalar
    yz: Scalar
    zz: Scalar

    @property
    def full(self) -> Mat3:
        return Mat3(Vec3(self.xx, self.xy, self.xz), Vec3(self.xy, self.yy, self.yz), Vec3(self.xz, self.yz, self.zz))

    def __add__(self, other: Sym3) -> Sym3:  # type: ignore[override]
        return Sym3(*(add(a, b) for a, b in zip(self, other, strict=True)))

    def __sub__(self, other: Sym3) -> Sym3:
        return Sym3(*(sub(a, b) for a, b in zip(self, other, strict=True)))

    def scale(self, k: Scalar) -> Sym3:
        return Sym3(*(mul(k, a) for a in self))

    def apply(self, v: Vec3) -> Vec3:
        return self.full.apply(v)

    def rotate(self, R: Mat3) -> Sym3:
        """R S R^T."""
        half = R @ self.full
        r = R
        return Sym3(
            half.r0.dot(r.r0),
            half.r0.dot(r.r1),
            half.r0.dot(r.r2),
            half.r1.dot(r.r1),
            half.r1.dot(r.r2),
            half.r2.dot(r.r2),
        )


O3 = Vec3(ZERO, ZERO, ZERO)
IDENTITY3 = Mat3(Vec3(ONE, ZERO, ZERO), Vec3(ZERO, ONE, ZERO), Vec3(ZERO, ZERO, ONE))
ZERO_SYM3 = Sym3(ZERO, ZERO, ZERO, ZERO, ZERO, ZERO)
ZERO_MAT3 = Mat3(O3, O3, O3)


def skew(v: Vec3) -> Mat3:
    """The matrix [v] of the cross product."""
    return Mat3(Vec3(ZERO, neg(v.z), v.y), Vec3(v.z, ZERO, neg(v.x)), Vec3(neg(v.y), v.x, ZERO))


class Motion(NamedTuple):
    """A spatial motion vector [w; v]."""

    w: Vec3
    v: Vec3

    def __add__(self, other: Motion) -> Motion:  # type: ignore[override]
        return Motion(self.w + other.w, self.v + other.v)

    def __sub__(self, other: Motion) -> Motion:
        return Motion(self.w - other.w, self.v - other.v)

    def __neg__(self) -> Motion:
        return Motion(-self.w, -self.v)

    def scale(self, k: Scalar) -> Motion:
        return Motion(self.w.scale(k), self.v.scale(k))

    def cross(self, other: Motion) -> Motion:
        """self x other, the Lie bracket ad(self) other [Featherstone 2008, eq. 2.31]."""
        return Motion(self.w.cross(other.w), self.w.cross(other.v) + self.v.cross(other.w))

    def cross_force(self, f: Force) -> Force:
        """self x* f [Featherstone 2008, eq. 2.32]."""
        return Force(self.w.cross(f.n) + self.v.cross(f.f), self.w.cross(f.f))

    def dot(self, f: Force) -> Scalar:
        """The power of a force on this motion."""
        return add(self.w.dot(f.n), self.v.dot(f.f))


class Force(NamedTuple):
    """A spatial force vector [n; f]: moment about the origin, and force."""

    n: Vec3
    f: Vec3

    def __add__(self, other: Force) -> Force:  # type: ignore[override]
        return Force(self.n + other.n, self.f + other.f)

    def __sub__(self, other: Force) -> Force:
        return Force(self.n - other.n, self.f - other.f)

    def __neg__(self) -> Force:
        return Force(-self.n, -self.f)

    def scale(self, k: Scalar) -> Force:
        return Force(self.n.scale(k), self.f.scale(k))


NO_MOTION, NO_FORCE = Motion(O3, O3), Force(O3, O3)


class Transform(NamedTuple):
    """A pose T_AB: p_A = R p_B + p."""

    R: Mat3
    p: Vec3

    def __matmul__(self, other: Transform) -> Transform:
        return Transform(self.R @ other.R, self.p + self.R.apply(other.p))

    def inverse(self) -> Transform:
        return Transform(self.R.T, -self.R.apply_transposed(self.p))

    def apply(self, point: Vec3) -> Vec3:
        return self.p + self.R.apply(point)

    def motion(self, m: Motion) -> Motion:
        """Ad(T_AB) m: from B's coordinates to A's."""
        w = self.R.apply(m.w)
        return Motion(w, self.R.apply(m.v) + self.p.cross(w))

    def motion_inverse(self, m: Motion) -> Motion:
        """Ad(T_AB)^-1 m: from A's coordinates to B's."""
        return Motion(self.R.apply_transposed(m.w), self.R.apply_transposed(m.v - self.p.cross(m.w)))

    def force(self, f: Force) -> Force:
        """Ad(T_AB)^-T f: from B's coordinates to A's."""
        linear = self.R.apply(f.f)
        return Force(self.R.apply(f.n) + self.p.cross(linear), linear)


IDENTITY = Transform(IDENTITY3, O3)


class Inertia(NamedTuple):
    """A rigid-body inertia about the origin: mass, first moment h = m c, second moment I."""

    m: Scalar
    h: Vec3
    I: Sym3  # noqa: E741 - Featherstone's letter

    def __add__(self, other: Inertia) -> Inertia:  # type: ignore[override]
        return Inertia(add(self.m, other.m), self.h + other.h, self.I + other.I)

    def apply(self, v: Motion) -> Force:
        """The momentum I v."""
        return Force(self.I.apply(v.w) + self.h.cross(v.v), v.v.scale(self.m) - self.h.cross(v.w))

    def rate(self, v: Motion) -> Inertia:
        """The rate of change of a body that moves with v, v x* I - I v x [Featherstone 2008, eq. 2.66]."""
        turned = skew(v.w) @ self.I.full
        h, u = self.h, v.v
        dot, across = h.dot(u), h.outer(u)
        shift = Sym3(dot, ZERO, ZERO, dot, ZERO, dot).scale(2.0) - (across + across.T).symmetric()
        return Inertia(ZERO, v.w.cross(h) + u.scale(self.m), (turned + turned.T).symmetric() + shift)

    def transform(self, X: Transform) -> Inertia:
        """The same body seen from A, where X = T_AB [Featherstone 2008, eq. 2.66]."""
        h = X.R.apply(self.h)
        p = X.p
        moved = h + p.scale(self.m)  # first moment in A
        # With Y = h p^T + p h^T + m p p^T: I_A = R I R^T + tr(Y) 1 - Y.
        rotated = self.I.rotate(X.R)
        hx, hy, _ = h
        ax, ay, az = h + moved  # 2 h + m p
        px, py, pz = p
        dx, dy, dz = mul(px, ax), mul(py, ay), mul(pz, az)
        _, gy, gz = moved
        off_xy = add(mul(hx, py), mul(px, gy))
        off_xz = add(mul(hx, pz), mul(px, gz))
        off_yz = add(mul(hy, pz), mul(py, gz))
        shift = Sym3(add(dy, dz), neg(off_xy), neg(off_xz), add(dx, dz), neg(off_yz), add(dx, dy))
        return Inertia(self.m, moved, rotated + shift)


NO_INERTIA = Inertia(ZERO, O3, ZERO_SYM3)
