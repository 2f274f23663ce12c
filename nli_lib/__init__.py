"""The study of the quality of NLI data: a library, notebooks and a book.

An installed library lies where nobody should write. Notebooks, book and recorded tables come with it in the folder
`carried`, and the place for what is written is NLI_HOME, or else the folder in which Python was started. In a clone,
which has no such folder, the place is NLI_HOME, or else the clone.
"""

import os
from pathlib import Path

if Path(__file__).with_name("carried").is_dir():
    os.environ.setdefault("NLI_HOME", str(Path.cwd()))
if os.environ.get("NLI_HOME"):
    # read by `paths`, and by every process that is started here, whatever folder it works in
    os.environ["NLI_HOME"] = str(Path(os.environ["NLI_HOME"]).absolute())
