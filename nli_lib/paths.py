"""The project's folders. Set NLI_HOME to keep runs, tables and the book in another folder."""

import os
from pathlib import Path

HOME = Path(os.environ.get("NLI_HOME", Path(__file__).resolve().parents[1]))
RUNS = HOME / "data" / "runs"  # arrays and models, ignored by git
MODELS = HOME / "data" / "models"  # encoders made from a package's files, ignored by git
EXPORTS = HOME / "data" / "exports"  # lists with a corpus's text, ignored by git
RESULTS = HOME / "data" / "results"  # small tidy tables, tracked
NOTEBOOKS = HOME / "notebooks"
BOOK = HOME / "book"
