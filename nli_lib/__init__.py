"""A study of NLI data quality: a library, notebooks and a book.

Nothing is written into an installed library. It brings notebooks, book and recorded tables in the folder `carried`, and
writes to NLI_HOME or else the folder in which Python was started. A clone has no folder `carried` and writes to
NLI_HOME or else the clone.
"""

import os
from pathlib import Path

if Path(__file__).with_name("carried").is_dir():
    os.environ.setdefault("NLI_HOME", str(Path.cwd()))
if os.environ.get("NLI_HOME"):
    # read by `paths`, and by every child process, in whatever folder it works
    os.environ["NLI_HOME"] = str(Path(os.environ["NLI_HOME"]).absolute())
