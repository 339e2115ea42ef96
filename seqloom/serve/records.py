"""The records of a run, read on from where a reader stands: how the page follows a training while it goes on."""

import os
from pathlib import Path
from typing import Any

from ..errors import RunError
from ..runs.folder import RECORDS, check_record
from ..training.files import open_limited, parse_json

MOST = 1 << 21  # bytes of one answer


def read_on(folder: Path, after: int) -> dict[str, Any]:
    """The whole lines behind this byte, and where the next ones will begin.

    A resumed run takes records back: a file that has become shorter is read from its beginning, which is said.
    """
    path = folder / RECORDS
    if not os.path.lexists(path):
        return {"records": [], "after": 0, "restarted": after > 0}
    with open_limited(path) as file:
        size = os.fstat(file.fileno()).st_size
        restarted = after > size
        file.seek(0 if restarted else after)
        data = file.read(MOST)
    place = 0 if restarted else after
    lines = data[: data.rfind(b"\n") + 1].splitlines()
    records = []
    for line in lines:
        record = check_record(parse_json(line, f"{RECORDS}, behind byte {place}"), RECORDS)
        records.append({name: value for name, value in record.items() if name != "watched"})  # large, and in the views
    if data and not lines and len(data) == MOST:
        raise RunError(f"{RECORDS}: has a line of more than {MOST:,} bytes")
    return {"records": records, "after": place + data.rfind(b"\n") + 1, "restarted": restarted}
