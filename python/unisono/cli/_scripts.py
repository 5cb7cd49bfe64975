"""Runs Python files that add algorithms before a command runs."""

import runpy
import sys
from collections.abc import Iterable
from pathlib import Path

import unisono
from unisono import InputError
from unisono.base.files import check_regular, is_file
from unisono.base.messages import shown


def load_scripts(paths: Iterable[str]) -> None:
    """Runs Python files, each of which must add an algorithm.

    Raises:
        InputError: a file does not exist, fails, or adds no algorithm.

    """
    for path in paths:
        if not is_file(path):
            raise InputError(f"there is no file '{path}' to load")
        check_regular(path)
        before = [entry["reference"] for entry in unisono.algorithms()]
        # The folder of the file is put on the search path, so that the file can import modules from it as if Python ran
        # it directly.
        sys.path.insert(0, str(Path(path).resolve().parent))
        try:
            runpy.run_path(path, run_name="__unisono__")
        except InputError:
            raise
        except Exception as error:
            raise InputError(f"'{path}' failed: {type(error).__name__}: {shown(str(error))}") from None
        except SystemExit as end:
            raise InputError(
                f"'{path}' ended the program ({shown(end.code)}); a file of algorithms only adds them"
            ) from None
        if len(unisono.algorithms()) == len(before):
            raise InputError(f"'{path}' adds no algorithm; functions are added with @unisono.algorithm")
