"""What was done to the data, in numbers: examples, lengths, what was cut, dropped, skipped, repeated or unknown."""

from dataclasses import asdict, dataclass, field
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
    missing_share: float = 0.0  # of the numbers
    lengths: dict[str, int] = field(default_factory=dict)  # examples by the range of their length
    balance: dict[str, int] = field(default_factory=dict)  # examples by label
    whole: int = 0  # tokens of the longest example before anything was cut or dropped


@dataclass(frozen=True)
class SplitReport:
    examples: int
    dropped: int  # examples too long on either side; those too long on both count once
    repeated: int  # examples that stand in this part before
    overlap: int  # examples whose first side is also one of the training part; 0 for training itself
    sides: dict[str, SideReport]


@dataclass(frozen=True)
class SkippedReport:
    rows: int
    first: str  # file and line of the first one


@dataclass(frozen=True)
class DataReport:
    rows_read: int  # those that were skipped included
    skipped: dict[str, SkippedReport]  # by reason
    splits: dict[str, SplitReport]  # by name
    vocabulary: dict[str, int]  # what each side's field knows: tokens (the special ones included), labels, variables
    notes: tuple[str, ...] = ()  # what was detected about the files
    warnings: tuple[str, ...] = ()  # what is hardly meant so

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, report: dict[str, Any]) -> "DataReport":
        skipped = {reason: SkippedReport(**rows) for reason, rows in report["skipped"].items()}
        splits = {
            name: SplitReport(**split | {"sides": {side: SideReport(**one) for side, one in split["sides"].items()}})
            for name, split in report["splits"].items()
        }
        remarks = (tuple(report["notes"]), tuple(report["warnings"]))
        return cls(report["rows_read"], skipped, splits, report["vocabulary"], *remarks)
