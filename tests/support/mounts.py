"""What a machine lacks whose root is a folder of another one, such as a new debootstrap."""

from __future__ import annotations

import os

import pytest

needs_proc = pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="/proc is not mounted")
needs_terminals = pytest.mark.skipif(not os.path.exists("/dev/pts/ptmx"), reason="/dev/pts is not mounted")
