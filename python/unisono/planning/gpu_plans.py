"""Checks plans of GPU communication libraries without a GPU."""

import os

from unisono import _core
from unisono.base.file_types import GPU_PLAN, reading
from unisono.base.files import read_text, title
from unisono.base.reports import GpuPlanProof, MscclProof

__all__ = ["check_gpu_plan", "check_msccl"]


def check_gpu_plan(
    path: str | os.PathLike[str],
    elements: int | None = None,
    dtype: str | None = None,
    *,
    trust_relaxed: bool = False,
    method: str = "auto",
    processors: int | None = None,
) -> GpuPlanProof:
    """Checks an execution plan of MSCCL++ (JSON), and returns all its faults, each with the shortest run that shows it.

    The plan is proved at the size of its chunks, or with the given ``elements`` of ``dtype``. With ``trust_relaxed``,
    relaxed signals order writes too. ``processors`` is the number of multiprocessors of a GPU, by default that of an
    A100 (108).

    Raises:
        InputError: the file is not a plan; the message names the place inside the JSON.
        OSError: the file cannot be read.

    """
    stated = {} if processors is None else {"processors": processors}
    text = read_text(path, kind="a plan for GPUs, as MSCCL++ writes it")
    with reading(path, GPU_PLAN, (GPU_PLAN,), "'unisono emit --format mscclpp' writes one"):
        return _core.check_plan(
            text, "mscclpp", title(path), elements, dtype, None, None, trust_relaxed, method, **stated
        )


def check_msccl(
    path: str | os.PathLike[str],
    elements: int | None = None,
    dtype: str | None = None,
    op: str | None = None,
    root: int | None = None,
    *,
    method: str = "auto",
    processors: int | None = None,
) -> MscclProof:
    """Checks a file of MSCCL (XML) for all uses of buffers and all sizes that its executor accepts.

    With ``elements`` of ``dtype``, the check is for that size alone. ``processors`` is the number of multiprocessors of
    a GPU, by default that of an A100 (108).

    Raises:
        InputError: the executor would refuse the file, or the file is damaged; the message names the line.
        OSError: the file cannot be read.

    """
    # The executor refuses a file that begins with a byte order mark.
    text = read_text(path, kind="a file of MSCCL", as_stored=True, with_mark=True)
    stated = {} if processors is None else {"processors": processors}
    return _core.check_plan(text, "msccl-xml", title(path), elements, dtype, op, root, False, method, **stated)
