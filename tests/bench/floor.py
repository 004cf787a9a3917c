"""Floors: the same reads in C, built and run in the same minute."""

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

_HERE = Path(__file__).parent
NO_COMPILER = "there is no cc here"


def measured_in_c(program: str, directory: Path, arguments: Sequence[str], times: int = 1) -> float:
    """The least that `program`.c prints in so many runs; it is built in `directory`.

    FileNotFoundError where there is no compiler.
    """
    compiler = shutil.which("cc")
    if compiler is None:
        raise FileNotFoundError(NO_COMPILER)
    built = directory / program
    subprocess.run([compiler, "-O2", "-o", built, _HERE / f"{program}.c"], check=True)
    return min(float(subprocess.check_output([built, *arguments])) for _ in range(times))
