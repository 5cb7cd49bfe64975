"""Writes the types of reports that the extension module returns, from the structs in Rust that it converts.

The builds run it; the written module is `unisono.base._reported`. A struct has the name of its type in Python, or
`#[serde(rename)]` states that name. Serde's attributes of fields count as in the conversion.
"""

import re
from pathlib import Path

__all__ = ["write"]

_ROOT = Path(__file__).resolve().parents[1]
_WRITTEN = _ROOT / "python" / "unisono" / "base" / "_reported.py"
#: The files with the structs, below `crates`. Every struct in them that Serde writes becomes a type.
_FILES = (
    "base/src/diagnostic.rs",
    "cost/src/network/nccl/mod.rs",
    "cost/src/network/nccl/steps.rs",
    "discover/src/report.rs",
    "discover/src/devices/report.rs",
    "gpu/src/bits.rs",
    "gpu/src/msccl/check.rs",
    "gpu/src/mscclpp/check.rs",
    "gpu/src/mscclpp/fault.rs",
    "lower/src/terms.rs",
    "machine/src/network/allocate/study.rs",
    "machine/src/network/allocate/traffic.rs",
    "plan/src/bound_certificate.rs",
    "plan/src/forests.rs",
    "plan/src/library/mod.rs",
    "plan/src/library/nccl_bits.rs",
    "plan/src/program.rs",
    "plan/src/report.rs",
    "plan/src/sweep.rs",
    "plan/src/workload/graph/opinion.rs",
    "plan/src/workload/graph/report.rs",
    "plan/src/workload/timeline.rs",
    "py/src/allocate.rs",
    "py/src/planfile.rs",
    "schedule/src/plan_file/bits.rs",
    "schedule/src/verify/mod.rs",
)
#: The types of JSON of the other types in Rust.
_PLAIN = {
    **dict.fromkeys(("u32", "u64", "i64", "usize", "Bytes"), "int"),
    **dict.fromkeys(("String", "str", "Pattern", "Seed", "Sizes", "Standing", "TimeSource"), "str"),
    "f64": "float",
    "bool": "bool",
}
_STRUCT = re.compile(
    r"(?P<docs>(?:^///.*\n)*)^#\[derive\((?!.*Deserialize).*\bSerialize\b.*\)\]\n(?P<serde>(?:^#\[.*\]\n)*)"
    r"^(?:pub )?struct (?P<name>\w+)(?:<'a>)? \{\n(?P<fields>(?:.*\n)*?)^\}",
    re.MULTILINE,
)
_FIELD = re.compile(
    r"(?P<docs>(?:^ +///.*\n)*)(?P<serde>(?:^ +#\[.*\]\n)*)"
    r"^ +(?:pub(?:\(.*\))? )?(?P<name>\w+): (?P<type>.*),\n",
    re.MULTILINE,
)
_RENAMED = re.compile(r'rename = "(\w+)"')


class _Struct:
    """A struct: its name in Python, its documentation, and the lines of each field."""

    def __init__(self, found: re.Match[str]) -> None:
        renamed = _RENAMED.search(found["serde"])
        self.name = renamed[1] if renamed else found["name"]
        self.docs, self.fields = found["docs"], list(_FIELD.finditer(found["fields"]))


class _Types:
    """The structs of all files, and the classes written so far; a class comes after the classes of its fields."""

    def __init__(self) -> None:
        self.structs: dict[tuple[str, str], _Struct] = {}
        self.classes: dict[str, str] = {}
        for file in _FILES:
            for found in _STRUCT.finditer((_ROOT / "crates" / file).read_text(encoding="utf-8")):
                self.structs[file, found["name"]] = _Struct(found)

    def write(self, file: str, struct: _Struct) -> str:
        """Writes the class of a struct, and returns its name."""
        if struct.name not in self.classes:
            lines = [f"class {struct.name}(TypedDict):", *_docs(struct.docs, '    """', '"""'), ""]
            fields = [line for field in struct.fields for line in self._field(file, field)]
            self.classes[struct.name] = "\n".join(lines + fields)
        return struct.name

    def _field(self, file: str, field: re.Match[str]) -> list[str]:
        if "serde(skip)" in field["serde"]:
            return []
        if "serde(flatten)" in field["serde"]:
            of, inner = self._struct(file, field["type"].removeprefix("&'a "))
            return [line for one in inner.fields for line in self._field(of, one)]
        renamed = _RENAMED.search(field["serde"])
        kind = self._type(file, field["type"])
        if "skip_serializing_if" in field["serde"]:
            kind = f"NotRequired[{kind.removesuffix(' | None')}]"
        return [*_docs(field["docs"], "    #: "), f"    {renamed[1] if renamed else field['name']}: {kind}"]

    def _struct(self, file: str, name: str) -> tuple[str, _Struct]:
        """Returns the struct of this name in the file, else in the only other file that has one."""
        files = [file] if (file, name) in self.structs else [of for of, other in self.structs if other == name]
        if len(files) != 1:
            raise SystemExit(f"error: {file} has a field of type {name}, which {len(files)} files of {__file__} define")
        return files[0], self.structs[files[0], name]

    def _type(self, file: str, of: str) -> str:
        of = re.sub(r"^&'\w+ ", "", of)
        if of in _PLAIN:
            return _PLAIN[of]
        if found := re.fullmatch(r"Option<(.*)>", of):
            return f"{self._type(file, found[1])} | None"
        if found := re.fullmatch(r"Vec<(.*)>|\[(.*)\]", of):
            return f"list[{self._type(file, found[1] or found[2])}]"
        if found := re.fullmatch(r"BTreeMap<(?:String|&'a str), (.*)>", of):
            return f"dict[str, {self._type(file, found[1])}]"
        if found := re.fullmatch(r"\((.*)\)", of):
            return f"tuple[{', '.join(self._type(file, part) for part in found[1].split(', '))}]"
        return self.write(*self._struct(file, of))


def _docs(docs: str, before: str, after: str = "") -> list[str]:
    """Returns a comment in Rust as lines of Python."""
    text = re.sub(r"\[(`[^`]*`)\]", r"\1", docs).replace("`", "``")
    lines = [line.strip().removeprefix("///").strip() for line in text.splitlines()]
    if after:
        return [before + "\n    ".join(lines) + after] if lines else []
    return [f"{before}{line}" for line in lines]


def write() -> None:
    """Writes the module, unless it is there and has the same text."""
    types = _Types()
    for (file, _), struct in types.structs.items():
        types.write(file, struct)
    names = "".join(f'    "{name}",\n' for name in sorted(types.classes))
    head = f'"""The types of reports, written by `tools/{Path(__file__).name}`."""\n\n'
    head += f"from typing import NotRequired, TypedDict\n\n__all__ = [\n{names}]\n\n\n"
    text = head + "\n\n\n".join(types.classes.values()) + "\n"
    if not _WRITTEN.is_file() or _WRITTEN.read_text(encoding="utf-8") != text:
        _WRITTEN.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write()
