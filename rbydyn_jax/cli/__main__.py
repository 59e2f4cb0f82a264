"""``python -m rbydyn_jax.cli``: the command ``rbydyn`` where no script is installed."""

from . import main

if __name__ == "__main__":
    raise SystemExit(main())
