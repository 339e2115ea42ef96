"""ES modules as one script, which a page opened from a file may run; modules in files of their own it may not load."""

import re
from collections.abc import Mapping

IMPORT = re.compile(r'^import \{([^}]*)\} from "\./([\w.]+)";\n', re.MULTILINE)
EXPORT = re.compile(r"^export (const|class|(?:async )?function\*?) (\w+)", re.MULTILINE)


def bundle(sources: Mapping[str, str], main: str) -> str:
    """`main` with all that it imports, each module in a function of its own, those that others need first."""
    bundled: dict[str, str] = {}

    def add(name: str) -> None:
        if name in bundled:
            return
        source = sources[name]
        for _, needed in IMPORT.findall(source):
            add(needed)
        names = [exported for _, exported in EXPORT.findall(source)]
        body = EXPORT.sub(r"\1 \2", IMPORT.sub(r'const {\1} = modules["\2"];' + "\n", source))
        bundled[name] = f'modules["{name}"] = (() => {{\n{body}\nreturn {{{", ".join(names)}}};\n}})();\n'

    add(main)
    return '"use strict";\nconst modules = {};\n' + "".join(bundled.values())
