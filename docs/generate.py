"""Writes the generated pages of docs/, and the picture of the README.

docs/algorithms.md is from the registry, docs/gpus.md from measured times, docs/machines.md from the presets,
docs/results.md from the tables in benches/results, and the options of docs/commands.md from the program. With
--check it writes nothing and fails if a page is out of date.
"""

import sys
from pathlib import Path

import command_page
import gpu_page
import machine_page
import results_page
import unisono as un
from unisono.base.files import write
from unisono.pictures import plots
from unisono.reproduce import wafer

PAGE = Path(__file__).with_name("algorithms.md")
PICTURE = Path(__file__).with_name("images") / "fig8.png"
_HEAD = """# Algorithms

`python docs/generate.py` generates this table from the registry. `unisono algorithms NAME` prints one algorithm, with
the values of its parameters and the formulas of its time.

| algorithm | collectives | machines | parameters | summary | source |
|---|---|---|---|---|---|
"""


def page() -> str:
    """Returns the text of the page."""
    return _HEAD + "".join(
        f"| `{a['name']}` | {_list(a['collectives'])} | {_list(a['machines'])} "
        f"| {_list([param['name'] for param in a['params']])} | {_cell(a['summary'])} | {_cell(a['reference'])} |\n"
        for a in un.algorithms()
    )


def _list(names: list[str]) -> str:
    return ", ".join(names)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def main() -> None:
    texts = {
        PAGE: page(),
        command_page.PAGE: command_page.page(),
        gpu_page.PAGE: gpu_page.page(),
        machine_page.PAGE: machine_page.page(),
        results_page.PAGE: results_page.page(),
    }
    if "--check" not in sys.argv[1:]:
        for path, text in texts.items():
            write(path, text)
        write(PICTURE, plots.speedup_map(wafer.figure_8(), "The best fixed AllReduce on a row of PEs"))
        return
    for path, text in texts.items():
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            sys.exit(f"{path.name} is out of date: run 'python docs/generate.py'")


if __name__ == "__main__":
    main()
