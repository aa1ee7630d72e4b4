"""A set of files in memory: what a backend returns and what the one writer writes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gpuplan.frozen import frozen


@frozen
class File:
    """`path` is relative, with `/`. A `seed` belongs to the user: it is written when absent, later
    gets no more than hints about new settings, and stands in no checksum."""

    path: str
    text: str
    seed: bool = False
    executable: bool = False


@frozen
class FileTree:
    """Files in path order, each path once."""

    files: tuple[File, ...] = ()

    def __post_init__(self) -> None:
        paths = [f.path for f in self.files]
        if len(set(paths)) != len(paths):
            raise ValueError(f"two files at one path: {sorted(paths)}")
        object.__setattr__(self, "files", tuple(sorted(self.files, key=lambda f: f.path)))

    def __iter__(self) -> Iterator[File]:
        return iter(self.files)

    @staticmethod
    def merge(trees: Iterable[FileTree]) -> FileTree:
        return FileTree(tuple(f for tree in trees for f in tree.files))
