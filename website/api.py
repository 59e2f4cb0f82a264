"""The API reference: a page for each public package, written anew in every build from the sources.

A name is public where the sources say so: it is defined without a leading underscore, or imported as itself
(`from .ik import solve_ik as solve_ik`). Nothing is listed here by hand but the packages for those who extend the
library, which are imported by their own names.
"""

from __future__ import annotations

import ast
import functools
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "rbydyn_jax"
# A heading, link or listing, which is skipped; or a name in code, perhaps with its arguments, but no extra's.
_NAME = re.compile(r"<(h[1-6]|a|pre)\b.*?</\1>|(?<!extra )(<code>([A-Za-z_][\w.]*)(?:\([^<]*\))?</code>)", re.DOTALL)
_ARGUMENTS = ("collision", "constraints", "joints", "shapes")  # arguments of functions more often than modules
FOR_EXTENSIONS = (f"{PACKAGE}.joints", f"{PACKAGE}.shapes")


@dataclass
class Module:
    """A public module: its docstring, its names by the module that defines them, its public submodules."""

    name: str
    docstring: str = ""
    names: dict[str, list[str]] = field(default_factory=dict)
    synonyms: dict[str, str] = field(default_factory=dict)
    submodules: list[str] = field(default_factory=list)

    @property
    def summary(self) -> str:
        """The first paragraph of its docstring."""
        return first_paragraph(self.docstring)

    @property
    def page(self) -> str:
        """Where its page is in the site."""
        return f"api/{self.name.removeprefix(f'{PACKAGE}.')}.md"


def first_paragraph(docstring: str) -> str:
    """A docstring up to its first empty line, on one line."""
    return " ".join(docstring.split("\n\n")[0].split())


def source_of(module: str) -> Path:
    """The file of a module."""
    path = ROOT.joinpath(*module.split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def read_module(name: str) -> Module:
    """What is public in a module, without importing it."""
    tree = ast.parse(source_of(name).read_text())
    found = Module(name, ast.get_docstring(tree) or "")
    _read(tree.body, found, name)
    return found


def _read(body: list[ast.stmt], found: Module, source: str) -> None:
    for node in body:
        if isinstance(node, ast.If):
            _read(node.body, found, source)  # `if TYPE_CHECKING`: what is imported when it is first used
        elif isinstance(node, ast.ImportFrom):
            _read_import(node, found)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name[0] != "_":
            found.names.setdefault(source, []).append(node.name)
        elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Attribute):
            target = ast.unparse(node.targets[0])
            if target[0] != "_" and target.isidentifier() and ast.unparse(node.value.value) in _imported(body):
                found.synonyms[target] = ast.unparse(node.value)


def _imported(body: list[ast.stmt]) -> set[str]:
    """The sibling modules that a module imports."""
    imports = (node for node in body if isinstance(node, ast.ImportFrom) and node.level and node.module is None)
    return {alias.name for node in imports for alias in node.names}


def _read_import(node: ast.ImportFrom, found: Module) -> None:
    is_package = source_of(found.name).name == "__init__.py"
    parts = found.name.split(".")
    base = ".".join(parts[: len(parts) + is_package - node.level])
    source = f"{base}.{node.module}" if node.module else base
    for alias in node.names:
        if alias.name == "*":
            tree = ast.parse(source_of(source).read_text())
            for inner in tree.body:
                if isinstance(inner, ast.ImportFrom):
                    _read_import(inner, found)
        elif alias.asname == alias.name and node.module is None and is_package:
            found.submodules.append(f"{found.name}.{alias.name}")
        elif alias.asname == alias.name and node.module is not None:
            found.names.setdefault(source, []).append(alias.name)


@functools.cache
def public_modules() -> list[Module]:
    """All public modules, each before its submodules."""

    def below(name: str) -> list[Module]:
        module = read_module(name)
        return [module, *(x for submodule in sorted(module.submodules) for x in below(submodule))]

    return [*below(PACKAGE), *(read_module(name) for name in FOR_EXTENSIONS)]


def public_names() -> set[str]:
    """The full names of all that is public."""
    return {f"{module.name}.{name}" for module in public_modules() for names in module.names.values() for name in names}


def anchors() -> set[str]:
    """The ids under which all that is public is described."""
    return {target.partition("#")[2] for target in targets(public_modules()).values()} - {""}


def page_of(module: Module) -> str:
    """The Markdown of a module's page, for mkdocstrings: its own names, then those of its parts, errors last."""
    lines = [f"# {module.name}", "", module.docstring, ""]
    for source, names in sorted(module.names.items(), key=lambda x: (x[0] != module.name, x[0].endswith("_errors"))):
        if source != module.name:
            lines += [f"## {_title(read_module(source))} {{ #{source}-names }}", ""]
        for name in names:
            lines += [f"::: {_home(module, source, name)}.{name}", *_options(source, name), ""]
    if module.submodules and module.name != PACKAGE:
        lines += ["## Its modules", "", *_table([read_module(name) for name in sorted(module.submodules)])]
    if module.synonyms:
        lines += ["## Other names of the same", "", "| name | is |", "|---|---|"]
        lines += [f"| `{name}` | `spatial.{target}` |" for name, target in module.synonyms.items()]
    return "\n".join(lines) + "\n"


def _home(module: Module, source: str, name: str) -> str:
    """The module below which a name is found; where a function has the name of its module, they find the module."""
    return source if source_of(f"{module.name}.{name}").exists() else module.name


def _options(source: str, name: str) -> list[str]:
    """What a class has from a private base class is shown as its own."""
    classes = (
        x for x in ast.parse(source_of(source).read_text()).body if isinstance(x, ast.ClassDef) and x.name == name
    )
    bases = [ast.unparse(base) for x in classes for base in x.bases]
    return ["    options:", "      inherited_members: true"] if any(x[0] == "_" for x in bases) else []


def _title(module: Module) -> str:
    """The part of a module's summary that serves as a title."""
    title = module.summary
    for end in (": ", "; ", ". "):
        title = title.split(end)[0]
    return title.rstrip(".")


def index_of(modules: list[Module]) -> str:
    """The Markdown of the first page of the reference."""
    lines = ["# API reference", "", "Every public name, by the package from which it is imported.", ""]
    return "\n".join([*lines, *_table(modules)]) + "\n"


def _table(modules: list[Module]) -> list[str]:
    """Modules with their summaries."""
    lines = ["| | |", "|---|---|"]
    lines += [
        f"| [`{x.name}`]({x.page.removeprefix('api/')}) | {x.summary.replace('|', chr(92) + '|')} |" for x in modules
    ]
    return lines


def navigation(modules: list[Module]) -> list[Any]:
    """The entries of the navigation: pages, and sections where a package has submodules."""
    sections: dict[str, list[Any]] = {PACKAGE: ["api/index.md", {PACKAGE: f"api/{PACKAGE}.md"}]}
    for module in modules[1:]:
        parent, _, last = module.name.rpartition(".")
        sections[module.name] = [module.page]
        sections[parent].append({last: sections[module.name] if module.submodules else module.page})
    return sections[PACKAGE]


def targets(modules: list[Module]) -> dict[str, str]:
    """Where public names are described, by the forms in which pages write them.

    Without its package a name is found if it is one of the package's own, or if it cannot be taken for a word or for
    another name.
    """
    found: dict[str, str] = {}
    bare: dict[str, set[str]] = {}
    for module in modules:
        found |= {module.name: module.page, module.name.removeprefix(f"{PACKAGE}."): module.page}
        for source, name in [(source, name) for source, names in module.names.items() for name in names]:
            url = f"{module.page}#{_home(module, source, name)}.{name}"
            full = f"{module.name}.{name}"
            found |= {full: url, full.removeprefix(f"{PACKAGE}."): url, f"rb.{full.removeprefix(f'{PACKAGE}.')}": url}
            if module.name.count(".") > 1:  # `so3.exp` for `spatial.so3.exp`
                bare.setdefault(f"{module.name.rpartition('.')[2]}.{name}", set()).add(url)
            if "_" in name or not name.islower():
                bare.setdefault(name, set()).add(url)
    return {name: next(iter(urls)) for name, urls in bare.items() if len(urls) == 1} | found


def on_page_content(content: str, page: Any, config: Any, files: Any) -> str:
    """Hook of MkDocs: public names in the text of a page lead to their description."""
    from mkdocs.utils import get_relative_url

    modules = public_modules()
    known = targets(modules)
    here = next((x.name.removeprefix(f"{PACKAGE}.") for x in modules if x.page == page.file.src_uri), "")

    def linked(match: re.Match[str]) -> str:
        if match[1] or match[3] in _ARGUMENTS:
            return match[0]
        target = known.get(f"{here}.{match[3]}") or known.get(match[3])
        if target is None:
            return match[0]
        path, _, anchor = target.partition("#")
        url = get_relative_url(files.get_file_from_path(path).url, page.url)
        return f'<a href="{url}{"#" * bool(anchor)}{anchor}">{match[2]}</a>'

    return _NAME.sub(linked, content)


def on_files(files: Any, config: Any) -> Any:
    """Hook of MkDocs: adds the pages, and puts them where the navigation says `api/`."""
    from mkdocs.structure.files import File

    public_modules.cache_clear()  # `mkdocs serve` builds again when a source has changed
    modules = public_modules()
    files.append(File.generated(config, "api/index.md", content=index_of(modules)))
    for module in modules:
        files.append(File.generated(config, module.page, content=page_of(module)))
    config.nav.append({"API reference": navigation(modules)})
    return files
