"""Hub: one split of a corpus from the Hugging Face hub, at a stated revision, through `datasets`."""

import os

from nli_lib.corpora.corpus import CorpusError
from nli_lib.corpora.load.reading import from_dataset
from nli_lib.corpora.load.rows import Rows

_OFFLINE = ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE", "TRANSFORMERS_OFFLINE")
_TIMEOUT = 10  # seconds for the one request that says whether the hub answers


def read_hub(repository: str, config: str | None, split: str, revision: str) -> tuple[Rows, str]:
    """The rows of a hub split, and "repository@commit" of what was read; class numbers come back as class names.

    Asks the hub once for the commit behind `revision`, so that an unreachable hub is an error after seconds and not
    after the retries of a download. Raises `CorpusError` at once where the environment forbids the hub.
    """
    yes = ("1", "true", "yes", "on")
    if switch := next((name for name in _OFFLINE if os.environ.get(name, "").strip().lower() in yes), None):
        raise CorpusError(f"hub {repository}: not asked, because {switch} is set in the environment")
    try:
        import datasets
        from huggingface_hub import HfApi

        commit = HfApi().dataset_info(repository, revision=revision, timeout=_TIMEOUT).sha or revision
        dataset = datasets.load_dataset(repository, config, split=split, revision=commit)
    except Exception as error:  # network, hub and format errors have no common class
        line = next(iter(str(error).strip().splitlines()), type(error).__name__)
        raise CorpusError(f"hub {repository}@{revision} ({split}): {line}") from error
    return from_dataset(dataset, f"hub {repository}"), f"{repository}@{commit}"
