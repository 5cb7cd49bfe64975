"""Reduces on lines and by rows and columns take the time that the model `links` predicts, for every root."""

import pytest
import unisono as un


@pytest.mark.parametrize("shape", [(1, 60), (7, 40), (20, 100)])
@pytest.mark.parametrize("where", [0.0, 0.27, 0.5, 1.0])
@pytest.mark.parametrize("algorithm", ["auto-gen", "chain", "two-phase", "tree"])
def test_reduces_on_lines_take_the_predicted_time(shape: tuple[int, int], where: float, algorithm: str) -> None:
    rows, columns = shape
    root = (int(where * (rows - 1)), int(where * (columns - 1)))
    for elements in (1, 16, 64, 256):
        machine = un.machine("wse2", shape)
        plan = un.plan("reduce", machine, elements=elements, root=root, algorithm=algorithm, model="links")
        predicted = plan.predicted["cycles"]
        assert predicted is not None
        assert un.simulate(plan.schedule).cycles == pytest.approx(predicted, rel=0.05, abs=4)
        # A schedule predicts the same time as its plan.
        assert plan.schedule.predict(model="links")["cycles"] == pytest.approx(predicted)
