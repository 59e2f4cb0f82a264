"""``rbydyn view``: what is printed."""

from __future__ import annotations

import pytest

from rbydyn_jax.cli import main
from rbydyn_jax.cli.view import view
from tests.cli.test_commands import ROBOT

pytest.importorskip("viser")


def test_the_address_and_what_is_missing_are_printed(tmp_path, capsys):
    path = tmp_path / "crank.urdf"
    path.write_text(ROBOT.replace('<link name="tip"/>', '<link name="tip"><visual><geometry><mesh filename="tip.stl"/>'
                                  "</geometry></visual></link>"))  # fmt: skip
    assert view(str(path), [0.2], port=0, block=False) == 0
    told = capsys.readouterr().out
    assert told.startswith("viewer: http://localhost:") and "not shown: tip.stl (see --packages)" in told


def test_wrong_arguments_end_with_2(tmp_path, capsys):
    for arguments, message in (
        (["none.urdf"], "no such file"),
        (["nobody"], "no robot named 'nobody'"),
        (["two_link_arm", "--q", "1,2,3"], "q must have shape (2,)"),
        (["two_link_arm", "--drag", "nose"], "no link named 'nose'"),
        (["two_link_arm", "--drag", "base", "--port", "0"], "no joint moves link 'base'"),
        (["two_link_arm", "--port", "99999999"], "port must be from 0 to 65535, got 99999999"),
    ):
        assert main(["view", *arguments]) == 2
        told = capsys.readouterr()
        assert message in told.err and "Traceback" not in told.err and not told.out
