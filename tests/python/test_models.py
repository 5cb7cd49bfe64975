"""The models of networks: predictions by `packets` are simulations, and `links` is the default."""

import pytest
import unisono as un

from .conftest import call, json_of

ON_16 = ("--machine", "torus2d-small", "--shape", "4x4")


def test_packets_predict_what_is_simulated() -> None:
    plan = un.plan("broadcast", "torus2d-small", shape=(4, 4), bytes="1MiB", model="packets")
    assert (plan.report()["model"], plan.predicted["source"]) == ("packets", "simulated")
    assert plan.predicted["seconds"] == pytest.approx(un.simulate(plan.schedule).seconds, rel=1e-12)
    assert plan.schedule.predict("packets")["seconds"] == pytest.approx(plan.predicted["seconds"], rel=1e-12)
    simulated = [one["source"] == "simulated" for one in plan.candidates]
    assert simulated == sorted(simulated, reverse=True)
    best = min(one["seconds"] for one, by_packets in zip(plan.candidates, simulated, strict=True) if by_packets)
    assert plan.predicted["seconds"] == best


def test_packets_on_the_command_line() -> None:
    report = json_of("plan", "allreduce", *ON_16, "--elements", "100", "--model", "packets")
    run = json_of("simulate", "allreduce", *ON_16, "--elements", "100", "--model", "packets")
    assert report["predicted"]["seconds"] == pytest.approx(run["seconds"], rel=1e-12)
    point = json_of(
        "sweep", "alltoall", "--machine", "torus2d-small", "--shapes", "4x4", "--elements", "100", "--model", "packets"
    )
    assert point


def test_links_are_the_default() -> None:
    report = json_of("plan", "alltoall", *ON_16, "--elements", "100")
    assert report["model"] == "links"
    assert {one["source"] for one in report["candidates"]} <= {"messages", "exchanges", "trees"}
    refused = call("plan", "alltoall", *ON_16, "--elements", "100", "--model", "logp")
    assert refused.code != 0
    assert "accepted are links, packets and data-sheet on a network" in refused.err
