"""Keys and tables of TOML files: an error names the key that was probably meant, and a table is not an array."""

import re
from pathlib import Path

import pytest
import unisono as un
from unisono.planning.programs import read_workload

from .conftest import ROOT

#: A machine of each kind and of each family of networks, and workloads with all their keys.
FILES = [
    *(f"machines/{name}.toml" for name in ("archer", "wse2", "piuma", "dgx-a100", "dgx-h100-x8-sharp", "gb200-nvl72")),
    *(f"machines/{name}-small.toml" for name in ("hx2mesh", "fattree", "dragonfly", "torus2d", "hyperx2d")),
    *(f"workloads/{name}.toml" for name in ("resnet-152", "dlrm-artifact-rings", "gpt-3")),
]


def _read(text: str, path: Path) -> None:
    path.write_text(text)
    if re.search("^kind *=", text, re.MULTILINE):
        un.machine(path)
    else:
        read_workload(path)


@pytest.mark.parametrize("file", FILES)
def test_a_misspelt_key_is_refused_with_the_nearest_one(file: str, tmp_path: Path) -> None:
    text, path = (ROOT / file).read_text(), tmp_path / "x.toml"
    _read(text, path)
    keys = list(re.finditer(r"^(\[+)?(?:\w+\.)*(\w+)(?(1)\]+| *=)", text, re.MULTILINE))
    seen = set()
    for match in keys:
        key = match[2]
        # `kind` and `name` are skipped, because they decide which other keys are valid.
        if key in seen or key in ("kind", "name") or (match[1] and "." in match[0]):
            continue
        seen.add(key)
        other = key[:-1] + "q" + key[-1]
        begin, end = match.span(2)
        changed = text[:begin] + other + text[end:]
        if match[1]:
            changed = re.sub(rf"^(\[+){key}\b", rf"\1{other}", text, flags=re.MULTILINE)
        with pytest.raises(un.InputError, match=re.escape(f"unknown field `{other}`")) as refused:
            _read(changed, path)
        assert f"(did you mean `{key}`?)" in str(refused.value), (key, str(refused.value))
    assert len(seen) > 4


@pytest.mark.parametrize(
    ("file", "table", "array"),
    [
        ("machines/dgx-a100.toml", r"\[gpu\][^[]*", 'gpu = ["ampere", 12, "amd"]\n'),
        ("machines/dgx-a100.toml", r"\[accelerator\][^[]*", "accelerator = [312.0, 2039.0]\n"),
        ("workloads/resnet-152.toml", r"\[\[dimensions\]\][^[]*\[[^[]*", 'dimensions = [["data", 1024, [32, 32]]]\n'),
    ],
)
def test_a_table_is_no_array(file: str, table: str, array: str, tmp_path: Path) -> None:
    text = (ROOT / file).read_text()
    without, count = re.subn(table, "", text, count=1)
    assert count == 1
    with pytest.raises(un.InputError, match=r"(expected|accepted is) an object of keys"):
        _read(array + without, tmp_path / "x.toml")
