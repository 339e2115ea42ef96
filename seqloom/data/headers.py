"""Files and columns that are not there, found out before anything is imported that takes seconds."""

from pathlib import PurePath

from ..config.data import Data
from .files import check_files, find_files, is_folder
from .formats.dialects import Dialect, open_table
from .formats.tables import ENDINGS, TABLES, find_column

NAMED = ("source", "target", "tag", "series", "group", "split_time", "time", "variables", "inputs")  # settings: columns


def check_data(data: Data) -> None:
    """Refuse files that are not there, and columns that the first training table lacks."""
    check_files(data)
    named_by_images = "image_size" in type(data).model_fields and "source_type" not in type(data).model_fields
    if named_by_images or data.source_type == "image":  # whose tables have columns with names of their own
        return
    file, format = find_table(data)
    if format not in ("csv", "tsv"):  # those that are opened in no time
        return
    columns = list_columns(data)
    if all(name.isdecimal() for name in columns):  # whether there is a header is found out where it is read
        return
    table = open_table(file, Dialect(format, data.encoding, data.separator, data.header), columns, [])
    for name in columns:
        find_column(name, table.names, file, table.line)


def find_table(data: Data) -> tuple[str, str]:
    """The first training file and its format, if it is a table; else nothing."""
    groups = find_files(data.train, data.format)
    if not groups or len(groups[0]) > 1 or is_folder(groups[0][0]):
        return "", ""
    [file] = groups[0]
    ending = PurePath(file.partition("#")[0].lower().removesuffix(".gz")).suffix
    format = ENDINGS.get(ending, "") if data.format == "guess" else data.format
    return (file, format) if format in TABLES else ("", "")


def list_columns(data: Data) -> tuple[str, ...]:
    """The columns that the settings name."""
    columns: list[str] = []
    for name in NAMED:
        if name in type(data).model_fields:
            value = getattr(data, name)
            columns += [value] * bool(value) if isinstance(value, str) else value
    return tuple(columns)
