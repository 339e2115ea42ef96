"""What a server allows, and how it says no."""

from dataclasses import dataclass

from ..errors import SeqloomError


class Refused(SeqloomError):
    """A request that is not served, with its HTTP status; `reason` is one word that refusals are counted by."""

    def __init__(self, status: int, reason: str, sentence: str, retry_after: int = 0) -> None:
        super().__init__(status, reason, sentence, retry_after)
        self.status, self.reason, self.sentence, self.retry_after = status, reason, sentence, retry_after

    def text(self) -> str:
        return self.sentence


@dataclass(frozen=True)
class Limits:
    """Every number that bounds what one request, and all of them together, may take."""

    body: int = 1 << 20  # bytes
    headers: int = 64
    head: int = 32_768  # bytes of the path and all headers
    depth: int = 32  # of nested JSON
    header_seconds: float = 10.0  # until the headers of a request are complete
    seconds: float = 30.0  # from a request's headers to the end of its answer
    input: int = 16_384  # characters or numbers of one input
    explained: int = 512  # characters or numbers of an input that is explained: some hundred passes of the model
    inputs: int = 256  # inputs of one request
    tokens: int = 512  # written for one input
    beam: int = 16
    count: int = 16  # texts for one prompt
    alternatives: int = 20  # other likely tokens told for each step
    work: int = 65_536  # prompts × texts × beams × tokens of one request
    queue: int = 512  # inputs that wait
    batch: int = 64  # inputs that are answered together
    streams: int = 16  # texts that are written at the same time
    sessions: int = 1024
    session_seconds: float = 600.0  # until a session that is not fed ends
    connections: int = 1024
    memory: int = 4 << 30  # bytes of weights that are loaded at the same time

    def check_work(self, prompts: int, count: int, beams: int, tokens: int) -> None:
        """Refuse what is too much in one respect, or too much of everything together."""
        factors = {"inputs": prompts, "count": count, "beam": beams, "tokens": tokens}
        for name, value in factors.items():
            if value > (most := getattr(self, name)):
                raise Refused(400, "work", f"{name} is {value}, and at most {most} are served")
        if (product := prompts * count * beams * tokens) > self.work:
            says = " × ".join(f"{value} {name}" for name, value in factors.items())
            raise Refused(400, "work", f"{says} are {product:,} steps, and at most {self.work:,} are served at once")
