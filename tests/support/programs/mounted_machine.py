"""A described node in the place of this machine: its /sys and /var/lib, and a driver library that a file controls.

A mount namespace of its own shows the files of a folder to one process and its children. So they are read live, as on
a real node, and tests change them while the process runs. Only root may mount.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from linkgauge.models.facts.gpu import Gpu
from linkgauge.models.facts.jsonl import decode
from linkgauge.probes.host.recorded import Recorded
from linkgauge.probes.system.node import BOOT_ID
from tests.support.nodes.trees import write
from tests.support.programs.command_line import PATHS, Completed

# What replaces files of this machine. /proc itself stays, because the process needs it.
_PROC = (BOOT_ID, "proc/cpuinfo", "proc/stat", "proc/sys/kernel/osrelease", "proc/sys/kernel/numa_balancing")
_PLACES = ("sys", "var/lib", *_PROC)
_ENTER = 'for file in {}; do mount --bind "$0/$file" "/$file" || exit 71; done; exec "$@"'


def needs_mounts() -> None:
    """Skip the test where no mount namespace can be made."""
    if not shutil.which("unshare") or os.geteuid() != 0:
        pytest.skip("needs root and unshare")
    if subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode:
        pytest.skip("mount namespaces are not permitted here")


@dataclass(frozen=True, slots=True)
class MountedMachine:
    """The node below a folder."""

    root: Path
    driver: Path  # the file that controls the driver
    library: Path  # the folder with libnvidia-ml.so.1
    gpus: tuple[str, ...]  # addresses; gpu0 is the first

    @property
    def state(self) -> Path:
        """The state folder of a service on this machine."""
        return self.root / "var/lib/linkgauge"

    @property
    def env(self) -> dict[str, str]:
        """The environment in which programs load the library."""
        paths = f"{self.library}{os.pathsep}{os.environ.get('LD_LIBRARY_PATH', '')}"
        return {"LD_LIBRARY_PATH": paths, "FAKE_GPU_FILE": str(self.driver), "LINKGAUGE_NVML_SECONDS": "15"}

    def inside(self, *command: str) -> tuple[str, ...]:
        """The command on this machine."""
        enter = _ENTER.format(" ".join(_PLACES))
        return ("unshare", "-m", "--propagation", "private", "sh", "-c", enter, str(self.root), *command)

    def run(self, *command: str) -> Completed:
        """Run the command on this machine until it ends."""
        env = {**PATHS, **self.env}
        return subprocess.run(self.inside(*command), capture_output=True, text=True, env=env, timeout=120)

    def folder(self, address: str) -> Path:
        """The folder of a PCI function."""
        place = self._place(address)
        return Path(os.path.normpath(place.parent / os.readlink(place)))

    def set(self, address: str, **values: str) -> None:
        """Write attributes of a PCI function: current_link_width="8"."""
        for name, value in values.items():
            (self.folder(address) / name).write_text(f"{value}\n")

    def remove(self, address: str) -> None:
        """Remove a GPU, as `echo 1 > remove` does. The driver then does not list it."""
        self.folder(address).rename(self.root / address)
        for place in (self._place(address), self.root / "sys/bus/pci/drivers/nvidia" / address):
            place.rename(self.root / f"{address}-{place.parent.parent.name}")
        self.list_gpus(*(gpu for gpu in self.gpus if gpu != address))

    def put_back(self, address: str) -> None:
        """Put the removed GPU back into its place."""
        for place in (self._place(address), self.root / "sys/bus/pci/drivers/nvidia" / address):
            (self.root / f"{address}-{place.parent.parent.name}").rename(place)
        (self.root / address).rename(self.folder(address))
        self.list_gpus(*self.gpus)

    def _place(self, address: str) -> Path:
        return self.root / "sys/bus/pci/devices" / address

    def list_gpus(self, *addresses: str) -> None:
        """The GPUs that the driver lists, all healthy, numbered in this order as the driver does."""
        lines = [f"gpu.{number}.bus_id={address}" for number, address in enumerate(addresses)]
        identities = [
            f"gpu.{number}.uuid=GPU-{address.replace(':', '')}\ngpu.{number}.serial=16500{self.gpus.index(address)}"
            for number, address in enumerate(addresses)
        ]
        text = "\n".join([f"gpus={len(addresses)}", "driver_version=570.124.06", *lines, *identities, ""])
        self.driver.write_text(text)

    def tell_driver(self, *lines: str) -> None:
        """Change the state of a GPU while programs run: "gpu.3.delay_ms=60000"."""
        with self.driver.open("a") as file:
            file.writelines(f"{line}\n" for line in lines)

    def boot(self) -> None:
        """Another boot of the machine."""
        place = self.root / BOOT_ID
        number = int(place.read_text()[:8]) + 1
        place.write_text(f"{number:08}-1111-4111-8111-111111111111\n")


def mounted(recorded: Recorded, folder: Path, library: Path) -> MountedMachine:
    """Write the node to the folder."""
    root = folder / "root"
    write(root, recorded.entries)
    (root / "var/lib").mkdir(parents=True)
    (root / BOOT_ID).parent.mkdir(parents=True, exist_ok=True)
    (root / BOOT_ID).write_text("10000000-1111-4111-8111-111111111111\n")
    told = (decode(line) for line in recorded.calls["nvml",])
    gpus = sorted((one.key, one.address) for one in told if isinstance(one, Gpu) and one.address)
    machine = MountedMachine(root, folder / "gpus.conf", library, tuple(address for _, address in gpus))
    machine.list_gpus(*machine.gpus)
    return machine
