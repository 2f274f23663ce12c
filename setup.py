"""What pyproject.toml cannot say: the wheel carries notebooks, book and recorded tables, in nli_lib/carried."""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

HERE = Path(__file__).parent
CARRIED = ("notebooks", "book", "data/results/small", "data/results/small-mnli", "data/README.md", "constraints.txt")
MADE = (
    "__pycache__",
    ".ipynb_checkpoints",
    "chapters",
    "_build",
    "plotly.min.js",
    "*.parts",
)  # by runs, and _static/notebooks
IGNORED = shutil.ignore_patterns(*MADE, "*.parts")  # what only a new run would read


class WithStudy(build_py):
    """The usual build, then the folders beside it; an editable installation uses them where they are."""

    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return
        into = Path(self.build_lib, "nli_lib", "carried")
        shutil.rmtree(into, ignore_errors=True)
        for name in CARRIED:
            source, target = HERE / name, into / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if source.is_dir():
                shutil.copytree(source, target, ignore=IGNORED)
            else:
                shutil.copyfile(source, target)
        shutil.rmtree(into / "book" / "_static" / "notebooks", ignore_errors=True)


setup(cmdclass={"build_py": WithStudy})
