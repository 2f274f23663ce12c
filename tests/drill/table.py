"""What the drill has tried and how it ended, as one table."""

from dataclasses import dataclass, field


@dataclass
class Row:
    """One line: how often it was tried, how often it ended well, how many finished pieces were lost, and the faults."""

    what: str
    tried: int = 0
    well: int = 0
    lost: int = 0
    faults: list[str] = field(default_factory=list)

    def add(self, faults: list[str], *, tried: int = 1, lost: int = 0) -> None:
        """So many tries that ended together: well, where there are no faults and nothing was lost."""
        self.tried += tried
        self.lost += lost
        self.faults += faults
        print(
            *(f"FAULT: {each}" for each in faults), *([f"LOST: {lost}"] if lost else []), sep="\n", end="", flush=True
        )
        self.well += 0 if faults or lost else tried

    def check(self) -> None:
        """The assertion at the end of a test."""
        assert self.tried and self.well == self.tried and not self.lost, "\n".join(self.faults) or f"{self}"


ROWS: list[Row] = []


def row(what: str) -> Row:
    """A new line of the table."""
    ROWS.append(Row(what))
    return ROWS[-1]


def lines() -> list[str]:
    """The table, and below it what went wrong."""
    width = max(len(each.what) for each in ROWS)
    told = [f"{'what':{width}}  tried  ended well  lost"]
    told += [f"{each.what:{width}}  {each.tried:5}  {each.well:10}  {each.lost:4}" for each in ROWS]
    return told + [f"{each.what}: {fault}" for each in ROWS for fault in each.faults]
