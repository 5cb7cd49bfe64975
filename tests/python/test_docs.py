"""The documents name every command, option and algorithm, and their links are valid."""

import csv
import itertools
import re
import runpy
import sys
from pathlib import Path

import click
import pytest
import unisono as un
import unisono.tasks
from unisono import certificate_checker as checker
from unisono.cli import COMMANDS
from unisono.reproduce import PAPERS, listed_claims
from unisono.reproduce.statements import inventory

from .conftest import ROOT, printed

DOCS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("**/*.md")])


def generated(file: str, *names: str, function: str = "page") -> str:
    """Returns the page that a program in docs/ makes, with docs/ in the path of imports."""
    folder = str(ROOT / "docs")
    sys.path.insert(0, folder)
    try:
        page: str = runpy.run_path(str(ROOT / "docs" / file))[function](*names)
    finally:
        sys.path.remove(folder)
    return page


#: The site's page of commands; making it raises an error if a command has no section.
REFERENCE = generated("command_page.py")


def section(command: str) -> str:
    found = re.search(rf"^## `unisono {command}`.*?(?=^## |\Z)", REFERENCE, re.MULTILINE | re.DOTALL)
    assert found, f"docs/commands.md has no section '## `unisono {command}`'"
    return found[0]


def test_commands_are_sorted_and_documented() -> None:
    names = [command.name or "" for command in COMMANDS]
    assert names == sorted(names)
    assert re.findall(r"^## `unisono (\S+)`", REFERENCE, re.MULTILINE) == names


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_options_are_documented(command: click.Command) -> None:
    shared = REFERENCE.partition("## `unisono")[0]
    text = section(command.name or "") + shared
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert f"`{parameter.opts[-1]}" in text, parameter.opts


def test_each_command_is_one_file() -> None:
    folder = ROOT / "python" / "unisono" / "cli"
    # `import` is a word of Python, so its file is `import_.py`.
    files = {path.stem.rstrip("_").replace("_", "-") for path in folder.glob("*.py") if not path.stem.startswith("_")}
    assert files == {command.name for command in COMMANDS}


def test_table_of_algorithms_is_the_registry() -> None:
    page = generated("algorithm_pages.py", function="table")
    assert re.findall(r"^\| \[`(\S+)`\]", page, re.MULTILINE) == [a["name"] for a in un.algorithms()]


def test_list_of_machines_is_the_presets() -> None:
    page = generated("machine_page.py")
    assert (ROOT / "docs" / "machines.md").read_text() == page, "run 'python docs/generate.py'"
    presets = un.machine_presets()
    assert re.findall(r"^\| `(\S+)` \|", page, re.MULTILINE) == sorted({preset["kind"] for preset in presets})
    assert all(f"`{preset['name']}`" in page for preset in presets)


def test_every_unsafe_block_has_an_argument() -> None:
    page = generated("unsafe_page.py")
    assert page.count("\n| `") > 100
    assert "**missing**" not in page


def test_page_of_results_is_their_tables() -> None:
    page = generated("results_page.py")
    tables = {path.stem for path in (ROOT / "benches" / "results").glob("*.csv")}
    assert set(re.findall(r"^Table: `benches/results/(\w+)\.csv`$", page, re.MULTILINE)) == tables


@pytest.mark.parametrize("path", sorted((ROOT / "benches" / "results").glob("*.csv")), ids=lambda path: path.stem)
def test_tables_of_results_hold_numbers_with_their_origin(path: Path) -> None:
    """A ratio is the quotient of the two figures beside it, within the rounding of their digits."""

    def ends(text: str) -> list[float]:
        return [float(part) for part in text.split(" to ")]

    keys = set()
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            assert re.fullmatch(r"20\d\d-\d\d-\d\d", row["date"]), row
            assert all(row[name] for name in ("topic", "case", "measure", "machine", "command")), row
            assert bool(row["peer_figure"]) == bool(row["peer"]), row
            key = tuple(row[name] for name in ("topic", "case", "measure", "unit", "peer"))
            assert key not in keys, f"twice: {key}"
            keys.add(key)
            figures, peers, ratios = (ends(row[name] or "0") for name in ("figure", "peer_figure", "ratio"))
            if row["ratio"]:
                quotients = [q for a in figures for b in peers if a and b for q in (a / b, b / a)]
                assert any(abs(q / ratio - 1) < 0.06 for q in quotients for ratio in ratios), row


@pytest.mark.parametrize("paper", PAPERS)
def test_page_of_a_paper_lists_its_claims(paper: str) -> None:
    page = generated("paper_pages.py", paper)
    rows = page.partition("## Result")[0]
    # Rows with the key `apart` are in a second table.
    in_order = sorted(listed_claims(paper), key=lambda claim: "apart" in claim)
    assert re.findall(r"^\| `(\S+)`", rows, re.MULTILINE) == [claim["id"] for claim in in_order]
    statements = page.partition("## Statements")[2].partition("## Rows")[0]
    texts = [statement["text"].replace("|", "\\|") for statement, _ in inventory(paper).statements]
    assert (
        re.findall(
            r"^\| (?!section|-)[^|]*\| (.*?) \| (?:holds|refuted|consistent|tests|undecidable|open)\b", statements, re.M
        )
        == texts
    )


@pytest.mark.parametrize("page", DOCS, ids=lambda path: path.name)
def test_tables_and_bullets_follow_a_blank_line(page: Path) -> None:
    """Without the line, the site shows a table or list as text, although GitHub does not."""
    text = re.sub(r"^```.*?^```$", "```", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    for before, first, line in re.findall(r"^(.*)\n((\|.*)\n\|[-:| ]+\|)$", text, re.MULTILINE):
        assert not before or before.startswith("#"), first or line
    bullets = re.findall(r"^((?![*-] |  |#|<!--).+)\n([*-] .*)$", text, re.MULTILINE)
    assert not bullets


@pytest.mark.parametrize("page", DOCS, ids=lambda path: path.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", page.read_text()):
        assert (page.parent / target).exists(), target


@pytest.mark.parametrize("page", [page for page in DOCS if page.name != "CHANGELOG.md"], ids=lambda path: path.name)
def test_named_files_exist(page: Path) -> None:
    """Paths in pages start at the root; a word in capitals is a placeholder, as in ``crates/cost/src/KIND/``."""
    named = re.findall(r"`((?:benches|crates|docs|examples|papers|python|tests)/[^`\s]+)`", page.read_text())
    missing = {path for path in named if not re.search(r"\b[A-Z]+\b", path) and not (ROOT / path).exists()}
    # `make build` makes this folder.
    assert missing <= {"python/unisono/_lib"}


@pytest.mark.parametrize("page", ["python.md", "tasks.md"])
def test_examples_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The examples of a page run in order as one program, which may write files."""
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / page).read_text()
    program = "\n".join(re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))
    assert program
    exec(compile(program, f"docs/{page}", "exec"), {})


def steps(text: str) -> list[tuple[str, str]]:
    """Returns the command lines of a page with the output that the page shows for each."""
    shown = re.findall(r"^```console\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    found = [step.partition("\n") for block in shown for step in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]]
    return [(line, output) for line, _, output in found]


@pytest.mark.parametrize("page", [page for page in DOCS if page.name != "README.md"], ids=lambda path: path.name)
def test_commands_print_what_the_page_shows(page: Path, tmp_path: Path) -> None:
    """Commands with a shown output print it, if all their files are presets or outputs of earlier commands."""
    for line, output in steps(page.read_text()):
        program, _, *words = line.partition(" | ")[0].split()
        reads = {word for before, word in itertools.pairwise(["", *words]) if "." in word and before != "-o"}
        if program == "unisono" and output and all((tmp_path / word).exists() for word in reads):
            assert printed(line, tmp_path) == output, line


def test_own_network_prints_what_the_page_shows(tmp_path: Path) -> None:
    """The commands of the page, in order, on its list of cables, print the shown output."""
    text = (ROOT / "docs" / "own-network.md").read_text()
    (cables,) = re.findall(r"^```text\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    (tmp_path / "six.txt").write_text(cables)
    for line, output in steps(text):
        assert printed(line, tmp_path) == output, line
    assert (tmp_path / "six.png").read_bytes().startswith(b"\x89PNG")


def test_example_of_a_certificate_is_what_the_program_writes() -> None:
    text = (ROOT / "docs" / "certificates.md").read_text().partition("## Example\n")[2].partition("\n## ")[0]
    schedule, certificate = re.findall(r"^```text\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    accepted, refused = re.findall(r"^(accepted|refused): (.*)$", text, re.MULTILINE)
    assert un.Schedule.parse(schedule).certificate(text=schedule) == certificate
    instructions, facts, expressions, claims = checker.check(schedule, certificate)
    assert claims == ["repeatable", "place"]
    assert accepted[1] == (
        "complete, deadlock-free, race-free, repeatable, place; "
        f"{instructions} instructions, {facts} facts, {expressions} expressions"
    )
    without = certificate.replace("1<3@1", "1").replace("facts 2", "facts 1")
    with pytest.raises(checker.Refused, match=re.escape(refused[1])):
        checker.check(schedule, without)
    # The table explains each line and each step of the order.
    rows = [row.partition("…")[0] for row in re.findall(r"^\| `([^`]+)` \|", text, re.MULTILINE)]
    lines = certificate.split("\n")
    explained = [*lines[:6], *lines[6].split(" "), *lines[7:-1]]
    assert len(rows) == len(explained)
    assert all(line.startswith(row) for line, row in zip(explained, rows, strict=True))
    assert not un.Schedule.parse(schedule.replace("elements=1", "elements=2").replace("0..1", "0..2")).verify()


def test_pages_are_listed() -> None:
    # Pages of kinds of machines are in the list of machines.
    listed = "".join((ROOT / "docs" / name).read_text() for name in ("README.md", "machines.md"))
    for page in (ROOT / "docs").glob("*.md"):
        assert page.name == "README.md" or f"({page.name})" in listed, page.name


def test_mappers_are_documented() -> None:
    text = (ROOT / "docs" / "tasks.md").read_text()
    for name in unisono.tasks.__all__:
        assert (
            f"`{name}" in text or f".{name}" in text or name in ("Access", "Array", "Explanation", "Scaling", "View")
        ), name


def test_public_names_are_documented() -> None:
    text = (ROOT / "docs" / "python.md").read_text()
    for name in un.__all__:
        assert f"`{name}" in text or f"un.{name}" in text, name
