"""Lock files that root, the service and the members of the group share."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import NoReturn

import pytest

from linkgauge.probes.calls import hold
from linkgauge.probes.calls.lock_file import open_lock_file


def test_the_group_can_open_a_lock_of_the_service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The unit of the service refuses fchown(). Without access, `release` of a member would see no open driver."""

    def refused(descriptor: int, user: int, group: int) -> NoReturn:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setenv("LINKGAUGE_LOCK_DIR", str(tmp_path))
    monkeypatch.setattr(hold, "group_id", lambda: tmp_path.stat().st_gid)
    monkeypatch.setattr(os, "fchown", refused)
    descriptor = open_lock_file("linkgauge.driver")
    try:
        assert os.fstat(descriptor).st_mode & 0o777 == 0o660
    finally:
        os.close(descriptor)
