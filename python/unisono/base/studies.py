"""Computes studies: independent points of one question, computed by an executor and saved in a file one by one.

A point is a call of a function with a tuple of arguments. Its result is a value of JSON. A saved point is found by its
key, a hash of everything on which the result depends. A study that was killed therefore continues with the first
missing point, and a study that is given more points computes only these. Results do not depend on the executor.
"""

import fcntl
import json
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from functools import cache, partial
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, get_type_hints

from unisono._core import InputError, Machine, __version__, limits_follow, limits_now
from unisono.base.files import check_regular, check_writable, exists, file_name, parse_json, title
from unisono.base.limits import limits, set_cores
from unisono.base.typed_json import has_type

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future

__all__ = ["OWN", "KeptPoints", "ShardEnded", "checksum_of", "is_file_of_points", "key_of", "merge_points", "results"]

#: The maximum number of points that are submitted to an executor ahead of the point whose result is awaited, because a
#: study may have millions of points.
_AHEAD = 1024
_THREADS = "concurrent.ThreadPoolExecutor"
_HEAD = {"unisono_points": 1}
#: The names of algorithms that the user's program added. Points with these algorithms are neither computed in other
#: processes, which lack them, nor saved, because a file of points cannot distinguish two algorithms of the same name.
OWN: set[str] = set()


class ShardEnded(Exception):  # noqa: N818 (a study ends here without a failure)
    """Raised when a job has saved its shard of the points of a study; other jobs compute the rest."""

    def __init__(self, share: int, total: int) -> None:
        super().__init__(f"{share} of {total} points")
        self.share, self.total = share, total


def results(
    function: Callable[[tuple[Any, ...]], Any],
    calls: Iterable[tuple[Any, ...]],
    executor: "Executor | None" = None,
    kept: "KeptPoints | None" = None,
    keeps: Callable[[Any], bool] = lambda _: True,
) -> Iterator[Any]:
    """Yields the result of each call, in the order of the calls.

    Other processes must be able to import ``function``. Results for which ``keeps`` returns false are not saved. Points
    in other processes have the limits of this process, and one core each.

    Raises:
        InputError: ``executor`` is no executor; or the user's program added algorithms, and ``kept`` or an executor of
            other processes is given: the algorithms would be missing there, or confused with others of the same name.
        ShardEnded: ``kept`` has a shard, and its points were computed.

    """
    if executor is not None and not callable(getattr(executor, "submit", None)):
        raise InputError(f"executor is {executor!r}; accepted are executors of concurrent.futures, Dask and mpi4py")
    if OWN and (kept is not None or leaves(executor)):
        raise InputError(
            f"own algorithms ({', '.join(sorted(OWN))}) are neither kept nor known to other processes; use threads, "
            "and name no file of points"
        )
    if kept is None or kept.shard is None:
        yield from _in_order(function, calls, executor, kept, keeps)
        return
    listed, (index, of) = list(calls), kept.shard
    share = listed[index - 1 :: of]
    for _ in _in_order(function, share, executor, kept, keeps):
        pass
    raise ShardEnded(len(share), len(listed))


def _in_order(
    function: Callable[[tuple[Any, ...]], Any],
    calls: Iterable[tuple[Any, ...]],
    executor: "Executor | None",
    kept: "KeptPoints | None",
    keeps: Callable[[Any], bool],
) -> Iterator[Any]:
    ahead = 1 if executor is None else _AHEAD
    begun: deque[Callable[[], Any]] = deque()
    for call in calls:
        begun.append(_begin(function, call, executor, kept, keeps))
        if len(begun) >= ahead:
            yield begun.popleft()()
    while begun:
        yield begun.popleft()()


def _begin(
    function: Callable[[tuple[Any, ...]], Any],
    call: tuple[Any, ...],
    executor: "Executor | None",
    kept: "KeptPoints | None",
    keeps: Callable[[Any], bool],
) -> Callable[[], Any]:
    """Submits a point to the executor, if there is one, and returns a function that returns the point's result."""
    is_here = executor is None or _THREADS in _kinds(executor)
    submitted = function if is_here else partial(_with_limits, *_limits_now(), function)
    if kept is None:
        return partial(function, call) if executor is None else executor.submit(submitted, call).result
    key = key_of(function, call)
    if key in kept:
        return partial(kept.value, key, _type_of_results(function))

    def add(result: Any) -> Any:
        return kept.add(key, result) if keeps(result) else result

    if executor is None:
        return lambda: add(function(call))
    future = executor.submit(submitted, call)

    def keep(ended: "Future[Any]") -> None:
        # If the point failed, or the file cannot be written, the error is raised where the result is awaited.
        if not ended.cancelled() and ended.exception() is None:
            with suppress(OSError, ValueError):
                add(ended.result())

    # A point is saved when it ends, which may be long before its result is yielded.
    future.add_done_callback(keep)
    return lambda: add(future.result())


@cache
def _type_of_results(function: Callable[..., Any]) -> Any:
    """Returns the annotated type of a function's result; Any without annotation."""
    return get_type_hints(function).get("return", Any)


def _limits_now() -> tuple[int | str | None, int | None]:
    memory, steps = limits_now()
    return "free" if limits_follow() else memory, steps


def _with_limits(
    memory: int | str | None, steps: int | None, function: Callable[[tuple[Any, ...]], Any], call: tuple[Any, ...]
) -> Any:
    """Computes a point in another process, with the limits of this process and on one core."""
    limits(memory=memory, steps=steps)
    set_cores(1)
    return function(call)


def leaves(executor: "Executor | None") -> bool:
    """Returns whether points are computed in processes that have not run the user's program."""
    return executor is not None and not _kinds(executor) & {_THREADS, "mpi4py.MPIPoolExecutor"}


def _kinds(executor: "Executor") -> set[str]:
    """Returns ``package.name`` of each class of an executor, without an import of its package."""
    return {base.__module__.split(".")[0] + "." + base.__name__ for base in type(executor).__mro__}


def key_of(function: Callable[..., Any], call: tuple[Any, ...]) -> str:
    """Returns the key of a point: a hash of the function, its arguments, and the version of Unisono.

    The hash of a machine includes all its properties, and that of a path the contents of its file or folder.
    """
    stated = [__version__, function.__module__, function.__qualname__, *map(_stated, call)]
    return sha256(repr(stated).encode()).hexdigest()


def _stated(value: object) -> object:
    if isinstance(value, Machine):
        return value.__reduce__()[1]
    if isinstance(value, Path):
        files = sorted(path for path in value.rglob("*") if path.is_file()) if value.is_dir() else [value]
        return [(str(path), sha256(path.read_bytes()).hexdigest()) for path in files]
    return value


class KeptPoints(AbstractContextManager["KeptPoints"]):
    """A file of points, one a line of JSON, each written when the point ends.

    An incomplete last line, which a killed process may leave, is dropped. One study at a time uses the file. With
    ``shard=(i, n)`` a study computes only every nth of its points, from the ith on, counted from 1. With ``read`` the
    file is not changed.

    Raises:
        InputError: the file is not a file of points, is damaged, or is in use by another study.
        OSError: the file cannot be opened or written.

    """

    def __init__(
        self, path: str | os.PathLike[str], shard: tuple[int, int] | None = None, *, read: bool = False
    ) -> None:
        self.shard = shard
        self._name = title(path)
        self._lock = Lock()
        self._found: dict[str, Any] = {}
        if not read:
            check_writable(path)
        if exists(path):
            check_regular(path)
        self._new = None if read or exists(path) else Path(file_name(path))
        self._file = Path(file_name(path)).open("rb" if read else "a+b", buffering=0)  # noqa: SIM115 (the object holds it open)
        try:
            fcntl.flock(self._file, (fcntl.LOCK_SH if read else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            self._file.close()
            raise InputError(
                f"'{self._name}' is in use by another study; wait for its end, or name another file"
            ) from None
        try:
            self._read(is_kept=read)
        except BaseException:
            self._file.close()
            raise

    def _read(self, *, is_kept: bool) -> None:
        self._file.seek(0)
        whole, contents = 0, self._file.read()
        for number, line in enumerate(BytesIO(contents)):
            if not line.endswith(b"\n"):
                break
            try:
                read = parse_json(line)
                if number == 0:
                    if read != _HEAD:
                        raise self._damaged(number)
                else:
                    key, value, checksum = read
                    if checksum != checksum_of(key, value):
                        raise self._damaged(number)
                    self._put(key, value)
            except (ValueError, TypeError, RecursionError):
                raise self._damaged(number) from None
            whole += len(line)
        if whole == 0 and not _line(_HEAD).startswith(contents):
            raise self._damaged(0)
        if not is_kept:
            self._file.truncate(whole)
            if whole == 0:
                self._write(_HEAD)

    def _put(self, key: str, value: object) -> None:
        if self._found.setdefault(key, value) != value:
            raise InputError(
                f"'{self._name}' has another value of a point than an earlier line or file: one of them was changed or "
                "computed by another build; drop it, and compute its points again"
            )

    def _damaged(self, number: int) -> InputError:
        kind = "is no file of points" if number == 0 else f"has a damaged line {number + 1}"
        return InputError(f"'{self._name}' {kind}; accepted are a new name and what an earlier study kept")

    def _write(self, value: object) -> None:
        before = self._file.seek(0, os.SEEK_END)
        line = _line(value)
        try:
            while line:
                line = line[self._file.write(line) :]
        except OSError:
            # An incomplete line would make the next line unreadable.
            self._file.truncate(before)
            raise

    def __contains__(self, key: str) -> bool:
        return key in self._found

    def __len__(self) -> int:
        return len(self._found)

    def value(self, key: str, type_: Any = Any) -> Any:
        """Returns the saved result of a point.

        Raises:
            InputError: the result has another type than ``type_``.

        """
        if not has_type(self._found[key], type_):
            raise InputError(
                f"'{self._name}' has a point whose value is none of this study, so another program changed the file; "
                "compute its points again, into a new file"
            )
        return self._found[key]

    def add(self, key: str, value: Any) -> Any:
        """Writes a point, unless it is saved already, and returns its value as a later read returns it."""
        with self._lock:
            if key not in self._found:
                self._write([key, value, checksum_of(key, value)])
                self._found[key] = json.loads(json.dumps(value))
            return self._found[key]

    def __exit__(self, failure: type[BaseException] | None, *_: object) -> None:
        # A study that is refused does not leave a file.
        if failure is not None and self._new is not None and not self._found:
            self._new.unlink(missing_ok=True)
        self._file.close()


def is_file_of_points(path: str | os.PathLike[str]) -> bool:
    """Returns whether a file begins like a file of :class:`KeptPoints`; False if the file does not exist."""
    if not exists(path):
        return False
    check_regular(path)
    with Path(file_name(path)).open("rb") as file:
        return file.read(len(_line(_HEAD))) == _line(_HEAD)


def merge_points(paths: Sequence[str | os.PathLike[str]], into: str | os.PathLike[str]) -> int:
    """Adds the points of ``paths`` to the file ``into``, which may exist, and returns its number of points afterwards.

    Raises:
        InputError, OSError: as for :class:`KeptPoints`, about one of the files.

    """
    other = next((path for path in paths if not is_file_of_points(path)), None)
    if other is not None and not exists(other):
        raise InputError(f"there is no file '{title(other)}'")
    if other is not None:
        raise InputError(f"'{title(other)}' is no file of points, as 'unisono ... --resume' keeps them")
    with KeptPoints(into) as kept:
        for path in paths:
            with KeptPoints(path, read=True) as part:
                for key, value in part._found.items():
                    # This line raises an error if two files have different values for one point.
                    part._put(key, kept.add(key, value))
        return len(kept)


def checksum_of(key: str, value: object) -> str:
    """Returns the checksum of a named value of JSON, which shows that no other program changed the value."""
    return sha256(_line([key, value])).hexdigest()[:16]


def _line(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"
