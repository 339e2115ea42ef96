"""What all tables of a recipe have in common, and the table that is only for people."""

from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, Field


class Section(BaseModel):
    """One table: it cannot be changed, knows all of its keys, and takes no value for one of another type."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


def _check_text(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:  # a file's name of stray bytes, for one: a recipe could not be written with it
        raise ValueError("the text is not Unicode, so it cannot be written into a recipe") from None
    return text


Text = Annotated[str, AfterValidator(_check_text)]


class About(Section):
    title: Text = Field(default="", description="What this recipe does, in one line.")
    time: Text = Field(default="", description="How long it takes, and on what.")
    expected: Text = Field(default="", description="The score to expect.")
