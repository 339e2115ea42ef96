"""A beam search as data: every hypothesis it looked at, what became of it and why. It can be replayed step by step."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple

Fate = str  # "kept", "pruned" or "finished"


@dataclass
class Node:
    """One token after another; the root is before the first."""

    parent: int | None  # its place in the tree's list
    token: int | None
    log: float  # the model's own log-probability of the token
    score: float  # what the path up to here is ranked by
    step: int
    group: int
    fate: Fate
    why: str = ""  # why it was pruned, or how it finished


@dataclass
class Tree:
    """The search of one source. Of each hypothesis that was kept, as many successors as the beam has places."""

    nodes: list[Node] = field(default_factory=lambda: [Node(None, None, 0.0, 0.0, 0, 0, "kept")])

    def steps(self) -> Iterator[list[int]]:
        """The nodes of each step in turn, by their place in the list: the root first."""
        for step in range(self.nodes[-1].step + 1):
            yield [place for place, node in enumerate(self.nodes) if node.step == step]

    def path(self, place: int) -> list[int]:
        """The tokens that lead to a node."""
        tokens: list[int] = []
        node = self.nodes[place]
        while node.parent is not None and node.token is not None:
            tokens.append(node.token)
            node = self.nodes[node.parent]
        return tokens[::-1]

    def to_json(self) -> dict[str, Any]:
        return {"nodes": [asdict(node) for node in self.nodes]}


class Candidate(NamedTuple):
    """A hypothesis that a beam looked at in one step."""

    slot: int  # the place in the beam that it goes on from
    token: int
    log: float
    score: float
    group: int
    place: int | None  # the place that it takes, if it is kept
    fate: Fate
    why: str


class Recorder:
    """Handed to a beam search, it holds a tree for each source afterwards."""

    def __init__(self) -> None:
        self.trees: list[Tree] = []
        self.open: list[dict[int, int]] = []  # of each source: the node in each place of its beam

    def begin(self, sources: int) -> None:
        self.trees = [Tree() for _ in range(sources)]
        self.open = [{0: 0} for _ in range(sources)]

    def note(self, source: int, step: int, candidates: Sequence[Candidate]) -> None:
        nodes, before, after = self.trees[source].nodes, self.open[source], {}
        for one in candidates:
            if one.place is not None:
                after[one.place] = len(nodes)
            parent = before[one.slot]
            nodes.append(Node(parent, one.token, one.log, one.score, step, one.group, one.fate, one.why))
        self.open[source] = after

    def close(self, source: int, fate: Fate, why: str) -> None:
        """The search of a source is over: what becomes of the hypotheses that were still open."""
        for place in self.open[source].values():
            node = self.trees[source].nodes[place]
            node.fate, node.why = fate, why
        self.open[source] = {}
