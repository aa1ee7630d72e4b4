"""Members of .tar, .tar.gz and .zip files, read in memory with every size bounded."""

from __future__ import annotations

import gzip
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO, cast

from gpuplan.frozen import record

ARCHIVES = (".tar", ".tar.gz", ".tgz", ".zip")
LARGEST_ARCHIVE = 256 * 2**20  # unpacked


@record
class Member:
    path: PurePosixPath
    content: bytes


@record
class Refused:
    """A member that is not read: a link, a device, or too large."""

    name: str
    reason: str


class _Bounded:
    """A stream that ends with a ValueError where more is asked of it than `left` bytes: a header
    may promise anything, and a small file may unpack to any size."""

    def __init__(self, stream: IO[bytes], left: int) -> None:
        self.stream, self.left = stream, left

    def read(self, size: int = -1) -> bytes:
        if size < 0 or size > self.left:
            raise ValueError(f"it unpacks to more than {LARGEST_ARCHIVE >> 20} MiB")
        data = self.stream.read(size)
        self.left -= len(data)
        return data


def members(path: Path, largest: int, most: int) -> Iterator[Member | Refused]:
    """Every file in the archive. Raises ValueError (what is wrong with it) or OSError."""
    read = _zip if path.name.endswith(".zip") else _tar
    try:
        for number, member in enumerate(read(path, largest)):
            if number >= most:
                raise ValueError(f"it has more than {most} members")
            yield member
    except EOFError as problem:
        raise ValueError("it ends in the middle of a file") from problem
    except zlib.error as problem:
        raise ValueError("its packed data is damaged") from problem
    except (tarfile.TarError, zipfile.BadZipFile) as problem:
        kind = ".zip" if path.name.endswith(".zip") else ".tar"
        raise ValueError(f"it is no {kind} archive, or a damaged one") from problem
    except (RuntimeError, NotImplementedError) as problem:  # of zipfile
        raise ValueError("a member is encrypted, or packed by a method of its own") from problem


def _inside(name: str) -> PurePosixPath:
    """The member's path; what would lead out of the archive is dropped from it."""
    parts = [p for p in name.replace("\\", "/").split("/") if p not in ("", ".", "..")]
    return PurePosixPath(*parts)


def _tar(path: Path, largest: int) -> Iterator[Member | Refused]:
    with path.open("rb") as raw:
        packed = raw.read(2) == b"\x1f\x8b"
        raw.seek(0)
        stream = cast("IO[bytes]", gzip.GzipFile(fileobj=raw) if packed else raw)
        bounded = cast("IO[bytes]", _Bounded(stream, LARGEST_ARCHIVE))
        with tarfile.open(fileobj=bounded, mode="r|", bufsize=tarfile.BLOCKSIZE) as archive:
            for member in archive:
                if member.isdir():
                    continue
                if not member.isreg():
                    yield Refused(name=member.name, reason="it is a link or a device")
                elif member.size > largest:
                    yield Refused(name=member.name, reason=_too_large(largest))
                else:
                    file = archive.extractfile(member)
                    assert file is not None
                    yield Member(path=_inside(member.name), content=file.read(largest))


def _zip(path: Path, largest: int) -> Iterator[Member | Refused]:
    left = LARGEST_ARCHIVE
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            if not member.filename:  # of which `is_dir` asks for the last character
                raise ValueError("a file in it has no name")
            if member.is_dir():
                continue
            if member.external_attr >> 28 == 0xA:
                yield Refused(name=member.filename, reason="it is a link or a device")
                continue
            with archive.open(member) as file:
                content = file.read(largest + 1)
            left -= len(content)
            if left < 0:
                raise ValueError(f"it unpacks to more than {LARGEST_ARCHIVE >> 20} MiB")
            if len(content) > largest:
                yield Refused(name=member.filename, reason=_too_large(largest))
            else:
                yield Member(path=_inside(member.filename), content=content)


def _too_large(largest: int) -> str:
    return f"it is larger than {largest >> 20} MiB"
