"""The curves that `nli-study audit` shows beside a corpus: SNLI, MultiNLI and WANLI over the number of pairs.

    NLI_DATA=... python benchmarks/audit_curves.py       # writes nli_lib/report/audit_curves.csv, in about ten minutes

Read are the official development and test sets of SNLI (19,666 pairs) and the two development sets of MultiNLI
(19,647), whole, and a sample of 15,001 pairs of WANLI's training set that was balanced over the labels by those who
drew it. For each size whole premises are drawn at random, ten times up to 1,500 pairs, five times up to 6,000 and
three times beyond (of two classes four, three and two times); the table holds mean, smallest and largest. Where a size
comes near that of the whole set the draws are nearly the same pairs, and their range says less than another sample of
the corpus would. The table holds numbers only, no text.
"""

import sys

import pandas as pd

from nli_lib.corpora import load
from nli_lib.store import atomic
from nli_tools.audit import FILE, POOLS, make_curves


def main() -> None:
    pools = {name: [load(name, split) for split in splits] for name, splits in POOLS.items()}
    tables = []
    for table in make_curves(pools):
        tables.append(table)
        print(table["corpus"].iloc[0], table["classes"].iloc[0], len(table), file=sys.stderr, flush=True)
    numbers = pd.concat(tables, ignore_index=True)
    with atomic(FILE) as draft:
        numbers.to_csv(draft, index=False, float_format="%.5g", lineterminator="\n")
    print(f"{FILE}: {len(numbers):,} rows")


if __name__ == "__main__":
    main()
