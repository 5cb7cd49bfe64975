"""Hooks of MkDocs: they add the pages of the root and the generated pages, and convert links and lists."""

import posixpath
import re
import sys
from html import escape
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

sys.path.insert(0, str(Path(__file__).parent))
import algorithm_pages
import command_page
import machine_page
import notebook_pages
import paper_pages
import results_page
import site_lists
import unsafe_page

ROOT = Path(__file__).resolve().parents[1]
#: Pages in the root of the project, with their paths on the site.
FROM_ROOT = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "ARCHITECTURE.md",
    "CONTRIBUTING.md": "CONTRIBUTING.md",
    "CHANGELOG.md": "CHANGELOG.md",
}
#: Folders whose files the pages use, and which an installed package does not have.
FOLDERS = ("examples", "machines", "workloads")
#: The script that lets the search run in pages that are opened as files. The theme would load it from a network; the
#: site has a copy.
SHIM = ROOT / "web" / "node_modules" / "iframe-worker" / "shim" / "index.js"
#: The page for addresses that do not exist.
MISSING = ROOT / "docs" / "404.html"
_SHIM_OF_THEME = "https://unpkg.com/iframe-worker/shim"
_SHIM_OF_SITE = "assets/iframe-worker.js"
#: Patterns of paths in the project, with the pages of the site that are made of these files.
_MADE_OF = {
    r"papers/(\w+)/claims\.toml": r"papers/\1.md",
    r"benches/results/\w+\.csv": results_page.PAGE,
    r"crates/algorithms/src/catalog": "algorithms.md",
}
_CODE = re.compile(r"`[^`\n]+`")
_LINK = re.compile(r"(\]\()([^)#:\s]+)((?:#[^)\s]*)?\))")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages that are not files of this folder."""
    own = [file for file in files if file.src_uri != "README.md"]
    made = [File.generated(config, at, content=(ROOT / name).read_text()) for name, at in FROM_ROOT.items()]
    made.append(File.generated(config, "algorithms.md", content=algorithm_pages.table()))
    made += [
        File.generated(config, f"algorithms/{name}.md", content=text) for name, text in algorithm_pages.pages().items()
    ]
    made += [File.generated(config, f"papers/{name}.md", content=text) for name, text in paper_pages.pages().items()]
    made += [
        File.generated(config, f"notebooks/{name}.md", content=text) for name, text in notebook_pages.pages().items()
    ]
    for program in (results_page, unsafe_page):
        made.append(File.generated(config, program.PAGE, content=program.page()))
    made.append(File.generated(config, _SHIM_OF_SITE, content=SHIM.read_text()))
    listed = [path.relative_to(ROOT).as_posix() for path in _files_of_examples()]
    copied = [File.generated(config, name, content=(ROOT / name).read_text()) for name in listed]
    for file in copied:
        # mkdocs.yml excludes the programs of docs/; the copied files must stay.
        file.inclusion = file.inclusion.INCLUDED
    made += copied
    made.append(File.generated(config, "examples.md", content=_page_of_examples(listed)))
    for file in made:
        file.inclusion = file.inclusion.NOT_IN_NAV if file.src_uri.startswith("algorithms/") else file.inclusion
    return Files([*own, *made])


def _files_of_examples() -> list[Path]:
    found = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.is_file()]
    return sorted(path for path in found if "__pycache__" not in path.parts)


def _page_of_examples(names: list[str]) -> str:
    """Returns a page with a link to each file."""
    text = [
        "# Files of the examples",
        "",
        "Pages name these files by their paths in the project. Presets of machines and",
    ]
    text += ["workloads are built in; their files name the sources of each number.", ""]
    return "\n".join([*text, *(f"* [`{name}`]({name})" for name in names), ""])


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001
    """Converts links and lists for the files of the project into those for the site."""
    at = page.file.src_uri
    if "\n## " not in markdown:
        # A page without sections needs no list of sections, so its tables get that room.
        page.meta["hide"] = ["toc"]
    source = next((name for name, where in FROM_ROOT.items() if where == at), f"docs/{at}")
    if at == "algorithms.md":
        return markdown
    if at == command_page.PAGE.name:
        markdown = command_page.page()

    def turned(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), link[2]))
        on_site = FROM_ROOT.get(target) or _page_of(target)
        if on_site.endswith(".ipynb") and not at.startswith("notebooks/"):
            # Links lead to the page of a notebook.
            on_site = on_site.removesuffix(".ipynb") + ".md"
        if posixpath.dirname(target).split("/")[0] in FOLDERS and (ROOT / target).is_file():
            return link[1] + posixpath.relpath(target, posixpath.dirname(at) or ".") + link[3]
        if files.get_file_from_path(on_site) is None and not (ROOT / "docs" / on_site).is_file():
            # A file of the project that is not a page: its name stays, without a link.
            return "]" + "\0"
        return link[1] + posixpath.relpath(on_site, posixpath.dirname(at) or ".") + link[3]

    markdown = _CODE.sub(lambda code: _with_bars(code[0]), markdown)
    turned_text = _LINK.sub(turned, markdown) if not at.startswith("algorithms/") else markdown
    text = re.sub(r"!?\[([^\]]*)\]\0", r"\1", turned_text)
    # Pages of algorithms already have the indentation of the site.
    return text if at.startswith("algorithms/") else site_lists.deepened(text)


def _page_of(path: str) -> str:
    """Returns the path on the site for a file of the project, or for the page that is made of the file."""
    for pattern, page in _MADE_OF.items():
        if found := re.fullmatch(pattern, path):
            return found.expand(page)
    return path.removeprefix("docs/")


def _with_bars(code: str) -> str:
    """Replaces escaped bars in the code of tables, because Python-Markdown would show the backslashes."""
    if "\\|" not in code:
        return code
    return "<code>" + escape(code[1:-1].replace("\\|", "|")).replace("|", "&#124;") + "</code>"


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:  # noqa: ARG001
    """Replaces the address of the theme's script by that of the site's copy."""
    here = posixpath.dirname(page.file.dest_uri) or "."
    return output.replace(_SHIM_OF_THEME, posixpath.relpath(_SHIM_OF_SITE, here))


def on_post_template(output: str, template_name: str, config: MkDocsConfig) -> str:  # noqa: ARG001
    """Replaces the theme's page for addresses that do not exist, which is legible only at the root of a server."""
    return MISSING.read_text(encoding="utf-8") if template_name == MISSING.name else output


def on_config(config: MkDocsConfig) -> Any:
    """Adds the version of the project to each page, and the pages of all kinds of machines to the navigation."""
    import unisono

    config.copyright = f"Unisono {unisono.__version__}"
    (reference,) = (section["Reference"] for section in config.nav or [] if "Reference" in section)
    at = reference.index({"Machines": machine_page.PAGE.name}) + 1
    named = str(config.nav)
    reference[at:at] = [name for name in machine_page.page_names() if name not in named]
    return config
