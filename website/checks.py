"""What must hold of the finished site: a build that breaks it fails.

Every link within the site leads somewhere, its anchor too; nothing is loaded from another host; every public name has
its place.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

_LINK = re.compile(r"<(\w+)\b[^>]*?\s(?:href|src)=\"?([^\"\s>]+)")
_ID = re.compile(r"\bid=\"?([^\"\s>]+)")


def problems(site: Path, names: set[str]) -> list[str]:
    """What is wrong with a site.

    Args:
        site: The folder with its pages.
        names: The ids that its pages must have somewhere.
    """
    pages = {path.resolve(): path.read_text() for path in sorted(site.rglob("*.html"))}
    ids = {path: set(_ID.findall(text)) for path, text in pages.items()}
    found = [f"{name} is nowhere" for name in sorted(names - set().union(*ids.values()))]
    for path, text in pages.items():
        for tag, link in _LINK.findall(text):
            url = urlsplit(link)
            if url.netloc and tag != "a":
                found.append(f"{path.relative_to(site.resolve())} loads {link}")
            if url.scheme or url.netloc or url.path.startswith("/"):
                continue
            target = (path.parent / unquote(url.path)).resolve() if url.path else path
            target = target / "index.html" if target.is_dir() else target
            if not target.exists() or (url.fragment and unquote(url.fragment) not in ids.get(target, set())):
                found.append(f"{path.relative_to(site.resolve())} links to {link}")
    return found


def on_post_build(config: Any) -> None:
    """Hook of MkDocs: after all pages were written."""
    from mkdocs.exceptions import PluginError

    if found := problems(Path(config.site_dir), config.hooks["website/api.py"].anchors()):
        raise PluginError("the site has faults:\n" + "\n".join(found[:40]))
