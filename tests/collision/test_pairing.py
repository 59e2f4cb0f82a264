"""Which pairs of shapes are tested."""

from __future__ import annotations

import chex
import jax
import jax.numpy as jnp
import pytest

from rbydyn_jax import (
    ArgumentError,
    DtypeError,
    ModelError,
    NameNotFoundError,
    ParseError,
    RobotBuilder,
    attach,
    build_model,
    link_pose,
    load_urdf_string,
    robots,
    to_urdf,
)
from rbydyn_jax.collision import (
    ShapePairs,
    min_distance,
    pairs,
    sampled_pairs,
    signed_distances,
    sphere,
    srdf_pairs,
    with_shapes,
)


def _chain(**masks: tuple[int, int]):
    """base - a - b - c, with a welded plate on b and two capsules on c; `masks` are (coltype, colaffinity) by link."""
    builder = RobotBuilder("chain")
    for name in ("base", "a", "b", "c", "plate"):
        builder.link(name, 1.0, inertia=0.1)
        for _ in range(2 if name == "c" else 1):
            coltype, colaffinity = masks.get(name, (0, 0))
            builder.capsule(name, 0.2, 0.05, coltype=coltype, colaffinity=colaffinity)
    for i, (parent, child) in enumerate((("base", "a"), ("a", "b"), ("b", "c"))):
        builder.revolute(f"j{i}", parent, child, xyz=(0, 0, 0.5), lower=-1, upper=1)
    builder.fixed("weld", "b", "plate", xyz=(0.1, 0, 0))
    return build_model(builder.build_description())


def _names(found: ShapePairs) -> list[tuple[str, ...]]:
    return sorted(tuple(sorted(p)) for p in found.links)


def test_adjacency_leaves_out_one_body_and_bodies_joined_by_a_joint():
    want = [("a", "c"), ("a", "c"), ("b", "base"), ("base", "c"), ("base", "c"), ("base", "plate")]
    model = _chain()
    assert _names(pairs(model)) == want
    assert pairs(model) == pairs(model, by="adjacency")
    assert len(pairs(model, by="masks")) == 0


def test_masks_keep_a_pair_if_either_type_meets_the_other_affinity():
    model = _chain(base=(1, 0), a=(2, 0), b=(4, 3), c=(8, 1), plate=(0, 8))
    # b is tested against base and a though a is its neighbour, c against base, the plate against c.
    want = [("a", "b"), ("b", "base"), ("base", "c"), ("base", "c"), ("c", "plate"), ("c", "plate")]
    assert _names(pairs(model)) == want
    assert pairs(model) == pairs(model, by="masks")
    assert _names(pairs(model, by="adjacency")) == _names(pairs(_chain()))


def test_what_is_held_is_tested_though_it_has_no_masks():
    """It is in no group of the robot's, and was never tested: here it is within link2, at the middle of both shapes."""
    arm, q = robots.panda_like(), jnp.array([0.3, -0.4, 0.2, -1.8, 0.1, 1.6, 0.5])
    held = with_shapes(
        build_model(RobotBuilder("held").link("ball", 0.7).build_description()), {"ball": [sphere(jnp.zeros(3), 0.15)]}
    )
    pose = jnp.linalg.inv(link_pose(arm, q, "tool")) @ link_pose(arm, q, "link2")
    holding = attach(arm, "tool", held, pose)
    assert set(pairs(holding).links) == set(pairs(arm).links) | {(f"link{k}", "ball") for k in range(6)}
    assert abs(float(min_distance(holding, q)) + 0.15 + 0.07) < 1e-5
    read = load_urdf_string(to_urdf(holding))
    assert pairs(read) == pairs(holding)
    on_hand = with_shapes(arm, {"tool": [sphere(jnp.zeros(3), 0.05)]})
    assert len(pairs(on_hand)) == len(pairs(arm)) + 6
    hidden = with_shapes(arm, {"tool": [sphere(jnp.zeros(3), 0.05)]}, coltype=0)
    assert pairs(hidden) == pairs(arm)


def test_explicit_links():
    model = _chain()
    found = pairs(model, [("c", "a"), ("a", "c"), ("plate", "b")])
    assert _names(found) == [("a", "c"), ("a", "c"), ("b", "plate")]
    for (i, j), names in zip(found.indices, found.links, strict=True):
        assert i < j
        assert tuple(model.link_names[model.tree.shape_links[k]] for k in (i, j)) == names


@pytest.mark.parametrize(("name", "count"), [("rby1a", 43), ("rby1m", 43), ("rby1ub", 29)])
def test_number_of_pairs_of_rby1(name, count):
    model = getattr(robots, name)()
    assert len(pairs(model)) == count
    assert ("link_torso_0", "link_right_arm_0") not in pairs(model).links


def test_pairs_are_static_data():
    model = _chain()
    assert hash(pairs(model)) == hash(pairs(_chain()))
    assert pairs(model) == pairs(_chain())

    @jax.jit
    @chex.assert_max_traces(n=1)
    def f(q):
        return signed_distances(model, q, pairs(model))

    f(jnp.zeros(3))
    f(jnp.ones(3))


def test_wrong_arguments():
    model = _chain()
    with pytest.raises(DtypeError, match=r"model must be a Model .* got str"):
        pairs("robot")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="one is 5"):
        pairs(model, [5])  # type: ignore[list-item]
    with pytest.raises(NameNotFoundError, match="did you mean 'plate'"):
        pairs(model, [("a", "plat")])
    with pytest.raises(ArgumentError, match="paired with itself"):
        pairs(model, [("a", "a")])
    with pytest.raises(ModelError, match="link 'tool' has no collision shape; these have: upper, lower"):
        pairs(robots.two_link_arm(), [("upper", "tool")])
    with pytest.raises(ModelError, match=r"'pendulum' has no collision shapes; .*collision\.mesh_shapes"):
        pairs(robots.pendulum())
    with pytest.raises(ArgumentError, match=r"links must be a list of pairs of link names, .* one is \('a',\)"):
        pairs(model, [("a",)])  # type: ignore[list-item]
    with pytest.raises(ArgumentError, match="one is 'ab'"):
        pairs(model, "ab cd".split())  # type: ignore[arg-type]
    with pytest.raises(DtypeError, match=r"pairs must be what collision.pairs\(model, ...\) returns, got tuple"):
        signed_distances(model, jnp.zeros(3), (("a", "c"),))  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="by must be one of 'auto', 'masks', 'adjacency', got 'mask'"):
        pairs(model, by="mask")  # type: ignore[arg-type]


def test_an_srdf_file_disables_pairs(tmp_path):
    model, file = _chain(), tmp_path / "chain.srdf"
    file.write_text(
        '<robot name="chain"><disable_collisions link1="c" link2="base" reason="Never"/>'
        '<disable_collisions link1="gripper" link2="a" reason="Default"/></robot>'
    )
    assert _names(srdf_pairs(model, file)) == [("a", "c"), ("a", "c"), ("b", "base"), ("base", "plate")]
    assert _names(srdf_pairs(model, str(file), pairs(model, [("c", "base"), ("a", "c")]))) == [("a", "c"), ("a", "c")]
    with pytest.raises(ParseError, match="no such file"):
        srdf_pairs(model, tmp_path / "other.srdf")
    file.write_text('<robot name="chain">\n<disable_collisions link1="c" link="base"/></robot>')
    with pytest.raises(ParseError, match=r"chain.srdf:2: .*<disable_collisions> has no attribute 'link2'"):
        srdf_pairs(model, file)
    file.write_text('<?xml version="1.0"?>\n<mujoco><disable_collisions link1="a" link2="c"/></mujoco>')
    with pytest.raises(ParseError, match=r"chain.srdf:2: .*the root element is <mujoco>, expected <robot>"):
        srdf_pairs(model, file)


def test_an_srdf_file_disables_all_pairs_of_a_link_but_some(tmp_path):
    """As MoveIt reads it: the default of a link, then the pairs that are enabled, then those that are disabled."""
    model, file = _chain(), tmp_path / "chain.srdf"
    base = '<robot name="chain"><disable_default_collisions link="base"/>'
    file.write_text(f"{base}</robot>")
    assert _names(srdf_pairs(model, file)) == [("a", "c"), ("a", "c")]
    file.write_text(f'{base}<enable_collisions link1="plate" link2="base"/></robot>')
    assert _names(srdf_pairs(model, file)) == [("a", "c"), ("a", "c"), ("base", "plate")]
    enabled = '<enable_collisions link1="b" link2="base"/><enable_collisions link1="c" link2="base"/>'
    file.write_text(f'{base}{enabled}<disable_collisions link1="base" link2="c"/></robot>')
    assert _names(srdf_pairs(model, file)) == [("a", "c"), ("a", "c"), ("b", "base")]


def test_pairs_that_never_or_always_touch_are_left_out():
    b = RobotBuilder("dial").link("base").link("hand", 1.0, inertia=0.1)
    for name, place in (("hit", (0.3, 0, 0)), ("missed", (0, 0, 1)), ("within", (0.0, 0, 0))):
        b.link(name).fixed(name, "base", name, xyz=place).capsule(name, 0.0, 0.05)
    b.link("post").fixed("post", "base", "post").revolute("turn", "post", "hand", axis=(0, 0, 1), lower=-3, upper=3)
    model = build_model(b.capsule("hand", 0.3, 0.03, xyz=(0.15, 0, 0), rpy=(0, 1.5708, 0)).build_description())
    every = pairs(model, [("hand", name) for name in ("hit", "missed", "within")])
    assert _names(sampled_pairs(model, every, samples=300)) == [("hand", "hit")]
    with pytest.raises(ArgumentError, match="samples"):
        sampled_pairs(model, every, samples=0)
