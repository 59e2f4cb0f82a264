"""The forms in which a sweep runs, side by side: how far the slowest is behind the fastest.

Each is measured in a process of its own, as CPU time of a batch of 1024 with plain `jit` and `vmap` (a batch of 2048,
split over two devices by `jit`, in the form `split`), and CPU time to compile it.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .fresh import KEPT_MEMORY, records
from .store import Store

FORMS = {
    "unrolled": "the default on one CPU device",
    "scanned": "robots of more than 64 bodies, `with_traversal(model, 'scanned')`, exported programs",
    "split": "a batch that plain `jit` splits over two devices",
    "untested": "a jaxlib newer than those that were tested: barriers in place of kernels",
}
OPERATIONS = (
    "fk",
    "jacobian",
    "rnea",
    "crba",
    "aba",
    "mass_matrix_inverse",
    "self_distance",
    "fk_gradient",
    "rnea_gradient",
    "rnea_derivatives",
    "aba_derivatives",
)
BATCH = 1024


def add_command(commands: argparse._SubParsersAction, results: Path) -> None:
    """Adds `forms` to the command line."""
    forms = commands.add_parser("forms", help="the forms of the sweeps, against the fastest")
    forms.add_argument("--robot", default="rby1a")
    forms.add_argument("--operations", type=lambda s: s.split(","), default=list(OPERATIONS))
    forms.add_argument("--dtypes", type=lambda s: s.split(","), default=["float64", "float32"])
    forms.add_argument("--forms", type=lambda s: s.split(","), default=list(FORMS))
    forms.add_argument("--seconds", type=float, default=0.3, help="CPU time that each contestant gets")
    forms.add_argument("--output", type=Path, default=None, help="default: forms_JAXLIB.json in results")
    forms.set_defaults(results=results)


def run(arguments: argparse.Namespace) -> None:
    """Measures, writes JSON, prints a table."""
    about = Store(Path("unused"), keep=False).about
    output = arguments.output or arguments.results / f"forms_{about['versions']['jaxlib']}.json"
    found: dict[str, Any] = {**about, "robot": arguments.robot, "times": []}
    for dtype in arguments.dtypes:
        for operation in arguments.operations:
            for form in arguments.forms:
                for record in _in_process(arguments, form, dtype, operation):
                    found["times"].append(record)
                    print("   ", record, file=sys.stderr)
            output.write_text(json.dumps(found, indent=1) + "\n")
    print(table(found))


def table(found: dict[str, Any]) -> str:
    """What was found, as Markdown."""
    forms = list(dict.fromkeys(r["form"] for r in found["times"]))
    rows: dict[tuple[str, str], dict[str, dict]] = {}
    for r in found["times"]:
        rows.setdefault((r["operation"], r["dtype"]), {})[r["form"]] = r
    lines = [
        "CPU time per configuration [us] and of tracing and compiling [s].",
        "",
        "| | " + " | ".join(forms) + " | slowest / fastest |",
        "|---" * (len(forms) + 2) + "|",
    ]
    for (operation, dtype), by in rows.items():
        cells = [f"{by[form]['us']:.2f}, {by[form]['compile_s']:.1f} s" for form in forms if form in by]
        times = [r["us"] for r in by.values()]
        lines.append(f"| `{operation}` {dtype} | " + " | ".join(cells) + f" | {max(times) / min(times):.1f} |")
    return "\n".join(lines)


def _in_process(arguments: argparse.Namespace, form: str, dtype: str, operation: str) -> Iterator[dict[str, Any]]:
    """The records that a fresh process prints, with nothing cached."""
    given = (arguments.robot, form, dtype, operation, arguments.seconds)
    code = f"from benchmarks.forms import time_form; time_form{given!r}"
    flags = os.environ.get("XLA_FLAGS", "")
    environment = {
        "XLA_FLAGS": f"{flags} --xla_force_host_platform_device_count=2" if form == "split" else flags,
        "OMP_NUM_THREADS": "1",
        **KEPT_MEMORY,
    }
    for record in records(code, dtype, **environment):
        yield {"form": form, "dtype": dtype, "operation": operation, **record}


def time_form(robot: str, form: str, dtype: str, operation: str, seconds: float) -> None:
    """Prints the time per configuration of one form."""
    import jax
    import numpy as np
    from jax.sharding import Mesh, NamedSharding, PartitionSpec

    import rbydyn_jax as rb
    from rbydyn_jax.xla import tuning

    from .case import make_case
    from .ours import Ours, over_batch
    from .timing import cpu_seconds, race

    if form == "untested":
        tuning.TESTED_BELOW = (0, 0)
    batch = BATCH * jax.device_count()
    ours = Ours(make_case(robot, dtype, batch), operation)
    model = rb.with_traversal(ours.model, "scanned") if form == "scanned" else ours.model
    arrays = ours.arguments(batch)
    if form == "split":
        mesh = Mesh(np.array(jax.devices()), ("batch",))
        arrays = jax.device_put(arrays, NamedSharding(mesh, PartitionSpec("batch")))
    batched = over_batch(ours.single, len(arrays), batch)
    f, compile_s = cpu_seconds(lambda: jax.jit(batched).lower(model, *arrays).compile())
    (us,) = race({form: lambda: jax.block_until_ready(f(model, *arrays))}, seconds).values()
    print(json.dumps({"us": us / batch, "compile_s": compile_s}))
