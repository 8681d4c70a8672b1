#!/usr/bin/env python3
"""Makes what maturin packed as the sources executable where it is: `sdist.py ARCHIVE`.

maturin leaves no file executable, and cargo runs one of them as CMake.
"""

import gzip
import os
import sys
import tarfile
from pathlib import Path

EXECUTABLE = {"scripts/cmake-boringssl"}


def mend(archive: Path) -> None:
    mended = archive.with_name(archive.name + ".new")
    left = set(EXECUTABLE)
    # Without the time, so that the same sources make the same archive.
    with (
        tarfile.open(archive) as old,
        mended.open("wb") as raw,
        gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as new,
    ):
        for member in old:
            name = member.name.partition("/")[2]
            if name in EXECUTABLE:
                member.mode |= 0o111
                left.discard(name)
            new.addfile(member, old.extractfile(member) if member.isfile() else None)
    if left:
        mended.unlink()
        sys.exit(f"{archive.name} lacks {', '.join(sorted(left))}")
    os.replace(mended, archive)


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        mend(Path(argument))
