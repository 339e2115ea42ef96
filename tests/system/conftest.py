"""Commands as a person types them, in this process."""

import io
import sys

import pytest

from seqloom.cli.main import main


@pytest.fixture
def seqloom(monkeypatch, capsys):
    """Type a command: its exit code, standard output and standard error."""

    def typed(*words, stdin=""):
        given = stdin.encode() if isinstance(stdin, str) else stdin
        monkeypatch.setattr(sys, "argv", ["seqloom", *map(str, words)])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given)))
        capsys.readouterr()
        with pytest.raises(SystemExit) as stopped:
            main()
        return stopped.value.code or 0, *capsys.readouterr()

    return typed
