"""Checks certificates of bounds: dual prices of links that prove a lower bound on the time of a collective."""

import os
from pathlib import Path

from unisono import _core
from unisono._core import InputError
from unisono.base.file_types import BOUND, reading
from unisono.base.files import check_regular, title
from unisono.base.inputs import MachineLike
from unisono.base.reports import BoundProof
from unisono.machines.descriptions import with_shape

__all__ = ["check_bound"]


def check_bound(certificate: str | os.PathLike[str], machine: MachineLike) -> BoundProof:
    """Computes a bound from the prices in a file and the links of a machine.

    The check uses neither the solver of linear programs nor any cut or schedule. The result ``holds`` if the prices
    prove at least the bound that the file states; otherwise it gives the ``reason``. The certificate and the machine
    must have the same number of boxes, the same failures, and the same ranks if a part of the machine is named.

    Raises:
        InputError: the file is not a certificate of a bound, or its ranks are not on the machine.

    """
    if isinstance(certificate, str) and certificate.lstrip().startswith("{"):
        raise InputError("the certificate is given as text; accepted is the name of a file that holds it")
    check_regular(certificate)
    try:
        text = Path(certificate).read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"'{title(certificate)}' is not a text file: byte {error.start} is not UTF-8") from None
    on = with_shape(machine, None)
    with reading(certificate, BOUND, (BOUND,), "'unisono plan --certificate OUT' writes one"):
        return _core.check_bound(text, on)
