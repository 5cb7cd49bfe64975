"""Writes the generated pages of docs/, and the picture of the README.

docs/gpus.md is from measured times, and docs/machines.md from the presets. With --check nothing is written, and a page
that is out of date is an error. `docs/site_hooks.py` makes further pages, which only the site has.
"""

import sys
from pathlib import Path

import gpu_page
import machine_page
from unisono.base.files import write
from unisono.pictures import plots
from unisono.reproduce import wafer

PICTURE = Path(__file__).with_name("images") / "fig8.png"


def main() -> None:
    texts = {gpu_page.PAGE: gpu_page.page(), machine_page.PAGE: machine_page.page()}
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
