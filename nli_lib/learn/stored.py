"""stored: a run that another chapter has trained, found again by the spec that the chapter recorded."""

from pydantic import ValidationError

from nli_lib.learn.fit import Run
from nli_lib.spec import RunSpec
from nli_lib.store import RunFolder, StoreError


def finished(spec: RunSpec) -> bool:
    """Whether the run is in the store and trained to its end. Raises `StoreError` where that cannot be read."""
    return (spec.folder / "done.npy").exists() and bool(RunFolder(spec.folder).done.all())


def stored(settings: str) -> Run:
    """The finished run with these settings (JSON of `RunSpec`); nothing is trained.

    Raises `StoreError` naming the run where it is not in the store or not finished, and the file where it is damaged.
    """
    try:
        spec = RunSpec.model_validate_json(settings, strict=False)
    except ValidationError as error:
        raise StoreError(f"the settings of a run cannot be read: {error.errors()[0]['msg']}") from None
    if not finished(spec):
        raise StoreError(f"{spec.id} is not in {spec.folder.parent}, or not finished: run the chapter that trains it")
    run = Run(spec, spec.folder)
    run.store.verify("arrays")
    return run
