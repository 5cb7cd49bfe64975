"""The site of the documentation: it builds without a warning, uses no network, and its search finds pages."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import unisono as un

from .conftest import ROOT, SOAK
from .test_mpi import PATIENCE

#: Calls mkdocs with plans on one machine at one size, since plans are most of the work of the site.
FEWER = """
import sys
sys.path.insert(0, "docs")
import algorithm_pages
algorithm_pages.MACHINES, algorithm_pages.SIZES = algorithm_pages.MACHINES[3:4], algorithm_pages.SIZES[:1]
from mkdocs.__main__ import cli
cli()
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    mkdocs = ["-m", "mkdocs"] if SOAK else ["-c", FEWER]
    command = [sys.executable, *mkdocs, "build", "--quiet", "--strict", "--site-dir", str(folder)]
    env = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    return folder


def test_every_document_and_algorithm_has_a_page(site: Path) -> None:
    pages = {str(path.relative_to(site).with_suffix("")) for path in site.glob("**/*.html")}
    folder = ROOT / "docs"
    documents = {str(path.relative_to(folder).with_suffix("")) for path in folder.glob("**/*.md")}
    wanted = {name.removesuffix("README") + "index" if name.endswith("README") else name for name in documents}
    assert wanted <= pages
    assert {f"algorithms/{about['name']}" for about in un.algorithms()} <= pages
    assert (site / "examples" / "programs" / "transformer.hlo").read_bytes() == (
        ROOT / "examples" / "programs" / "transformer.hlo"
    ).read_bytes()
    assert 'href="machines/dgx-h100.toml"' in (site / "examples.html").read_text()
    text = (site / "algorithms.html").read_text()
    assert all(f'href="algorithms/{about["name"]}.html"' in text for about in un.algorithms())
    commands = (site / "commands.html").read_text()
    assert "unisono plan [OPTIONS] COLLECTIVE" in commands
    assert "<!-- " not in commands.partition("<article")[2].partition("</article>")[0]
    assert "FIRST-LAST&#124;all" in commands or "FIRST-LAST|all" in commands


def test_code_begins_at_the_edge_of_its_frame(site: Path) -> None:
    text = (site / "index.html").read_text()
    code = [re.sub(r"<[^>]*>", "", found) for found in re.findall(r"<pre>(.*?)</pre>", text, re.DOTALL)]
    assert "pip install unisono --find-links out/packages\n" in [block.split("unisono demo")[0] for block in code]


@pytest.mark.soak
def test_pages_of_algorithms_say_where_they_are_best(site: Path) -> None:
    text = (site / "algorithms" / "dissemination.html").read_text()
    assert "<svg" in text
    plan = un.plan("allreduce", un.machine("archer", 16), bytes=64)
    best = (site / "algorithms" / f"{plan.algorithm}.html").read_text()
    assert re.search(r"16 ranks.*?allreduce of 64 B", best, re.DOTALL)


@pytest.mark.soak
def test_the_site_loads_nothing_from_a_network(site: Path) -> None:
    for page in site.glob("**/*.html"):
        loaded = re.findall(
            r"""<(?:script|img|link|iframe)[^>]*(?:src|href)=["']?(https?:[^"' >]+)""", page.read_text()
        )
        # No element of a page that loads a file has an absolute address.
        assert not loaded, page


@pytest.mark.soak
def test_lists_are_lists_on_the_site(site: Path) -> None:
    for page in site.glob("**/*.html"):
        text = re.sub(r"<(pre|code|script|style)\b.*?</\1>", "", page.read_text(), flags=re.DOTALL)
        assert not re.search(r"(?:^|<p>)(?:[*-]|\d+\.) ", text, re.MULTILINE), page
    assert not list(site.glob("**/__pycache__"))


@pytest.mark.soak
def test_the_search_finds_a_word(site: Path, browser: Any) -> None:
    page = browser.new_page()
    page.set_default_timeout(1000 * PATIENCE)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto((site / "index.html").as_uri())
    page.locator(".md-search__input").wait_for(state="attached")
    page.keyboard.press("/")
    page.keyboard.type("dissemination")
    page.locator(".md-search-result__item").first.wait_for()
    assert any("dissemination" in text for text in page.locator(".md-search-result__item").all_text_contents())
    assert not [url for url in asked if not url.startswith(("file:", "blob:", "data:"))]
    page.close()
