"""Several trees over a grid: predictions, the planner's choice, and the colors of their projects in CSL."""

import re

import pytest
import unisono as un


@pytest.mark.parametrize(
    ("algorithm", "trees"), [("quad-chain", None), ("kd-tree", "2"), ("kd-tree", "4"), ("quad-two-phase", None)]
)
@pytest.mark.parametrize(("shape", "elements"), [((16, 16), 256), ((12, 12), 1024)])
def test_trees_are_predicted_within_four_percent(
    algorithm: str, trees: str | None, shape: tuple[int, int], elements: int
) -> None:
    params = {"trees": trees} if trees else {}
    plan = un.plan("reduce", "wse2", shape=shape, elements=elements, algorithm=algorithm, params=params)
    simulated = un.simulate(plan.schedule).cycles
    assert plan.predicted["cycles"] == pytest.approx(simulated, rel=0.04)


def test_the_snake_is_chosen_where_it_is_the_fastest() -> None:
    # Simulated cycles: snake 5626, quad-chain 5740, kd-tree 6230 and 6579.
    plan = un.plan("reduce", "wse2", shape=(16, 16), elements=4096)
    assert plan.algorithm == "snake"
    assert [c["algorithm"] for c in plan.candidates[:4]] == ["snake", "quad-chain", "kd-tree", "kd-tree"]


@pytest.mark.parametrize(("pes", "elements", "most"), [(512, 16, 5), (64, 16, 4), (512, 256, 3)])
def test_projects_of_auto_gen_take_few_colors(pes: int, elements: int, most: int) -> None:
    plan = un.plan("reduce", "wse2", shape=(1, pes), elements=elements, algorithm="auto-gen", target="csl")
    layout = str(un.emit_files(plan.schedule, "csl")["layout.csl"])
    assert len(re.findall(r"^const color_", layout, re.MULTILINE)) <= most
