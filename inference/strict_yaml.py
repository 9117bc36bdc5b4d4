"""YAML that means what it says: duplicate keys, keys that are no strings, and aliases are refused with their path."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

_STRING = "tag:yaml.org,2002:str"
_COLLECTIONS = ("tag:yaml.org,2002:map", "tag:yaml.org,2002:seq")


class YamlError(ValueError):
    """The file is not plain YAML.  `path`: where in the tree, e.g. `stages[0].devices` ('' is the top)."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}" if path else reason)
        self.path, self.reason = path, reason


def child(path: str, key: str | int) -> str:
    """The path of an entry: `a` and `b` give `a.b`, `a` and 0 give `a[0]`."""
    if isinstance(key, int):
        return f"{path}[{key}]"
    return f"{path}.{key}" if path else key


def load_yaml(file: Path) -> Any:
    """The one document of `file` as dicts, lists and scalars.  Raises OSError, and YamlError where it is not strict."""
    try:
        loader = yaml.SafeLoader(file.read_text(encoding="utf-8"))
        try:
            root = loader.get_single_node()
            return None if root is None else _Builder(loader).build(root, "")
        finally:
            loader.dispose()
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise YamlError("", f"not valid YAML: {error}") from error


class _Builder:
    """Turns nodes into values; PyYAML's own constructor would silently let the last of two equal keys win."""

    def __init__(self, loader: yaml.SafeLoader) -> None:
        self._loader = loader
        self._seen: set[int] = set()

    def build(self, node: yaml.Node, path: str) -> Any:
        if id(node) in self._seen:
            raise YamlError(path, "aliases (*name) are not supported: write the value out")
        self._seen.add(id(node))
        if isinstance(node, yaml.CollectionNode) and node.tag not in _COLLECTIONS:
            raise YamlError(path, f"not a plain value: it is tagged {node.tag}")
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path)
        if isinstance(node, yaml.SequenceNode):
            return [self.build(item, child(path, index)) for index, item in enumerate(node.value)]
        try:
            return self._loader.construct_object(node)
        except (yaml.YAMLError, ValueError) as error:  # ValueError: 2001-99-99 is tagged as a date
            raise YamlError(path, f"not a plain value: {error}") from error

    def _mapping(self, node: yaml.MappingNode, path: str) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key, value in node.value:
            if key.tag != _STRING:
                raise YamlError(child(path, str(key.value)), f"a key must be a string (line {key.start_mark.line + 1})")
            where = child(path, key.value)
            if key.value in result:
                raise YamlError(where, f"the key occurs twice (again in line {key.start_mark.line + 1})")
            result[key.value] = self.build(value, where)
        return result
