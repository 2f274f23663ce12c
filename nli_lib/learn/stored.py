"""stored: a run that another chapter has trained, found again by the spec that the chapter recorded."""

from pydantic import ValidationError

from nli_lib.learn.fit import Run
from nli_lib.spec import RunSpec
from nli_lib.store import StoreError


def stored(settings: str) -> Run:
    """The finished run with these settings (JSON of `RunSpec`); nothing is trained.

    Raises `StoreError` naming the run where it is not in the store or not finished.
    """
    try:
        spec = RunSpec.model_validate_json(settings, strict=False)
    except ValidationError as error:
        raise StoreError(f"the settings of a run cannot be read: {error.errors()[0]['msg']}") from None
    run = Run(spec, spec.folder)
    if not (spec.folder / "done.npy").exists() or not run.store.done.all():
        raise StoreError(f"{spec.id} is not in {spec.folder.parent}, or not finished: run the chapter that trains it")
    return run
