"""Topologies of NCCL with a damaged device: the slowest device decides the library's times, and is named."""

import random
import re
from pathlib import Path

import pytest
import tomli_w
import unisono
from unisono import InputError, UnsupportedError
from unisono.planning.libraries import library_choice

CORPUS = Path(__file__).parents[2] / "crates" / "fuzz" / "corpus" / "machine-import"
COLLECTIVES = ("allgather", "allreduce", "broadcast", "reduce", "reduce-scatter")
#: Topology files with NVIDIA's GPUs, since other GPUs have other libraries.
DUMPS = ("dgx-a100.xml", "h100.xml", "pcie-v100.xml")
#: The relative difference allowed, since NCCL rounds rates and bounds have exact numbers of bytes.
SLACK = 0.01


def damaged(text: str, rng: random.Random) -> str:
    """Returns a topology with one or two damages: missing NVLinks, fewer PCIe lanes, slower PCIe or interfaces."""
    patterns = [
        (r"<nvlink [^>]*/>", ""),
        (r"(?s)(<gpu [^>]*>)(?:(?!</gpu>).)*</gpu>", r"\1</gpu>"),
        (r'(<nvlink [^>]*count=")\d+(")', rf"\g<1>{rng.randint(1, 6)}\2"),
        (r'(link_width=")\d+(")', rf"\g<1>{rng.choice((1, 4, 8))}\2"),
        (r'(link_speed=")[^"]*(")', r"\g<1>2.5 GT/s PCIe\2"),
        (r'(<net [^>]*speed=")\d+(")', rf"\g<1>{rng.choice((-1, 10000, 25000))}\2"),
    ]
    for _ in range(rng.randint(1, 2)):
        pattern, by = rng.choice([one for one in patterns if re.search(one[0], text)])
        found = rng.choice([*re.finditer(pattern, text)])
        text = text[: found.start()] + re.sub(pattern, by, found.group(), count=1) + text[found.end() :]
    return text


def by_measured_rates(machine: unisono.Machine, folder: Path) -> unisono.Machine:
    """Returns the machine with the measured rates in place of those of the data sheet."""
    described = machine.describe()
    text = re.sub(r"gbps=[^ \\]+ measured=", "gbps=", tomli_w.dumps({**described, "name": "measured"}))
    (folder / "measured.toml").write_text(re.sub(r"(?m)^measured_gbps = .*\n", "", text))
    return unisono.machine(str(folder / "measured.toml"))


@pytest.mark.parametrize("seed", range(12))
def test_no_time_of_the_library_is_below_the_bound_by_measured_rates(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    for dump in DUMPS:
        file = tmp_path / "dump.xml"
        file.write_text(damaged((CORPUS / dump).read_text(), rng))
        boxes = rng.choice((1, 2)) if "<net " in file.read_text() else 1
        machine = unisono.import_machine(str(file), boxes=boxes)
        measured = by_measured_rates(machine, tmp_path)
        for collective in COLLECTIVES:
            elements = rng.choice((1 << 10, 1 << 22, 1 << 26)) // 64 * 64
            try:
                choice = library_choice(collective, machine, elements)
            except (InputError, UnsupportedError):
                continue
            assert choice["seconds"] is not None
            least = max(bound["seconds"] for bound in unisono.bounds(collective, measured, elements=elements))
            assert choice["seconds"] >= least * (1 - SLACK), (dump, boxes, collective, elements, choice["algorithm"])


def test_one_gpu_without_nvlinks_or_with_half_of_them_decides(tmp_path: Path) -> None:
    text = (CORPUS / "h100.xml").read_text()
    gpu = re.search(r"(<gpu [^>]*>)(.*?)</gpu>", text, re.DOTALL)
    assert gpu is not None
    links = re.findall(r"<nvlink [^>]*/>", gpu[2])
    assert len(links) % 2 == 0, links
    file = tmp_path / "dump.xml"
    times: dict[str, float] = {}
    for case, count in (("whole", len(links)), ("half", len(links) // 2), ("none", 0)):
        file.write_text(text.replace(gpu.group(), f"{gpu[1]}{''.join(links[:count])}</gpu>", 1))
        machine = unisono.import_machine(str(file))
        choice = library_choice("allreduce", machine, 1 << 28)
        assert choice["seconds"] is not None
        times[case] = choice["seconds"]
        assert (choice["algorithm"] == "nvls") is (case == "whole"), choice
        notes = machine.describe()["notes"]
        assert any("slower links to other GPUs" in note for note in notes) is (case != "whole"), notes
    assert times["whole"] < times["half"] < times["none"], times
