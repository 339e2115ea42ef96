"""How large the package is: lines by folder, modules and functions that are too long, classes asked for by isinstance.

python tools/size.py            # of this tree
python tools/size.py OTHER_TREE
"""

import ast
import sys
from collections import Counter
from pathlib import Path

LONG_MODULE, LONG_FUNCTION, MANY_PARAMETERS = 400, 60, 10


def main(root: str = ".") -> None:
    package = Path(root) / "seqloom"
    folders: Counter[str] = Counter()
    modules, functions, crowded, asks = [], [], [], Counter[str]()
    for file in sorted(package.rglob("*.py")):
        inside = file.relative_to(package)
        text = file.read_text("utf-8")
        lines = len(text.splitlines())
        folders["/".join(inside.parts[:-1][:2]) or "."] += lines
        if lines > LONG_MODULE:
            modules.append(f"{inside} ({lines})")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef):
                own = node.args
                count = len([*own.posonlyargs, *own.args, *own.kwonlyargs])
                length = (node.end_lineno or 0) - node.lineno + 1
                if length > LONG_FUNCTION:
                    functions.append(f"{inside}:{node.name} ({length})")
                if count > MANY_PARAMETERS:
                    crowded.append(f"{inside}:{node.name} ({count})")
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance":
                asks[inside.parts[0]] += 1
    for folder, lines in sorted(folders.items()):
        print(f"{lines:7,}  {folder}")
    print(f"{sum(folders.values()):7,}  lines in all")
    models = len((package / "models.py").read_text("utf-8").splitlines())
    core = models + sum(lines for name, lines in folders.items() if name in ("layers", "search", "training"))
    print(f"{core:7,}  layers (without fast), models, search, training")
    for title, found in (
        (f"modules of more than {LONG_MODULE} lines", modules),
        (f"functions of more than {LONG_FUNCTION} lines", functions),
        (f"functions with more than {MANY_PARAMETERS} parameters", crowded),
    ):
        print(f"{len(found):7}  {title}: {', '.join(found)}")
    print(f"{sum(asks.values()):7}  isinstance: {', '.join(f'{name} {count}' for name, count in asks.most_common(8))}")


if __name__ == "__main__":
    main(*sys.argv[1:])
