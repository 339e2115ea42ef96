"""Files and columns that are not there, found out before anything is imported that takes seconds."""

from seqloom.config.data import Data
from seqloom.data.files import check_files, find_files
from seqloom.data.formats.dialects import Dialect, open_table
from seqloom.data.formats.tables import detect_format, find_column

NAMED = ("source", "target", "tag", "series", "group", "split_time", "time", "variables", "inputs")  # settings: columns


def check_data(data: Data) -> None:
    """Refuse files that are not there, and columns that the first training table lacks."""
    check_files(data)
    groups = find_files(data.train, data.format)
    if not groups or "image_size" in type(data).model_fields and "source_type" not in type(data).model_fields:
        return  # tables of images have columns with names of their own
    [files, *_] = groups
    if data.source_type == "image" or (format := detect_format(files, data.format)) not in ("csv", "tsv"):
        return
    columns = list_columns(data)
    if all(name.isdecimal() for name in columns):  # whether there is a header is found out where it is read
        return
    table = open_table(files[0], Dialect(format, data.encoding, data.separator, data.header), columns, [])
    for name in columns:
        find_column(name, table.names, files[0], table.line)


def list_columns(data: Data) -> tuple[str, ...]:
    """The columns that the settings name."""
    found: list[str] = []
    for name in NAMED:
        if name in type(data).model_fields:
            value = getattr(data, name)
            found += [value] * bool(value) if isinstance(value, str) else value
    return tuple(found)
