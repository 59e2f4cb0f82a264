"""What users get with the core dependencies alone: run by the Python of a fresh environment, outside of the sources."""

import contextlib
import importlib.metadata
import importlib.util
import io
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np

flags, printing = dict(jax.config.values), np.get_printoptions()
out, err = io.StringIO(), io.StringIO()
with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
    import rbydyn_jax
assert Path(rbydyn_jax.__file__).is_relative_to(sys.prefix), rbydyn_jax.__file__
assert dict(jax.config.values) == flags, "importing rbydyn_jax changes a jax flag"
assert np.get_printoptions() == printing, "importing rbydyn_jax changes numpy's print options"
assert out.getvalue() == err.getvalue() == "", "importing rbydyn_jax prints"
loaded = {"matplotlib", "tqdm", "mujoco", "viser", "trimesh"} & set(sys.modules)
assert not loaded, f"importing rbydyn_jax loads {loaded}"
for extra in ("matplotlib", "viser", "tqdm", "mujoco", "pinocchio", "rby1_sdk"):
    assert importlib.util.find_spec(extra) is None, f"{extra} should not be in the core environment"

from rbydyn_jax import robots  # noqa: E402

model = robots.rby1a()
mass_matrix = rbydyn_jax.crba(model, rbydyn_jax.neutral(model))
assert mass_matrix.shape == (model.nv, model.nv) and mass_matrix.dtype == np.float32

files = {str(path) for path in importlib.metadata.files("rbydyn_jax") or ()}
assert {"rbydyn_jax/py.typed", "rbydyn_jax/cli/__main__.py"} <= files
assert any(name.endswith("licenses/LICENSE") for name in files), "the licence is missing"
assert not [name for name in files if name.startswith(("tests/", "benchmarks/", "website/"))]

command = str(Path(sys.executable).with_name("rbydyn"))
version = subprocess.run([command, "--version"], capture_output=True, text=True, check=True).stdout
assert version == f"rbydyn_jax {rbydyn_jax.__version__}\n", version
subprocess.run([command, "check", "rby1a"], check=True)
print(f"rbydyn_jax {rbydyn_jax.__version__} in a fresh environment: ok")
