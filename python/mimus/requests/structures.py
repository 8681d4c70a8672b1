"""Mappings whose keys know no case, and one whose keys are attributes."""

from __future__ import annotations

from collections.abc import ItemsView, Iterable, Iterator, Mapping, MutableMapping
from typing import Any


class CaseInsensitiveDict(MutableMapping[str, Any]):
    """A mapping of names in any case; it remembers how each was written last, and the order of the first.

    The names must be strings. Two that differ in case only are one.
    """

    __slots__ = ("__weakref__", "_store")

    def __init__(self, data: Mapping[str, Any] | Iterable[tuple[str, Any]] | None = None, **kwargs: Any) -> None:
        # By the folded name: the name as it was written, and its value.
        self._store: dict[str, tuple[str, Any]] = {}
        if data is not None or kwargs:
            self.update(() if data is None else data, **kwargs)

    def __getitem__(self, key: str) -> Any:
        return self._store[key.lower()][1]

    def __setitem__(self, key: str, value: Any) -> None:
        self._store[key.lower()] = key, value

    def __delitem__(self, key: str) -> None:
        del self._store[key.lower()]

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and key.lower() in self._store

    def __iter__(self) -> Iterator[str]:
        return iter([name for name, _ in self._store.values()])

    def __len__(self) -> int:
        return len(self._store)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mapping):
            return NotImplemented
        if not isinstance(other, CaseInsensitiveDict):
            other = CaseInsensitiveDict(other)
        return dict(self.lower_items()) == dict(other.lower_items())

    __hash__ = None  # type: ignore[assignment]

    def get(self, key: str, default: Any = None) -> Any:
        found = self._store.get(key.lower())
        return default if found is None else found[1]

    def items(self) -> ItemsView[str, Any]:
        return _Items(self)

    def update(self, other: Any = (), /, **kwargs: Any) -> None:
        if isinstance(other, CaseInsensitiveDict):
            self._store.update(other._store)
        elif isinstance(other, dict):
            self._store.update([(name.lower(), (name, value)) for name, value in other.items()])
        else:
            super().update(other)
        if kwargs:
            super().update(kwargs)

    def lower_items(self) -> Iterator[tuple[str, Any]]:
        """The items by their names in lower case."""
        return ((folded, value) for folded, (_, value) in self._store.items())

    def copy(self) -> CaseInsensitiveDict:
        new = type(self)()
        new._store = self._store.copy()
        return new

    def __getstate__(self) -> dict[str, Any]:
        return {"_store": self._store}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._store = state["_store"]

    def __repr__(self) -> str:
        return repr(dict(self._store.values()))


class _Items(ItemsView[str, Any]):
    """The items as they lie there: no name is looked up again."""

    _mapping: CaseInsensitiveDict

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        return iter(self._mapping._store.values())


class LookupDict(dict[str, Any]):
    """Its attributes are its items; an item that is not there is `None`."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__()
        self.name = name

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"{self!r} has no {name!r}")

    def __getitem__(self, key: str) -> Any:
        return vars(self).get(key)

    def get(self, key: str, default: Any = None) -> Any:
        return vars(self).get(key, default)

    def __repr__(self) -> str:
        return f"<lookup '{self.name}'>"
