"""The command for a user who may not read every file, also if the tests run as root."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest

# Without these, the kernel checks the permissions of root's own files too (capabilities(7)).
_AS_USER = ["setpriv", "--bounding-set", "-dac_override,-dac_read_search"]


def run_as_user(*words: str) -> tuple[int, str]:
    """The exit code and the output of `linkgauge`. Skips the test if this system cannot take root's rights away."""
    before = _AS_USER if os.geteuid() == 0 else []
    if before and not shutil.which(before[0]):
        pytest.skip("setpriv is not installed, and root can read every file")
    if before and subprocess.run([*before, "true"], capture_output=True).returncode:
        pytest.skip("setpriv may not drop the capabilities with which root can read every file")
    program = [*before, sys.executable, "-m", "linkgauge", *words]
    done = subprocess.run(program, capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout + done.stderr
