"""Options of the command line that several commands have."""

from typing import Annotated

import typer

Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs instead of text for people.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the whole trace of an error.")]

# What is written, and how it is chosen.
Temperature = Annotated[float, typer.Option(min=0, help="0 is the likeliest token each time, 1 as learned.")]
TopK = Annotated[int, typer.Option(min=0, help="Draw from so many of the likeliest tokens; 0 is all.")]
TopP = Annotated[float, typer.Option(min=0, max=1, help="Draw from the likeliest that have this share.")]
MinP = Annotated[float, typer.Option(min=0, max=1, help="Draw from those with this share of the best one's.")]
Seed = Annotated[int, typer.Option(help="The same seed writes the same.")]
Alternatives = Annotated[int, typer.Option(min=0, max=100, help="With --json: so many likely tokens a step.")]
Ban = Annotated[list[str] | None, typer.Option(help="A text that is never written; again for another.")]
Require = Annotated[list[str] | None, typer.Option(help="A token that is written somewhere; again for another.")]
Prefix = Annotated[str, typer.Option(help="What is written first.")]
Stop = Annotated[list[str] | None, typer.Option(help="A text before which the writing ends; again for another.")]
NoRepeat = Annotated[int, typer.Option(min=0, help="No so many tokens in a row are written twice; 0 is free.")]
RepetitionPenalty = Annotated[float, typer.Option(min=1, help="What was written becomes so much rarer; 1 is free.")]
MinLength = Annotated[int, typer.Option(min=0, help="The fewest tokens to write.")]
AllowUnknown = Annotated[bool, typer.Option("--allow-unknown", help="Let <unk> be written, for what is not known.")]
Int8 = Annotated[bool, typer.Option("--int8", help="Write with weights of eight bits: quicker, and less exact.")]
Timeout = Annotated[float | None, typer.Option(min=0, help="The most seconds a text is written for; 0 is no limit.")]
Stream = Annotated[bool, typer.Option("--stream", help="Print each text piece by piece as it comes.")]
