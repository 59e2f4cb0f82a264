"""Equations: TeX between dollars, marked by pymdownx.arithmatex, becomes MathML while the site is built.

Browsers show MathML without a script. What the converter does not know ends the build.
"""

from __future__ import annotations

import html
import re
from typing import Any

from latex2mathml.converter import convert

_MARKED = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.DOTALL)
_CODE = re.compile(r"<(code|pre)\b.*?</\1>", re.DOTALL)


def to_mathml(tex: str, display: str, where: object = None) -> str:
    """An equation as MathML.

    Args:
        tex: The equation, without dollars.
        display: `"inline"` or `"block"`.
        where: The page that has it, for the message of an error.
    """
    mathml = convert(tex, display=display)
    mathml = mathml.replace("<mover><mi>", '<mover accent="true"><mi>')  # a dot as near as a hat
    if unknown := re.findall(r">\s*(\\[A-Za-z]+)", html.unescape(mathml)):
        raise ValueError(f"{where}: no MathML for {', '.join(unknown)} in the equation {tex!r}")
    return mathml


def on_page_content(content: str, page: Any, **kwargs: Any) -> str:
    """Hook of MkDocs: replaces the equations of a page."""

    def equation(match: re.Match[str]) -> str:
        tex = html.unescape(match[2])
        if match[1] == "div":
            return to_mathml(tex, "block", page)
        # A line of text breaks before an equation, and never in one: a long one is scrolled on a narrow screen.
        return (
            f'<span class="equation">{to_mathml(tex, "inline", page)}</span>'
            if len(tex) > 50
            else to_mathml(tex, "inline", page)
        )

    done = _MARKED.sub(equation, content)
    if stray := re.search(r".{0,40}\$.{0,40}", _CODE.sub("", done)):
        raise ValueError(f"{page}: a dollar that is not of an equation: {stray[0]!r}")
    return done
