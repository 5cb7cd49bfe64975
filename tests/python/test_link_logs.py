"""Logs of links: accepted and refused files, and the machines that result."""

import json
import random
from pathlib import Path

import pytest
import unisono as un
from unisono.logs.link_calibration import with_links
from unisono.logs.links import Interface, LinkLog, Pair, read_links

from tests.python.conftest import ROOT, call, json_of, written

COPIES = ROOT / "docs" / "measured" / "a100x4-nvlink-p2p.csv"
RULE = "-" * 87
#: The profile of two nodes in microsoft/taccl (examples/topo/topo-ndv2-1MB.json and -1KB.json).
TACCL = {
    "name": "NDv2_1MB", "gpus_per_node": 8, "nics_per_node": 1, "alpha": 0.3, "node_betas_list": [23, 46],
    "node_invbws_list": [23, 46], "remote_invbw": 107, "remote_alpha": 2.6, "remote_beta": 105,
}  # fmt: skip
TACCL_SHORT = TACCL | {
    "name": "NDv2_1KB", "alpha": 30, "node_betas_list": [2.24, 4.50], "node_invbws_list": [32.25, 34.50],
    "remote_alpha": 260, "remote_beta": 10.25, "remote_invbw": 270.25,
}  # fmt: skip


def bandwidth_log(device: str, gbps: float, unit: str = "Gb", *, both: bool = False, size: int = 1 << 20) -> str:
    """Returns the output of `ib_write_bw` (linux-rdma/perftest, src/perftest_parameters.h)."""
    printed = gbps * (2 if both else 1)
    average = printed if unit == "Gb" else printed / 8e-3 / 1.048576
    rows = [(size // 2, 0.9), (size, 1.0)]
    table = "".join(
        f" {of:<7}    {5000:<10}       {0:<7.2f}            {share * average:<7.2f}\t\t     "
        f"{share * printed / 8e-3 / of:<7.6f}\n"
        for of, share in rows
    )
    head = " #bytes     #iterations    BW peak[X/sec]    BW average[X/sec]   MsgRate[Mpps]".replace("X", unit)
    title = f"                    RDMA_Write {'Bidirectional ' if both else ''}BW Test\n"
    return (
        f"{RULE}\n{title} Dual-port       : OFF\t\tDevice         : {device}\n Number of qps   : 1\n{RULE}\n "
        f"local address: LID 0000\n{RULE}\n{head}\n{table}{RULE}\n"
    )


def latency_log(device: str, us: float, kind: str = "RDMA_Write") -> str:
    head = (
        " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   "
        "99% percentile[usec]   99.9% percentile[usec] "
    )
    row = f" 2       1000          {us:<7.2f}        9.00      {us + 0.05:<7.2f} {us + 0.1:<7.2f} 0.09 8.00 9.00   "
    return (
        f"{RULE}\n   {kind} Latency Test\n Dual-port       : OFF\t\tDevice : {device}\n{RULE}\n{head}\n{row}\n{RULE}\n"
    )


def matrix(rates: dict[tuple[int, int], float], count: int, corner: str = "   D\\D", same: float = 1300.0) -> str:
    lines = [corner + "".join(f"{gpu:6} " for gpu in range(count))]
    for row in range(count):
        lines.append(f"{row:6} " + "".join(f"{rates.get((row, to), same):6.2f} " for to in range(count)))
    return "\n".join(lines) + "\n"


def copies_log(rates: dict[tuple[int, int], float], count: int, gpu: str = "NVIDIA A100-SXM4-40GB") -> str:
    """Returns the output of `p2pBandwidthLatencyTest` of NVIDIA/cuda-samples."""
    gpus = "".join(f"Device: {at}, {gpu}, pciBusID: {at + 3:x}, pciDeviceID: 0, pciDomainID:0\n" for at in range(count))
    both = {(a, b): rates[a, b] + rates[b, a] for a, b in rates}
    return (
        f"[P2P (Peer-to-Peer) GPU Bandwidth Latency Test]\n{gpus}P2P Connectivity Matrix\n"
        f"Unidirectional P2P=Disabled Bandwidth Matrix (GB/s)\n{matrix(dict.fromkeys(rates, 17.0), count)}"
        f"Unidirectional P2P=Enabled Bandwidth (P2P Writes) Matrix (GB/s)\n{matrix(rates, count)}"
        f"Bidirectional P2P=Disabled Bandwidth Matrix (GB/s)\n{matrix(dict.fromkeys(rates, 19.0), count)}"
        f"Bidirectional P2P=Enabled Bandwidth Matrix (GB/s)\n{matrix(both, count)}"
        f"P2P=Enabled Latency (P2P Writes) Matrix (us)\n{matrix(dict.fromkeys(rates, 2.2), count, '   GPU')}"
    )


def kernels_log(rates: dict[tuple[int, int], float], count: int, way: str = "SM") -> str:
    """Returns the output of NVIDIA/nvbandwidth for writes, whose columns are the sources."""
    turned = {(b, a): rate for (a, b), rate in rates.items()}
    return (
        f"Running device_to_device_memcpy_write_{way.lower()}.\nmemcpy {way} GPU(row) <- GPU(column) bandwidth (GB/s)\n"
        f"{matrix(turned, count, '     ', 0.0)}\n"
    )


def of(text: str) -> LinkLog:
    log = read_links(text, "log")
    assert log is not None
    return log


def pairs_of(count: int, rate: float = 80.0) -> dict[tuple[int, int], float]:
    return {(a, b): rate for a in range(count) for b in range(count) if a != b}


SEEDS = (
    bandwidth_log("mlx5_0", 391.67) + bandwidth_log("mlx5_1", 390.2, "MiB", both=True) + latency_log("mlx5_0", 1.7),
    copies_log(pairs_of(4, 94.0), 4),
    kernels_log(pairs_of(4), 4),
    json.dumps(TACCL_SHORT, indent=4),
    "src,dst,gb_per_second,by\n0,1,94.04,copy\n1,0,80.2,kernel\n",
)


def test_figures_are_read_and_a_cut_log_gives_no_wrong_one() -> None:
    some = random.Random(5)
    for _ in range(20):
        count = some.choice((2, 3, 8))
        rates = {ends: round(some.uniform(9, 400), 2) for ends in pairs_of(count)}
        expected = {Pair(*ends, 8 * rate) for ends, rate in rates.items()}
        kernels = {Pair(*ends, 8 * rate, True) for ends, rate in rates.items()}
        logs: list[tuple[str, set[Pair] | list[Interface]]] = [
            (copies_log(rates, count), expected),
            (kernels_log(rates, count), kernels),
        ]
        text, cards = "", []
        for device in range(some.randint(1, 3)):
            gbps = round(some.uniform(20, 400), 2)
            text += bandwidth_log(f"mlx5_{device}", gbps, some.choice(("Gb", "MB", "MiB")), both=some.random() < 0.3)
            cards.append(Interface(f"mlx5_{device}", gbps))
        kind, us = (
            some.choice(("RDMA_Write", "RDMA_Read", "Send", "Atomic FETCH_AND_ADD")),
            round(some.uniform(1, 4), 2),
        )
        cards.append(Interface("mlx5_0", latency_ns=1e3 * us / (1 if kind in ("RDMA_Write", "Send") else 2)))
        logs.append((text + latency_log("mlx5_0", us, kind), cards))
        for text, figures in logs:
            for end in (len(text), *some.sample(range(len(text)), 25)):
                try:
                    log = read_links(text[:end], "log")
                except un.InputError:
                    assert end < len(text), text
                    continue
                if log is None:
                    assert end < len(text)
                elif isinstance(figures, set):
                    assert set(log.pairs) == figures, text[:end]
                else:
                    for found, true in zip(log.interfaces, figures, strict=False):
                        assert found.device == true.device
                        assert found.gbps == (true.gbps and pytest.approx(true.gbps, rel=1e-3))
                        assert found.latency_ns == (true.latency_ns and pytest.approx(true.latency_ns))


@pytest.mark.parametrize(
    ("text", "needed"),
    [
        (bandwidth_log("mlx5_0", 391.67, "MB").replace("MB/sec", "Gb/sec"), "or its unit is another one"),
        (
            bandwidth_log("mlx5_0", 391.67, size=4096),
            "the longest message has 4096 bytes; a rate needs one of at least",
        ),
        (bandwidth_log("mlx5_0", 391.67).replace("OFF", "ON", 1), "two ports were measured at once"),
        (bandwidth_log("mlx5_0", 391.67).replace("Device", "Card"), "no line 'Device : NAME' states the interface"),
        (bandwidth_log("mlx5_0", 391.67)[:-89], "no line of dashes ends the table; the log is cut"),
        ("\n".join([*bandwidth_log("mlx5_0", 391.67).splitlines()[:8], RULE]), "no row; give the output of the client"),
        (latency_log("mlx5_0", 1.7).replace(" 2    ", " 4096 "), "a latency needs one of at most 256"),
        (latency_log("mlx5_0", 1.7).replace("1.70", "7.10"), "is not between the least and the largest"),
        (SEEDS[1].replace("Unidirectional P2P=Enabled", "x"), "no matrix 'Unidirectional P2P=Enabled Bandwidth'"),
        (SEEDS[1].replace("94.00", "nan", 1), "the rate to GPU 1 is 'nan'; accepted are GB/s, as in 94.06"),
        (SEEDS[1].replace(" 94.00 ", " ", 1), "accepted are its number and 4 rates; the log is damaged or cut"),
        (SEEDS[2].replace("80.00", "0.00", 1), "the rate to GPU 1 is '0.00'"),
        (SEEDS[2].replace("GPU(row)", "CPU(row)"), "run nvbandwidth -t device_to_device_memcpy_write_sm"),
        (SEEDS[2] + "#  size  count  type  redop\n", "give each a file of its own"),
        (json.dumps(TACCL | {"name": "NDv2"}), "the name is 'NDv2'; accepted is one that ends with the bytes"),
        (json.dumps(TACCL | {"node_invbws_list": [93, 46]}), "93 is not the sum of alpha 0.3 and beta 23"),
        (json.dumps(TACCL | {"alpha": -1}), "alpha is -1; accepted is a number above 0"),
        (json.dumps(TACCL)[:90], "begins as JSON and is none"),
        ("{}", "JSON without the key alpha"),
        ("src,dst,rate\n0,1,9\n", "accepted are src, dst, gb_per_second and perhaps by"),
        ("src,dst,gb_per_second\n0,0,9\n", "src and dst are both 0"),
        ("src,dst,gb_per_second\n0,1\n", "line 2 has 2 cells, and the head has 3"),
        ("src,dst,gb_per_second\n0,x,9\n", "line 2: dst is 'x'; accepted is the number of a GPU"),
        ("src,dst,gb_per_second\n", "has a head and no pair of GPUs"),
    ],
)
def test_other_and_cut_logs_get_one_sentence(text: str, needed: str) -> None:
    with pytest.raises(un.InputError) as refused:
        read_links(text, "log")
    assert needed in str(refused.value)


def test_matrices_that_are_not_used_have_a_note() -> None:
    assert of(SEEDS[2]).notes == []
    other = "memcpy CE CPU(row) <- GPU(column) bandwidth (GB/s)\n           0         1\n 0     53.12     53.10\n"
    log = of(f"{SEEDS[2]}{other}\nmemory latency SM CPU(row) <-> GPU(column) (ns)\n           0\n 0    602.10\n")
    assert log.pairs == of(SEEDS[2]).pairs
    (note,) = log.notes
    assert "2 matrices are not used, as 'memcpy CE CPU(row) <- GPU(column)" in note


def rates_of(machine: un.Machine) -> list[float]:
    """Returns the measured rates of a machine's cables in Gb/s, by line of its description."""
    table = machine.describe()
    own = table.get("measured_gbps", table["link_gbps"])
    lines = [line for key in ("edges", "inside", "uplinks") for line in table["topology"].get(key, "").splitlines()]
    words = [dict(word.split("=") for word in line.split() if "=" in word) for line in lines]
    return [float(of.get("measured", of.get("gbps", own))) for of in words]


def test_rates_of_kernels_become_those_of_the_cables() -> None:
    """Machines with direct cables, with a switch and with two kinds of cables get the rates that made the log."""
    some = random.Random(3)
    for name, sheets in (("a100x4", {100.0}), ("dgx-h100", {450.0}), ("ndv2", {25.0, 50.0})):
        base = un.machine(name)
        table = base.describe()
        count, edges = table["topology"]["accelerators"], table["topology"]["edges"].splitlines()
        for _ in range(3):
            shares = {sheet: some.uniform(0.5, 1) for sheet in sheets}
            slow = some.randrange(count)
            rates = {}
            for line in edges:
                a, b, *words = line.split()
                sheet = next((float(w[5:]) for w in words if w.startswith("gbps=")), table["link_gbps"]) / 8
                if int(b) < count:
                    rates[int(a), int(b)] = rates[int(b), int(a)] = round(shares[sheet] * sheet, 2)
            if not rates:
                # GPU `slow` has a link at half of its width, and all pairs with it are slow.
                full = round(shares[450.0] * 450, 2)
                rates = {ends: full / 2 if slow in ends else full for ends in pairs_of(count)}
            text = "src,dst,gb_per_second,by\n" + "".join(f"{a},{b},{rate},kernel\n" for (a, b), rate in rates.items())
            made, compared, notes = with_links(base, [of(text)])
            assert max(abs(one.error) for one in compared) < 1e-3
            expected = []
            for line in edges:
                a, b = map(int, line.split()[:2])
                reached = rates.get((a, b), full * (0.5 if a == slow else 1.0) if b >= count else 0.0)
                expected.append(8 * reached)
            assert rates_of(made) == pytest.approx(expected, rel=1e-3), (name, notes)
            assert (f"the cable {slow} {count} reaches" in " ".join(notes)) == (name == "dgx-h100")
            # The data sheet, which the bounds use, does not change.
            assert made.data_sheet().describe()["topology"] == base.data_sheet().describe()["topology"]


def test_copies_do_not_overrule_what_kernels_reach() -> None:
    base, rates = un.machine("a100x4"), pairs_of(4, 94.0)
    made, _, notes = with_links(base, [of(copies_log(rates, 4))])
    assert made.describe() == base.describe()
    assert "copies reach 94.0 of 100.0 GB/s; 6 of 6 cables keep the measured rate of the machine" in " ".join(notes)
    # If copies are slower than the stated rate, the machine is slower.
    assert rates_of(with_links(base, [of(copies_log(pairs_of(4, 60.0), 4))])[0]) == [480.0] * 6
    # Without a measured rate, the rate of copies is used, with a note.
    made, _, notes = with_links(base.data_sheet(), [of(copies_log(rates, 4))])
    assert rates_of(made) == [752.0] * 6
    assert "kernels may reach less" in " ".join(notes)
    # Rates of kernels are preferred to rates of copies, in either order of the files.
    both = [of(kernels_log(pairs_of(4, 84.0), 4)), of(copies_log(rates, 4))]
    for logs in (both, both[::-1]):
        assert rates_of(with_links(base.data_sheet(), logs)[0]) == [672.0] * 6


def test_what_does_not_fit_is_named() -> None:
    base = un.machine("dgx-a100")
    slow = {ends: 120.0 if set(ends) == {2, 5} else 240.0 for ends in pairs_of(8)}
    made, compared, notes = with_links(base, [of(kernels_log(slow, 8))])
    assert [one.of for one in compared if abs(one.error) > 0.15] == [
        f"kernels from GPU {a} to {b}" for a, b in ((5, 2), (2, 5))
    ]
    assert rates_of(made) == [1920.0] * 8
    with pytest.raises(un.InputError, match=r"above the data sheet and are left out, as 752\.0 GB/s from GPU 0 to 1"):
        with_links(un.machine("a100x4"), [of(copies_log(pairs_of(4, 752.0), 4))])
    half = pairs_of(4, 94.0)
    text = copies_log(half, 4).replace("188.00", "101.00")
    assert "12 ordered pairs of GPUs are slower in both directions at once" in " ".join(of(text).notes)
    apart = "Device=0 CANNOT Access Peer Device=2\n" + copies_log(half, 4)
    assert len(of(apart).pairs) == 11
    assert "as between 0 and 2" in of(apart).notes[0]
    _, _, notes = with_links(un.machine("ndv2"), [of("src,dst,gb_per_second\n0,5,9\n0,2,21\n")])
    assert "ndv2 has no cable of 1 pairs, as 0 and 5" in " ".join(notes)


def test_interfaces_get_their_rate_and_latency() -> None:
    base = un.machine("dgx-h100-x8")
    cards = "".join(bandwidth_log(f"mlx5_{at}", 390.0 + at) for at in range(3))
    made, compared, _ = with_links(base, [of(cards), of(latency_log("mlx5_0", 1.7))])
    table = made.describe()["topology"]
    assert {line.split()[3] for line in table["uplinks"].splitlines()} == {"measured=391"}
    assert {line.split()[4] for line in table["uplinks"].splitlines()} == {"ns=425"}
    assert table["inside"].count("measured=391 ns=425") == 8
    assert table["outside"] == base.describe()["topology"]["outside"]
    assert max(abs(one.error) for one in compared) < 0.01
    # Rates above the data sheet, or unlike the rates of the other interfaces, are named and left out.
    odd = of(cards + bandwidth_log("mlx5_9", 97.0) + bandwidth_log("mlx5_8", 3128.0))
    again, _, notes = with_links(base, [odd])
    assert again.describe()["topology"]["uplinks"].count("measured=391 ") == 8
    assert "mlx5_8 reaches 3128.0 Gb/s, above the 400 of the data sheet" in notes[0]
    assert "mlx5_9 reaches 97.0 Gb/s, and its like 391.0, and is left out" in notes[1]
    for preset in ("dgx-a100", "dgx-b200", "dgx-h100", "gb200-nvl72", "mi250", "mi300x"):
        with pytest.raises(
            un.InputError, match=f"{preset} has no interfaces, and a log measures one; name "
        ) as refused:
            with_links(un.machine(preset), [of(cards)])
        remedy = str(refused.value).split("; name ")[1]
        if remedy != 'a file of several boxes with their network ([topology] name = "boxes")':
            boxes = un.machine(remedy)
            assert boxes.describe()["gpu"] == un.machine(preset).describe()["gpu"]
            with_links(boxes, [of(bandwidth_log("mlx5_0", 97.0))])
    with pytest.raises(un.InputError, match="has no list of cables of one plane"):
        with_links(un.machine("hx2mesh-small"), [of(cards)])


def test_profiles_of_taccl_give_rates_and_latencies() -> None:
    for profile, doubled, single in ((TACCL, 8e3 / 23, 8e3 / 46), (TACCL_SHORT, 800 / 2.24, 800 / 4.5)):
        made, _, notes = with_links(un.machine("ndv2"), [of(json.dumps(profile))])
        table = made.describe()
        assert sorted({round(rate, 3) for rate in rates_of(made)}) == pytest.approx([single, doubled], rel=1e-5)
        assert (table["link_latency_ns"], "ns=" in table["topology"]["edges"]) == (300.0, False)
        assert ("100 times those of the links" in " ".join(notes)) == (profile is TACCL_SHORT)
    remote = TACCL | {"node_betas_list": [8], "node_invbws_list": [8], "remote_beta": 42.5, "remote_invbw": 45}
    table = with_links(un.machine("dgx-a100-x2"), [of(json.dumps(remote))])[0].describe()["topology"]
    assert table["uplinks"].splitlines()[0] == "9 0 gbps=200 measured=188.235 ns=650 aoc"
    with pytest.raises(un.InputError, match="has 2 rates of links inside a box, and dgx-h100 has 1"):
        with_links(un.machine("dgx-h100"), [of(json.dumps(TACCL))])
    with pytest.raises(un.InputError, match="the name states another size or machine"):
        with_links(un.machine("ndv2"), [of(json.dumps(TACCL | {"name": "x_9MB"}))])


def test_the_command_writes_links_and_collectives(tmp_path: Path) -> None:
    times, out = tmp_path / "times.csv", tmp_path / "m.toml"
    times.write_text("op,gpus,bytes,time_us\nallreduce,4,1024,12\nallreduce,4,65536,20\n")
    words = ("calibrate", "--from", str(COPIES), "--from", str(times), "-o", str(out))
    report = json_of(*words, "--machine", "a100x4")
    assert (len(report["links"]), len(report["residuals"])) == (12, 2)
    assert {one["unit"] for one in report["links"]} == {"gbps"}
    assert un.machine(str(out)).describe()["nccl"]["fits"]
    text = call("calibrate", "--from", str(COPIES), "-o", str(out), "--machine", "a100x4").out
    assert "12 figures of links" in text
    assert "12 of 12 within 15%" in text
    assert "unisono plan COLLECTIVE --machine" in text
    assert "name one like it with --machine" in call(*words).err
    few = call("calibrate", "--from", str(COPIES), "-o", str(out), "--machine", "a100x4", "--points", "3")
    assert "--points chooses among times of collectives" in few.err
    other = written(tmp_path / "h100.log", copies_log(pairs_of(4), 4, "NVIDIA H100 80GB HBM3"))
    refused = call("calibrate", "--from", str(other), "-o", str(out), "--machine", "a100x4")
    assert "which is hopper, and a100x4 states GPUs of ampere" in refused.err
