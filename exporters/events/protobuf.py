"""Message classes from a .proto file, without a compiler.

It knows the part of the language that our files use: messages and enums that are not nested, scalar types, `repeated`
and `map<string, string>`, one statement per line. Imported types are those of the library. Services are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from importlib.resources import files
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from google.protobuf.descriptor_pb2 import DescriptorProto, EnumDescriptorProto, FileDescriptorProto

_BLOCK = re.compile(r"^(?P<kind>message|enum) (?P<name>\w+) \{\n(?P<body>.*?)^\}$", re.MULTILINE | re.DOTALL)
_FIELD = re.compile(r"(?P<repeated>repeated )?(?P<type>map<string, string>|[\w.]+) (?P<name>\w+) = (?P<number>\d+);")
_VALUE = re.compile(r"(?P<name>\w+) = (?P<number>\d+);")
_SCALARS = {"bool": 8, "string": 9, "uint32": 13}  # FieldDescriptorProto.Type
_MESSAGE, _ENUM = 11, 14
_ONCE, _REPEATED = 1, 3  # FieldDescriptorProto.Label


def messages(file: str) -> Mapping[str, Any]:
    """The message classes of the .proto file of this package, by name. Raises ImportError without protobuf."""
    from google.protobuf import descriptor_pool, empty_pb2, message_factory, timestamp_pb2

    pool = descriptor_pool.DescriptorPool()
    for imported in (empty_pb2, timestamp_pb2):
        pool.AddSerializedFile(imported.DESCRIPTOR.serialized_pb)
    described = describe(file, files(__package__).joinpath(file).read_text(encoding="utf-8"))
    pool.Add(described)
    package = described.package
    return {
        one.name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{package}.{one.name}"))
        for one in described.message_type
    }


def describe(file: str, text: str) -> FileDescriptorProto:
    """The descriptor of the text of a .proto file."""
    from google.protobuf.descriptor_pb2 import FileDescriptorProto

    package = re.search(r"^package (\w+);$", text, re.MULTILINE)
    imports = re.findall(r"^import \"([\w./]+)\";$", text, re.MULTILINE)
    described = FileDescriptorProto(
        name=file, syntax="proto3", package=package[1] if package else "", dependency=imports
    )
    blocks = list(_BLOCK.finditer(text))
    enums = frozenset(one["name"] for one in blocks if one["kind"] == "enum")
    for one in blocks:
        if one["kind"] == "enum":
            _enum(described.enum_type.add(name=one["name"]), one["body"])
        else:
            _message(described.message_type.add(name=one["name"]), one["body"], described.package, enums)
    return described


def _enum(enum: EnumDescriptorProto, body: str) -> None:
    for value in _VALUE.finditer(body):
        enum.value.add(name=value["name"], number=int(value["number"]))


def _message(message: DescriptorProto, body: str, package: str, enums: Iterable[str]) -> None:
    for one in _FIELD.finditer(body):
        field = message.field.add(name=one["name"], number=int(one["number"]), json_name=one["name"])
        field.label = _REPEATED if one["repeated"] or one["type"].startswith("map") else _ONCE
        if one["type"].startswith("map"):
            entry = f"{one['name'][0].upper()}{one['name'][1:]}Entry"
            _entry(message.nested_type.add(name=entry))
            field.type, field.type_name = _MESSAGE, f".{package}.{message.name}.{entry}"
        elif one["type"] in _SCALARS:
            field.type = _SCALARS[one["type"]]
        else:
            name = one["type"] if "." in one["type"] else f"{package}.{one['type']}"
            kind = _ENUM if one["type"] in enums else _MESSAGE
            field.type, field.type_name = kind, f".{name}"


def _entry(entry: DescriptorProto) -> None:
    """The message of one entry of a map<string, string>."""
    entry.options.map_entry = True
    for number, name in enumerate(("key", "value"), 1):
        entry.field.add(name=name, number=number, label=_ONCE, type=_SCALARS["string"], json_name=name)
