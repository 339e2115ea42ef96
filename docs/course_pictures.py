"""The pictures of the course, made anew: every command and code block of its lessons, run in full (half an hour).

    python docs/course_pictures.py [NUMBER …]

A lesson runs in runs/course/LESSON; a training that is there already is used. Afterwards the pictures that the lesson
shows are copied to docs/pictures/course, and the processor time of what was run is printed.
"""

import re
import resource
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from PIL import Image

from seqloom.course import DOCS, Lesson, list_commands, list_lessons, split_page
from seqloom.runs.folder import SCORES

RUNS = DOCS.parent / "runs" / "course"
LARGEST = 150_000  # bytes of a file that stands in a page


def run_lesson(lesson: Lesson) -> Path:
    folder = RUNS / lesson.path.stem
    shutil.copytree(DOCS / "course" / "solutions", folder, dirs_exist_ok=True)
    for block in split_page(lesson.read()):
        if block.language == "python":
            subprocess.run([sys.executable, "-c", block.text], cwd=folder, check=True)
        elif block.language == "console":
            for command in list_commands(block.text):
                run_command(shlex.split(command)[1:], folder)
    return folder


def run_command(words: list[str], folder: Path) -> None:
    if words[0] == "train":
        into = folder / words[words.index("--into") + 1]
        if (into / SCORES).exists():
            return
        shutil.rmtree(into, ignore_errors=True)
    print("seqloom", shlex.join(words), flush=True)
    subprocess.run([sys.executable, "-m", "seqloom", *words], cwd=folder, check=True)


def processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    wanted = [int(number) for number in sys.argv[1:]]
    for lesson in list_lessons():
        if wanted and lesson.number not in wanted:
            continue
        before = processor_seconds()
        folder = run_lesson(lesson)
        for name in re.findall(r"\.\./pictures/course/(\S+)\)", lesson.read()):
            path = Path(shutil.copy(folder / name, DOCS / "pictures" / "course"))
            if path.suffix == ".png":  # a chart has few colors
                Image.open(path).convert("RGB").quantize(64).save(path, optimize=True)
            size = path.stat().st_size
            print(f"{path.name}: {size:,} bytes" + (" TOO LARGE" if size > LARGEST else ""))
        print(f"lesson {lesson.number}: {processor_seconds() - before:.0f} s of processor time", flush=True)


if __name__ == "__main__":
    main()
