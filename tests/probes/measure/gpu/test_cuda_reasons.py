"""Reasons without a GPU: the driver's library is absent, and no driver reports the address of a GPU."""

from __future__ import annotations

import os

import pytest

from linkgauge.models.facts.reason import Reason
from linkgauge.probes.gpu.nvml_threads import CONTROL
from linkgauge.probes.measure.gpu.cuda_driver import Cuda, CudaError
from linkgauge.probes.measure.gpu.cuda_gpus import address_of

pytestmark = pytest.mark.skipif(os.path.exists(CONTROL), reason="this machine has NVIDIA's driver")


def test_an_absent_library_is_not_a_driver_error() -> None:
    pytest.importorskip("cuda.bindings.driver", reason="needs the package cuda-bindings")
    with pytest.raises(CudaError, match="cuInit") as refused:
        Cuda()
    assert refused.value.reason is Reason.NOT_INSTALLED


def test_an_unknown_address_is_not_a_driver_error() -> None:
    with pytest.raises(CudaError, match="PCI address is unknown") as refused:
        address_of("gpu0")
    assert refused.value.reason is Reason.OTHER
