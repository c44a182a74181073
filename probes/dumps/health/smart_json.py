"""Health of ATA and SAS disks: `smartctl -j` (smartmontools, ataprint.cpp and scsiprint.cpp).

smart_disks.py reads the text of smartctl; smart_log.py has the log of NVMe drives, in JSON too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from ....models.facts.health import DiskHealth
from ....models.facts.records import Evidence, NotChecked, Record
from ..core.fields import FactCollector
from ..core.json_values import documents, list_of, object_of
from ..core.part import Part

BEGIN = (
    r"[ \t]*\{\s{0,20}\"(?:json_format_version\"[ ]?:|smartctl\"[ ]?:"
    r"|device\"[ ]?:[ ]?\{\s{0,20}\"name\"[ ]?:[ ]?\"/dev/)"
)
_DOCUMENT = re.compile(BEGIN)
_OF_DISKS = ('"ata_smart_attributes"', '"ata_smart_data"', '"scsi_grown_defect_list"', '"scsi_error_counter_log"')
_NAME = re.compile(r"/dev/(?:disk/by-id/)?([\w.:-]{2,80})")
_UNNAMED = "disk"


def read(part: Part, fields: Mapping[str, str]) -> Iterator[Record]:
    """A `DiskHealth` per document of an ATA or SAS disk. `fields` has the field of each attribute."""
    if not any(name in part.text for name in _OF_DISKS):
        return
    found = FactCollector()
    for document in documents(part, _DOCUMENT):
        if isinstance(document, NotChecked):
            yield document
        else:
            _document(found, object_of(document.value), part.where(document.line), fields)
    yield from found.records()


def _document(found: FactCollector, one: Mapping[str, Any], source: str, fields: Mapping[str, str]) -> None:
    device = _NAME.match(str(object_of(one.get("device")).get("name")))
    key, where = device[1] if device else _UNNAMED, Evidence(source, device[0] if device else "smartctl -j")
    passed, model = object_of(one.get("smart_status")).get("passed"), one.get("model_name")
    values: dict[str, Any] = {
        "passed": passed if isinstance(passed, bool) else None,
        "model": model if isinstance(model, str) and 0 < len(model) <= 40 and model.isprintable() else None,
        "reallocated": _count(one.get("scsi_grown_defect_list")),
    }
    counters = object_of(one.get("scsi_error_counter_log")).values()
    errors = [_count(object_of(row).get("total_uncorrected_errors")) for row in counters]
    values["unrecovered"] = max((count for count in errors if count is not None), default=None)
    failing = list[str]()
    for row in map(object_of, list_of(object_of(one.get("ata_smart_attributes")).get("table"))):
        name, raw = str(row.get("name"))[:40], _count(object_of(row.get("raw")).get("value"))
        if name in fields and raw is not None:
            values[fields[name]] = raw
        if row.get("when_failed") == "now":
            failing.append(name)
    values["failing"] = tuple(dict.fromkeys(failing)) or None
    found.add(DiskHealth, key, where, **values)


def _count(value: object) -> int | None:
    """A number of sectors or errors. A raw value of more than 32 bits holds several numbers."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 32 else None
