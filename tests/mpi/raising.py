"""Expected errors in programs that run under mpiexec."""

import contextlib
import re
from collections.abc import Iterator


@contextlib.contextmanager
def raises(kind: type[BaseException] | tuple[type[BaseException], ...], match: str = "") -> Iterator[None]:
    """Replaces pytest's `raises`: the environment of MPICH lacks pytest, whose import takes longer than that of MPI."""
    try:
        yield
    except kind as error:
        if not re.search(match, str(error)):
            raise AssertionError(f"{error!r} was raised; expected was {match!r}") from error
    else:
        raise AssertionError(f"nothing was raised; expected was {match!r}")
