"""What a user sees of the package: its names, when its parts are imported, and its errors."""

from __future__ import annotations

import copy
import importlib.metadata
import inspect
import pickle
import sys
import traceback
import types

import jax.numpy as jnp
import pytest

import rbydyn_jax as rb
from rbydyn_jax._extras import require
from tests.compilation.support import start

SUBPACKAGES = ("collision", "compat", "constraints", "envs", "estimation", "identification", "planning", "rby1")
SUBPACKAGES += ("robots", "spatial", "testing", "viz", "whole_body")
OPTIONAL = ("matplotlib", "viser", "trimesh", "tqdm", "mujoco", "pinocchio", "rby1_sdk", "diffrax", "gymnasium")
ERRORS = [x for x in vars(rb).values() if inspect.isclass(x) and issubclass(x, Exception)]


@pytest.mark.ci
def test_subpackages_need_no_import_of_their_own():
    code = f"""
import json, sys
import rbydyn_jax as rb
late = {tuple(f"rbydyn_jax.{name}" for name in SUBPACKAGES if name != "spatial")!r}
early = [name for name in (*late, *{OPTIONAL!r}) if name in sys.modules]
assert not early, early
for name in {SUBPACKAGES!r}:
    assert getattr(rb, name) is sys.modules["rbydyn_jax." + name], name
names = [rb.rby1.math.TrapezoidalMotionGenerator.__name__, rb.rby1.dynamics.Robot.__name__]
print(json.dumps(names + [name for name in {OPTIONAL!r} if name in sys.modules]))
"""
    assert start(code) == ["TrapezoidalMotionGenerator", "Robot"]


def test_dir_lists_functions_classes_and_subpackages_only():
    names = dir(rb)
    modules = [name for name in names if inspect.ismodule(getattr(rb, name))]
    assert modules == sorted(SUBPACKAGES)
    assert {"rnea", "Model", "ArgumentError"} <= set(names)
    assert not [name for name in names if name.startswith("_")]
    assert dir(rb.rby1) == ["builders", "commands", "dynamics", "impedance", "math", "mobility", "states"]


@pytest.mark.parametrize("name", ["rneaa", "algorithm", "_missing"])
def test_unknown_names_are_attribute_errors(name):
    with pytest.raises(AttributeError, match=f"module 'rbydyn_jax' has no attribute '{name}'"):
        getattr(rb, name)
    with pytest.raises(AttributeError, match=f"module 'rbydyn_jax.rby1' has no attribute '{name}'"):
        getattr(rb.rby1, name)


def test_the_version_is_that_of_the_installed_package():
    assert rb.__version__ == importlib.metadata.version("rbydyn_jax")


@pytest.mark.parametrize("error", ERRORS)
def test_errors_show_where_they_are_public(error):
    assert issubclass(error, rb.RbydynError | rb.PerformanceWarning)
    assert f"{error.__module__}.{error.__qualname__}" == f"rbydyn_jax.{error.__name__}"
    assert getattr(rb, error.__name__) is error


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_errors_and_findings_are_copied_and_pickled(copied):
    finding = rb.Finding("error", "is bent", "joint 'elbow'", "arm.urdf", 3)
    assert copied(finding) == finding
    for error in (
        rb.ArgumentError("k must be at least 1, got 0"),
        rb.ParseError([finding]),
        rb.CommandError([finding]),
        rb.NameNotFoundError("elbw", "joint", ["elbow"]),
        rb.RecompilationError("rnea", ["q: (2,) -> (3,)"]),
        rb.MissingExtraError("matplotlib", "viz", "viz.plot_motion"),
    ):
        again = copied(error)
        assert type(again) is type(error) and str(again) == str(error)


def test_errors_of_subclasses_elsewhere_keep_their_module():
    class OwnError(rb.RbydynError):
        pass

    assert OwnError.__module__ == __name__


def test_a_bad_value_is_an_argument_error_and_a_value_error():
    model = rb.robots.two_link_arm()
    with pytest.raises(ValueError, match="frame must be one of") as caught:
        rb.jacobian(model, jnp.zeros(2), "tool", frame="body")  # type: ignore[arg-type]
    assert type(caught.value) is rb.ArgumentError and isinstance(caught.value, rb.RbydynError)
    line = traceback.format_exception_only(caught.value)[0]
    assert line.startswith("rbydyn_jax.ArgumentError: frame must be one of")


def test_a_package_that_is_missing_is_told_from_one_that_cannot_be_imported(monkeypatch, tmp_path):
    """One that lacks another package, or is broken, is not to be installed once more."""
    (tmp_path / "lacking.py").write_text("import no_such_package.inside")
    (tmp_path / "broken.py").write_text("from os import no_such_name")
    (tmp_path / "whole").mkdir()
    (tmp_path / "whole" / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("no_such_package", "no_such_package.inside", "whole.no_such_module"):
        with pytest.raises(
            rb.MissingExtraError, match=rf"^it needs the package '{name}': pip install 'rbydyn_jax\[x\]'$"
        ):
            require(name, "x", "it")
    for name, cause in (
        ("lacking", "No module named 'no_such_package'"),
        ("broken", "cannot import name 'no_such_name'"),
    ):
        message = f"^it needs the package '{name}', which is installed but cannot be imported: .*Error: {cause}"
        with pytest.raises(rb.MissingExtraError, match=message):
            require(name, "x", "it")


def test_the_version_of_the_sdk_is_passed_through(monkeypatch):
    sdk = types.ModuleType("rby1_sdk")
    sdk.__version__ = "1.2.3"  # type: ignore[attr-defined]
    monkeypatch.setattr("rbydyn_jax.rby1.commands._sdk.load_sdk", lambda: sdk)
    assert rb.rby1.__version__ == "1.2.3"
    with pytest.raises(AttributeError):
        _ = rb.rby1.__path_of_nothing__
    monkeypatch.undo()
    monkeypatch.setitem(sys.modules, "rby1_sdk", None)
    assert not hasattr(rb.rby1, "__version__")
