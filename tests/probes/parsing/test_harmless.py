"""Numbers of models remain in a manufacturer's text about a device. Serial numbers do not."""

from __future__ import annotations

import pytest

from linkgauge.probes.parsing.harmless import reduced

# From data sheets of the manufacturers, and from the files that linkgauge reads of machines.
_MODELS = """
MZQL23T8HCLS-00A07 MZWLJ3T8HBLS-00007 MZVL21T0HCLR-00B00 SSDPE2KX040T8 SSDPF2KX038TZ SSDSC2KB48 MTFDKCC7T6TFR
KCD61LUL3T84 HFS3T8GDE0X098N WUS4BB076D7P3E3 MCX75310AAS-NEAT MCX653105A-HDAT MBF3H 900-21010-0000-000
920-23687-2530-000 699-2G520-0200-300 MT_0000000838 NVD0000000054 DEL0000000033 0PJ80M 7R13 ARS-111GL-NHR
SYS-A21GE-NBRT AS-8125GS-TNHR ESC8000A-E13P G593-SD1-AAX1 R7525 XE9680 X13DEG-OA WRX80E-SAGE Z790-P GDC5602Q 9CV10490
"""
# The forms that smartctl and nvme-cli print of disks of these manufacturers, and nvidia-smi, dmidecode and mlxvpd.
_SERIALS = """
S6CKNE0R123456 S64GNE0R800123 PHLJ123406B4P0DGN BTLJ908502FN1P0FGN 22463F7B5A2C 7270A00TT5X8 1322422012345
MT2243X01234 CZJ2340A1B S12345678A123 2M292212J0K3 A0B1C2D3E4F5 ADC7N481710207P6B 16519100123
"""


@pytest.mark.parametrize("model", _MODELS.split())
def test_a_model_remains(model: str) -> None:
    assert reduced(f"SAMSUNG {model}", "product", lambda word: "some-word") == f"SAMSUNG {model}"


@pytest.mark.parametrize("serial", _SERIALS.split())
def test_a_serial_number_does_not(serial: str) -> None:
    """Before, each word of capital letters and digits remained."""
    assert reduced(f"SAMSUNG {serial}", "product", lambda word: "some-word") == "SAMSUNG some-word"
