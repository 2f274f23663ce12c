"""The page that says when, where and with what each chapter was recorded, from the records alone."""

from collections.abc import Collection, Mapping

from nli_lib.study import manifest as records
from nli_lib.study import standing
from nli_lib.study.notebook import SMOKE_LABEL
from nli_lib.study.prose import as_text
from nli_lib.study.schedule import Request

MACHINE = ("python", "torch")  # of a record's environment
HEAD = ("Chapter", "State", "Date", "Seconds", "Seeds", "Revision")


def stamps(name: str, request: Request) -> list[str]:
    """What a reader must know before the chapter: it is stale, or from another environment. Empty when neither."""
    record = records.read(name, request.study)
    found = []
    if reasons := standing.why_stale(record):
        found.append(f"The numbers here were recorded before something changed: {standing.in_short(reasons)}.")
    if reasons := records.other_environment(record):
        found.append("The numbers here come from another environment: " + "; ".join(reasons) + ".")
    return found


def _row(name: str, request: Request) -> str:
    record = records.read(name, request.study)
    state, _ = records.end_state(record)
    if state == records.FINISHED and stamps(name, request):
        state += ", stale"
    cells = [
        f"[{name}]({name})",
        state,
        str(record.get("ended", ""))[:10],
        f"{record['seconds']:,.0f}" if "seconds" in record else "",
        ", ".join(map(str, record.get("seeds", []))),
        record.get("environment", {}).get("revision", ""),
    ]
    return f"| {' | '.join(cells)} |"


def _pairs(values: Mapping[str, object]) -> str:
    return as_text(", ".join(f"{name} = {value}" for name, value in values.items() if value is not None))


def _named(corpus: str) -> str:
    """A corpus of a record; "planted train, 2,000 rows, 2eb0" is one of several draws, here without its size."""
    parts = corpus.split(", ")
    return f"{parts[0]} (draw {parts[2]})" if len(parts) == 3 and parts[1].endswith(" rows") else corpus


def used(record: Mapping) -> list[str]:
    """What a chapter's run used, one sentence each: its parameters, the dial, what it read, what changed since."""
    corpora = {_named(name): f"{entry['rows']:,} rows" for name, entry in record.get("corpora", {}).items()}
    given = {
        name: None if value == "" else value for name, value in record.get("parameters", {}).items() if name != "SCALE"
    }
    machine = {"device": record.get("device")} | {name: record.get("environment", {}).get(name) for name in MACHINE}
    said = {"Parameters": given, "From the dial": record.get("dial", {}), "Read": corpora, "Machine": machine}
    lines = [f"{what}: {words}." for what, values in said.items() if (words := _pairs(values))]
    entries = record.get("confirmed", [])
    # older entries name modules
    if changed := sorted({name for each in entries for name in each.get("definitions", each.get("modules", []))}):
        revision = record.get("environment", {}).get("revision", "unknown")
        count = "1 name has" if len(changed) == 1 else f"{len(changed)} names have"
        note = f"Recorded at revision {revision}; {count} changed since in the code, and the smoke tables are equal."
        names = f"<details><summary>Names that changed since</summary>{', '.join(changed)}</details>"
        lines += [as_text(note), names]
    return lines


def status_page(names: Collection[str], request: Request) -> str:
    """Every chapter's end state, date, time, seeds, device and revision, and what it used, as Markdown."""
    rule = f"|{' --- |' * len(HEAD)}"
    table = "\n".join([f"| {' | '.join(HEAD)} |", rule, *(_row(name, request) for name in names)])
    label = f"\n{SMOKE_LABEL.capitalize()}.\n" if request.scale == "smoke" else ""
    known = {name: used(records.read(name, request.study)) for name in names}
    lists = [f"{name}\n: " + "\n: ".join(lines) for name, lines in known.items() if lines]
    return (
        f"# Status of this report\n{label}\n"
        f"Study {as_text(request.study)}. Each chapter is drawn from the tables that its run recorded. A run counts as "
        "finished only when its last cell wrote its record and every cell was counted; *stale* says that something "
        "which it rests on has changed since. Seconds are those of its last "
        "run; trainings that it found in the store took theirs before.\n\n"
        f"{table}\n\n## What each chapter used\n\n" + "\n\n".join(lists) + "\n"
    )
