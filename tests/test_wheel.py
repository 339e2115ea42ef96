"""The wheel: built, installed and used where there is no source tree, without a network."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from seqloom.layers.fast.native import build

ROOT = Path(__file__).resolve().parent.parent


def run(*arguments: str | Path, cwd: Path, **environment: str) -> str:
    answer = subprocess.run(
        [str(argument) for argument in arguments],
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
    return answer.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory, quick_compiler: Path) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    compiler = {"CC": str(quick_compiler)} if shutil.which("cc") else {}
    run(
        *(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-build-isolation", "--no-deps", "--no-index"),
        *("--wheel-dir", folder, ROOT),
        cwd=folder,
        **compiler,
    )
    [built] = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("installed")
    run(
        *(sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", folder, wheel),
        cwd=folder,
    )
    return folder


def test_the_wheel_holds_every_file_of_the_package_and_nothing_else(wheel):
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
    here = {file.relative_to(ROOT).as_posix() for file in (ROOT / "seqloom").rglob("*") if file.is_file()}
    libraries = {name for name in packed if name.endswith(".so")}
    folders = (ROOT / "docs" / "course", ROOT / "docs" / "pictures" / "course")
    lessons = {f"seqloom/{file.relative_to(ROOT)}" for one in folders for file in one.rglob("*") if file.is_file()}
    assert packed - libraries == {name for name in here | lessons if "__pycache__" not in name}
    if shutil.which("cc"):
        assert libraries == {f"seqloom/layers/fast/native/{build.name_library()}"}


def test_the_wheel_is_for_one_platform_but_any_python(wheel):
    expected = sysconfig.get_platform().replace("-", "_") if shutil.which("cc") else "any"
    assert wheel.name.endswith(f"-py3-none-{expected}.whl")


SAY = "import torch; from seqloom.layers.fast.native import library; print(library.status().reason)"


def test_the_installed_package_computes_with_its_own_kernels(installed, tmp_path):
    """No compiler, no home: what the wheel brought is all it needs."""
    if not shutil.which("cc"):
        pytest.skip("there is no C compiler here, so the wheel holds no library")
    nowhere = {"PYTHONPATH": str(installed), "CC": "no-such-compiler", "SEQLOOM_CACHE": "/proc/nowhere"}
    assert run(sys.executable, "-c", SAY, cwd=tmp_path, **nowhere).strip() == "part of the installed package"


def test_a_library_for_other_sources_is_not_loaded(installed, tmp_path):
    """As after an upgrade that has left an old file behind."""
    other = tmp_path / "other"
    shutil.copytree(installed, other)
    with (other / "seqloom/layers/fast/native/kernels.c").open("a") as source:
        source.write("\n")
    answer = run(sys.executable, "-c", SAY, cwd=tmp_path, PYTHONPATH=str(other), CC="no-such-compiler")
    assert answer.strip() == "no C compiler 'no-such-compiler' was found"


def test_without_a_compiler_the_wheel_is_for_any_machine(tmp_path):
    run(
        *(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-build-isolation", "--no-deps", "--no-index"),
        *("--wheel-dir", tmp_path, ROOT),
        cwd=tmp_path,
        CC="no-such-compiler",
    )
    [built] = tmp_path.glob("*.whl")
    assert built.name.endswith("-py3-none-any.whl")


def test_the_wheel_carries_its_license_and_its_command(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        [license] = [name for name in names if name.endswith("/licenses/LICENSE")]
        [entry_points] = [name for name in names if name.endswith("/entry_points.txt")]
        assert archive.read(license) == (ROOT / "LICENSE").read_bytes()
        assert "seqloom = seqloom.__main__:main" in archive.read(entry_points).decode()


def test_the_installed_package_reads_its_built_in_recipes(installed, tmp_path):
    program = (
        "import json, seqloom; from seqloom.config.builtin import builtin; from seqloom.config.recipe import Recipe; "
        "print(json.dumps({'file': seqloom.__file__, 'tasks': {n: Recipe.read(n).task for n in builtin()}}))"
    )
    answer = json.loads(run(sys.executable, "-c", program, cwd=tmp_path, PYTHONPATH=str(installed)))
    assert Path(answer["file"]).is_relative_to(installed), "the source tree was used, not the wheel"
    assert answer["tasks"]["seq2seq"] == "seq2seq"


def test_the_installed_command_lists_its_recipes(installed, tmp_path):
    listed = json.loads(
        run(sys.executable, "-m", "seqloom", "recipes", "--json", cwd=tmp_path, PYTHONPATH=str(installed))
    )
    assert "seq2seq" in listed
    assert "seq2seq" in run(installed / "bin" / "seqloom", "recipes", cwd=tmp_path, PYTHONPATH=str(installed))
