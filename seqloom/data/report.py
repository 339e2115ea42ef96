"""What was done to the data, in numbers: examples, lengths, what was cut, dropped, skipped or unknown."""

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class SideReport:
    """One side of a split, as it is trained on or scored."""

    tokens: int
    longest: int  # tokens, after cutting
    mean: float  # tokens an example
    cut: int  # examples whose ids were cut here
    dropped: int  # examples dropped because this side was too long
    unknown_share: float  # of the tokens


@dataclass(frozen=True)
class SplitReport:
    examples: int
    dropped: int  # examples too long on either side; those too long on both count once
    source: SideReport
    target: SideReport


@dataclass(frozen=True)
class SkippedReport:
    rows: int
    first: str  # file and line of the first one


@dataclass(frozen=True)
class DataReport:
    rows_read: int  # those that were skipped included
    skipped: dict[str, SkippedReport]  # by reason
    splits: dict[str, SplitReport]  # by name
    vocabulary: dict[str, int]  # tokens of source and target, the special ones included

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> "DataReport":
        skipped = {reason: SkippedReport(**rows) for reason, rows in found["skipped"].items()}
        splits = {
            name: SplitReport(
                split["examples"],
                split["dropped"],
                source=SideReport(**split["source"]),
                target=SideReport(**split["target"]),
            )
            for name, split in found["splits"].items()
        }
        return cls(found["rows_read"], skipped, splits, found["vocabulary"])
