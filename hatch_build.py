"""Puts the native kernels into the wheel: compiled for every level of this architecture, as one library.

An editable install gets none, since its sources change: the library is built into the user's cache when it is first
needed. Without a compiler, or with SEQLOOM_NATIVE=0, the wheel is one for any machine, without a library.
"""

import importlib.util
import os
import sysconfig
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

FOLDER = "seqloom/layers/fast/native"


class NativeKernels(BuildHookInterface):  # type: ignore[type-arg]
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version == "editable" or os.environ.get("SEQLOOM_NATIVE") == "0":
            return
        native = load_builder(Path(self.root, FOLDER, "build.py"))
        self.made = tempfile.TemporaryDirectory()  # until `finalize`
        library = Path(self.made.name, native.name_library())
        try:
            native.build(library, native.levels())
        except native.BuildError as error:
            self.app.display_warning(f"the wheel holds no native kernels: {error}")
            return
        build_data["force_include"][str(library)] = f"{FOLDER}/{library.name}"
        build_data["pure_python"] = False
        # It is called through ctypes, so any Python will do, but only this platform.
        build_data["tag"] = "py3-none-" + sysconfig.get_platform().replace("-", "_").replace(".", "_")

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if hasattr(self, "made"):
            self.made.cleanup()


def load_builder(path: Path) -> ModuleType:
    """`build.py` by its path: importing the package would need PyTorch."""
    spec = importlib.util.spec_from_file_location("seqloom_native_build", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
