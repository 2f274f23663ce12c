"""The trainings of chapter 61, each of which can be a job of its own: the notebook, two jobs at a time, a cluster and
another machine make the same parts, and none of them twice.

    plan = Plan.of(study)                       # in the notebook, whose record then names what was read
    wanted = plan.parts(tests)                  # name -> part: one training and which test pairs it gets right
    table = table_of(study.parts(wanted))       # one row each
    right = right_of(table, tests)              # as `compare` reads it
    jobs("small")                               # name -> names of the jobs that it waits for; needs the dial alone
    python -m nli_lib.study.budgets small --job train-0-z-filter        # what the Snakefile calls

A part is decided by the very rows that are trained on. Where they are chosen by the scores of a trained model, it is
decided by what that model is trained on and how, and by what the same choice makes of made-up scores (`probe`): the
scores need not be there, and code that chooses other rows makes other parts. Where pairs are added that another chapter
wrote, it is decided by the digest under which that chapter's record has them: they need not be there either.

Columns of the table
    seed, arm, which (`ARM` or `TWIN`), reason (why an arm could not be made; the rest is then missing)
    rows, updates, different, added, labels    as in `select.arms.TrainingSet`
    one column a class                         rows of that label
    pool                                       pairs of a source of our own that there were to add
    corpora                                    names of the corpora in the set, joined by ";"
    training seconds, scoring seconds          of the training, and of the models that score the candidates for it
    device                                     what it was trained on
    right: <title>                             which pairs of a test set it gets right, one bit a pair

When each claim was declared and when its statistic was first recorded, as the project's git history has it.
"""

import functools
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import pandas as pd
import typer
from numpy.typing import NDArray

from nli_lib import paths
from nli_lib.claims import Claim, Region, read_yaml
from nli_lib.corpora import sources
from nli_lib.corpora.corpus import Corpus, CorpusError, check_enough, concat, overlap
from nli_lib.corpora.counterfactuals import Counterfactuals, join, load_pairs
from nli_lib.corpora.sources import SOURCES
from nli_lib.corpora.suites import KINDS, dictionaries, load_each, stress, without_folder
from nli_lib.errors import UserError
from nli_lib.select.arms import (
    ARM,
    ARMS,
    BY_NAME,
    BY_PEOPLE,
    CLASSIFY,
    GENERATED,
    PRODUCT,
    Pool,
    Sets,
    TrainingSet,
    added_pairs,
    candidates_of,
    choices,
    training_sets,
    updates,
)
from nli_lib.select.selection import TWIN, augmentation, folds, sample
from nli_lib.spec import RunSpec
from nli_lib.study import record as records
from nli_lib.study.dial import form_of, is_own_file, read_scale, run_spec
from nli_lib.study.parts import Part, decided, file_of, gather, packed, unpacked

if TYPE_CHECKING:
    from nli_lib.learn.fit import Objective, Run
    from nli_lib.study.notebook import Study


DECLARED, RECORDED = "book/claims.yaml", "data/results/small/*.claims.csv"
COLUMNS = ["id", "declared_in", "declared_on", "recorded_in", "recorded_on", "confirmed_then"]
# ids began with the paper's number before they began with its name
NUMBERS = {"000": "wanli", "001": "zfilter", "002": "consensus", "003": "disco", "004": "difficulty"}


def _git(home: Path, *words: str) -> str:
    """What git says about the folder; "" where there is no git, no history, or only a part of it."""
    try:
        return subprocess.run(["git", "-C", str(home), *words], capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return ""


def _named(id: str) -> str:
    number, _, rest = id.partition("-")
    return f"{NUMBERS.get(number, number)}-{rest}"


def _added(home: Path, files: str, line: str) -> Iterator[tuple[str, str, str]]:
    """(id, commit, time) of each line that a commit added to `files` and `line` matches, the oldest commit first."""
    shown = ["--reverse", "--date-order", "--format=%x00%h %cI", "--patch", "--no-renames", "--unified=0"]
    for commit in _git(home, "log", *shown, "--", files).split("\0")[1:]:
        head, _, patch = commit.partition("\n")
        yield from ((_named(id), *head.split()) for id in re.findall(line, patch, re.MULTILINE))


def declarations(home: Path | None = None) -> pd.DataFrame:
    """One row a claim of the history, `COLUMNS`: the commits of its declaration and of its first record at small.

    `confirmed_then` is the region that would have confirmed it in that first record. Ends are None where there is none
    yet; the table is empty without git or with a shallow history.
    """
    home = home or paths.HOME
    if _git(home, "rev-parse", "--is-shallow-repository").strip() != "false":
        return pd.DataFrame(columns=COLUMNS)
    first = {}
    for kind, files, line in (
        ("declared", DECLARED, r"^\+- id: (\S+)"),
        ("recorded", RECORDED, r"^\+(\d*[a-z]*-[\w.-]+),"),
    ):
        for id, commit, time in _added(home, files, line):
            first.setdefault(id, {}).setdefault(kind, (commit, time))
    commits = {found["recorded"][0] for found in first.values() if "recorded" in found}
    then = {commit: _confirmed(_git(home, "show", f"{commit}:{DECLARED}")) for commit in sorted(commits)}
    rows = []
    for id, found in first.items():
        ends = [part for kind in ("declared", "recorded") for part in found.get(kind, (None, None))]
        rows.append([id, *ends, then.get(ends[2], {}).get(id)])
    return pd.DataFrame(rows, columns=COLUMNS, dtype=object)


def _confirmed(text: str) -> dict[str, str]:
    return {_named(claim["id"]): str(Region.model_validate(claim["confirm"])) for claim in read_yaml(text) or ()}


def unfounded(claims: Sequence[Claim], history: pd.DataFrame) -> list[str]:
    """What contradicts "declared before" in the history, one sentence a claim; empty when nothing does."""
    known, found = history.set_index("id").to_dict("index"), []
    for claim in claims:
        row = known.get(claim.id, {})
        if claim.declared == "after" or not row.get("recorded_in"):
            continue
        if not row["declared_in"] or pd.Timestamp(row["declared_on"]) >= pd.Timestamp(row["recorded_on"]):
            found.append(f"{claim.id}: first recorded in {row['recorded_in']}, declared in {row['declared_in']}")
        elif row["confirmed_then"] not in (None, str(claim.confirm)):
            found.append(
                f"{claim.id}: confirmed by values {row['confirmed_then']} when it was first recorded, "
                f"by values {claim.confirm} now"
            )
    return found


# ---------------------------------------------------------------- budgets


NOTEBOOK = "61_equal_budgets"
OWN = {  # source of our own pairs -> chapter and export that holds them, and its table of what they cost
    "our WANLI": ("13_filter_by_variability", "pairs", "12_overgenerate"),
    "our DISCO": ("41_perturb_and_filter", "pairs", "41_perturb_and_filter"),
    GENERATED: ("24_three_datasets", "pool", ""),
}
IN, STRESS = "in distribution", "Stress test"
RIGHT, TWINS = "right: ", ", twin"
SCORED = ("dynamics", "levels", "cross scores")  # needs of an arm for which models are trained
PROBED = 240  # made-up pairs of `probe`
SHARE_HELD_OUT = 5  # one part in so many of a user's file is tested on


class JobError(UserError, ValueError):
    """No such job; the message names those that there are."""


class Plan:
    """What chapter 61 trains, from the dial alone.

    dial      the scale, or a notebook's view of it; base: title, corpus and split; study: the folder of its results
    spec      makes a `RunSpec` of fields; exported: (part, chapter) -> what that chapter exported, or an error
    """

    def __init__(
        self,
        dial: Any,
        base: tuple[str, str, str],
        study: str,
        *,
        spec: Callable[..., RunSpec],
        exported: Callable[[str, str], pd.DataFrame],
        data_dir: str | None = None,
        form: Mapping[str, object] | None = None,
        trainings: int | None = None,
    ):
        self.dial, self.base, self.spec, self.exported = dial.budgets, base, spec, exported
        self.threshold, self.data_dir, self.form = dial.consensus.threshold, data_dir, form or {}
        self.title, self.name, _ = base
        self.study = study
        self.extra = added_pairs(self.dial.budget, self.dial.share)
        self._trainings = trainings  # of every arm, where they are not the dial's
        self._candidates: dict[int, Corpus] = {}

    @classmethod
    def of(cls, study: "Study") -> "Plan":
        """The plan of a notebook: what is read and asked of the dial goes into its record."""
        own = study.corpus_name == study.dial.corpus
        base = study.dial.budgets.base if own else (study.title_of(), study.corpus_name, study.train_split)
        given = {"data_dir": study.data_dir, "form": form_of(study.params), "trainings": study.params["SEEDS"]}
        return cls(study.dial, tuple(base), study.results_name, spec=study.spec, exported=study.exported, **given)

    @classmethod
    def from_scale(cls, scale: str, corpus: str | None = None, data_dir: str | None = None) -> "Plan":
        """The same plan without a notebook, for a job."""
        dial, study = read_scale(scale), records.study_name(scale, corpus)
        known = corpus in (None, dial.corpus)
        title = SOURCES[corpus].title if corpus in SOURCES else Path(corpus or "").name
        base = dial.budgets.base if known else (title, corpus, "train")
        spec = functools.partial(run_spec, "wanli", dial)

        def exported(part: str, notebook: str) -> pd.DataFrame:
            return pd.read_parquet(paths.EXPORTS / study / f"{notebook}.{part}.parquet")

        return cls(dial, tuple(base), study, spec=spec, exported=exported, data_dir=data_dir)

    # ------------------------------------------------------------ sizes

    @property
    def arms(self) -> list[str]:
        return [arm.name for arm in ARMS] if self.dial.arms is None else list(self.dial.arms)

    def trainings(self, arm: str) -> int:
        """How often an arm and its twin are trained: more often where it matters most, and the base with the most."""
        if self._trainings is not None:
            return self._trainings
        matters = arm in self.dial.matter or arm == "base"
        return max(self.dial.trainings, self.dial.trainings_that_matter if matters else 0)

    def seeds_of(self, arm: str) -> range:
        return range(self.trainings(arm))

    def arms_of(self, seed: int, among: Sequence[str] | None = None) -> list[str]:
        return [arm for arm in (self.arms if among is None else among) if seed in self.seeds_of(arm)]

    # ------------------------------------------------------------ what the arms are made from

    @functools.cached_property
    def whole(self) -> Corpus:
        """The base corpus; of a user's file, what is not tested on."""
        return self._split[0]

    @functools.cached_property
    def _split(self) -> tuple[Corpus, Corpus | None]:
        own = is_own_file(self.name)
        corpus = sources.load(self.name, self.base[2], self.data_dir, None, **self.form if own else {})
        if not own:
            return corpus, None
        check_enough(corpus, SHARE_HELD_OUT, what="a part to test on")
        fold = folds(corpus.labels, groups=corpus.premise, count=SHARE_HELD_OUT)
        return corpus[fold != 0], corpus[fold == 0]

    @functools.cached_property
    def _sources(self) -> tuple[dict[str, Corpus], dict[str, Counterfactuals], dict[str, str]]:
        """What can be added, by source: pairs, and revisions with their originals; and why others are not there."""
        found, revised, absent = {}, {}, {}
        for name, places in {**self.dial.released, **self.dial.counterfactuals}.items():
            try:
                if name in self.dial.released:
                    found[name] = concat([sources.load(*place, self.data_dir) for place in places], name=places[0][0])
                else:
                    sets = [load_pairs(*place, data_dir=self.data_dir, originals=self.extra) for place in places]
                    revised[name] = join(sets, name=places[0][0])
            except CorpusError as error:
                absent[name] = without_folder(error, self.data_dir)
        for name, (chapter, part, _) in OWN.items():
            try:
                written = own_pairs(name, self.exported(part, chapter))
                # what a language model copied from the base is nothing new, and no reason to take it out of the base
                found[name] = written[~overlap(written, self.whole)["pairs"].to_numpy()]
            except (UserError, OSError):
                absent[name] = f"{chapter} has left no pairs of this study; it has to be run before"
        return found, revised, absent

    @property
    def _added(self) -> list[Corpus]:
        """Everything that can be added, whole."""
        found, revised, _ = self._sources
        return [*found.values(), *(part for each in revised.values() for part in (each.original, each.revised))]

    @property
    def missing(self) -> list[str]:
        """Sources of added pairs that are not at hand."""
        return list(self._sources[2])

    def additions(self, seed: int) -> dict[str, Corpus]:
        """What is added with a seed: pools to draw from, and so many revisions as are added, each with its original."""
        found, revised, _ = self._sources
        return {**found, **{name: _families(name, each, self.extra, seed) for name, each in revised.items()}}

    def candidates(self, seed: int) -> Corpus:
        """The pairs of the base corpus that the arms of a seed choose from."""
        if seed not in self._candidates:
            added = {str(at): each for at, each in enumerate(self._added)}
            self._candidates[seed] = candidates_of(self.whole, added, size=self.dial.candidates, seed=seed)
        return self._candidates[seed]

    def pool(self, seed: int, arms: Sequence[str]) -> Pool:
        """What the arms choose from, scored as far as they need it; trains the models that score."""
        candidates, additions = self.candidates(seed), self.additions(seed)
        wanted = {BY_NAME[arm].needs for arm in arms}
        given: dict[str, object] = {"seed": seed, "threshold": self.threshold}
        if wanted & {"dynamics", "levels"}:
            given["pair"] = self.scoring("dynamics", seed).logits
        if "levels" in wanted:
            given["hypothesis"] = self.scoring("hypothesis", seed).logits
        if "cross scores" in wanted:
            given["cross"] = self.cross(seed)
        if "generated" in wanted:
            given["generated"] = additions.get(GENERATED)
        made, why = choices(candidates, **given) if wanted - {""} else ({}, {})
        return Pool(candidates, additions, made, {**self._sources[2], **why})

    def sets(self, seed: int, arms: Sequence[str] | None = None) -> tuple[Sets, dict[str, str]]:
        """`select.arms.training_sets` of one training."""
        wanted = self.arms_of(seed, arms)
        form = {"budget": self.dial.budget, "share": self.dial.share, "arms": wanted, "seed": seed}
        return training_sets(self.pool(seed, wanted), **form)

    # ------------------------------------------------------------ trainings

    def updates(self, made: TrainingSet) -> int:
        """Updates of the weights that a training on the set makes."""
        spec = self.spec_of(made.corpus, 0)
        return updates(len(made.corpus), epochs=spec.epochs, batch_size=spec.batch_size)

    def spec_of(self, corpus: Corpus, seed: int, **fields: object) -> RunSpec:
        place = {"corpus": corpus.name, "split": corpus.split, "limit": None, "subset": corpus.digest[:12]}
        return self.spec(**{**place, "seed": seed, "epochs": self.dial.epochs, **fields})

    def scoring(self, kind: str, seed: int) -> "Run":
        """The model of the candidates, "dynamics", or of their "hypothesis" alone, whose epochs are recorded."""
        from nli_lib.learn.fit import fit

        view = "pair" if kind == "dynamics" else kind
        return fit(self.spec_of(self.candidates(seed), seed, view=view), self.candidates(seed))

    def _folds(self, seed: int) -> NDArray[np.int64]:
        candidates = self.candidates(seed)
        return folds(candidates.labels, groups=candidates.premise, count=self.dial.folds, seed=seed)

    def cross(self, seed: int) -> NDArray[np.float32]:
        """Logits (M, C) of the candidates from models that did not train on their premise."""
        from nli_lib.learn.predict import cross_score

        spec = self.spec_of(self.candidates(seed), seed, capture="train")
        return cross_score(spec, self.candidates(seed), self._folds(seed), jobs=1)

    def cross_runs(self, seed: int, which: Sequence[int] | None = None) -> list["Run"]:
        """The models of some folds, by default of all; `cross` finds them."""
        from nli_lib.learn.fit import fit
        from nli_lib.learn.predict import fold_specs

        candidates, fold = self.candidates(seed), self._folds(seed)
        spec = self.spec_of(candidates, seed, capture="train")
        wanted = range(self.dial.folds) if which is None else which
        # one at a time: in a chain the later ones would start from the model before
        specs = {at: next(fold_specs(spec, fold, [at])) for at in wanted}
        return [fit(each, candidates, fold != at) for at, each in specs.items()]

    def train(self, made: TrainingSet, seed: int) -> "Run":
        """The model of one training set."""
        from nli_lib.learn.fit import fit

        return fit(self._spec(made, seed), made.corpus, objective=self._objective(made))

    def _spec(self, made: TrainingSet, seed: int) -> RunSpec:
        objective = self._objective(made)
        learnt = {} if objective is None else {"objective": objective.name}
        return self.spec_of(made.corpus, seed, capture="train", **learnt)

    def _objective(self, made: TrainingSet) -> "Objective | None":
        """What a training on the set learns; None: to classify."""
        if made.objective == CLASSIFY:
            return None
        from nli_lib.learn.experts import ProductOfExperts

        reads = "own" if made.objective == PRODUCT else "another"
        return ProductOfExperts(self.dial.beta, self.dial.gamma, reads=reads)

    def parts(self, tests: Mapping[str, Corpus], arms: Sequence[str] | None = None) -> dict[str, Part]:
        """The trainings of every seed and of some arms, by default of all whose source is at hand: name -> part."""
        found = {}
        for seed in self.seeds_of("base"):
            possible = self._possible(seed, arms)
            by_rows = [arm for arm in possible if BY_NAME[arm].needs not in SCORED and BY_NAME[arm].source not in OWN]
            sets, absent = self.sets(seed, by_rows)
            for arm, which in ((arm, which) for arm in self.arms_of(seed, arms) for which in (ARM, TWIN)):
                if (arm in absent and which == TWIN) or arm not in [*possible, *self._recorded(seed)]:
                    continue
                name = f"{arm}{TWINS * (which == TWIN)}, training {seed}"
                decides = self._decides(seed, arm, which, sets.get((arm, which)), tests)
                part = Part(NOTEBOOK, decides, functools.partial(self._row, seed, arm, which, tests))
                if arm in possible or file_of(name, part, self.study).exists():
                    found[name] = part
        return found

    def absent(self, arms: Sequence[str] | None = None, recorded: Sequence[str] = ()) -> pd.DataFrame:
        """Arms whose source is not at hand, without those that are `recorded`: columns arm, seed, reason."""
        rows = [
            (arm, seed, self._sources[2].get(BY_NAME[arm].source, f"no pairs of {BY_NAME[arm].source} are at hand"))
            for seed in self.seeds_of("base")
            for arm in self.arms_of(seed, arms)
            if arm not in [*self._possible(seed, arms), *recorded]
        ]
        return pd.DataFrame(rows, columns=["arm", "seed", "reason"])

    def _possible(self, seed: int, arms: Sequence[str] | None) -> list[str]:
        sources = {"", *self.additions(seed)}
        return [arm for arm in self.arms_of(seed, arms) if BY_NAME[arm].source in sources]

    @functools.cached_property
    def _exports(self) -> dict[str, str]:
        """Digests of the pairs that other chapters wrote, by source, as their records have them."""
        found = {}
        for source, (chapter, part, _) in OWN.items():
            digest = records.read(chapter, self.study).get("exports", {}).get(f"{chapter}.{part}.parquet")
            found |= {} if digest is None else {source: digest}
        return found

    def _recorded(self, seed: int) -> list[str]:
        """Arms that add what another chapter wrote, at hand or not."""
        return [arm for arm in self.arms_of(seed) if BY_NAME[arm].source in self._exports]

    def _decides(
        self, seed: int, arm: str, which: str, made: TrainingSet | None, tests: Mapping[str, Corpus]
    ) -> dict[str, object]:
        tested = {title: each.digest for title, each in tests.items()}
        if made is not None:
            return decided(self._spec(made, seed), made.corpus, tested=tested)
        more = {"arm": arm, "which": which, "tested": tested, "chosen": probe().get(f"{arm}, {which}", "")}
        more |= {name: getattr(self.dial, name) for name in ("budget", "share", "folds")} | {"gap": self.threshold}
        if source := BY_NAME[arm].source:
            more["added"] = self._exports.get(source) or self.additions(seed)[source].digest
        return decided(self.spec_of(self.candidates(seed), seed), self.candidates(seed), **more)

    def _row(self, seed: int, arm: str, which: str, tests: Mapping[str, Corpus]) -> pd.DataFrame:
        sets, absent = self.sets(seed, [arm])
        if arm in absent:
            return pd.DataFrame([{"arm": arm, "which": which, "seed": seed, "reason": absent[arm]}])
        made = sets[arm, which]
        run, right = self.tested_run(made, seed, tests)
        about, scoring = run.store.read_json("about.json"), self.scoring_seconds(seed, arm)
        row = {
            "arm": arm,
            "which": which,
            "seed": seed,
            "reason": "",
            "rows": len(made.corpus),
            "updates": self.updates(made),
            "different": made.distinct,
            "added": made.added,
            "labels": made.labels,
            **made.corpus.counts,
            "corpora": ";".join(sorted(set(made.corpus.table["corpus"]))),
            "pool": len(self._sources[0][BY_NAME[arm].source]) if BY_NAME[arm].source in OWN else 0,
            "training seconds": float(about["seconds"]),
            "scoring seconds": scoring,
            "device": about["device"],
            **{RIGHT + title: packed(each) for title, each in right.items()},
        }
        table = pd.DataFrame([row])
        table.attrs = {"seconds": about["seconds"] + scoring, "device": about["device"]}
        return table

    def tested_run(
        self, made: TrainingSet, seed: int, tests: Mapping[str, Corpus]
    ) -> tuple["Run", dict[str, NDArray[np.bool_]]]:
        """The model of one training set, and by title which pairs of a test set it gets right."""
        from nli_lib.evaluate import correct_predictions
        from nli_lib.learn.predict import predict

        run = self.train(made, seed)
        logits = {title: predict(run, test) for title, test in tests.items()}
        return run, {
            title: correct_predictions(logits[title], test.labels, test.classes) for title, test in tests.items()
        }

    def scoring_seconds(self, seed: int, arm: str) -> float:
        """Machine seconds of the finished models that score the candidates for an arm."""
        needs = BY_NAME[arm].needs
        scored = [self.scoring("dynamics", seed)] if needs in ("dynamics", "levels") else []
        scored += [self.scoring("hypothesis", seed)] if needs == "levels" else []
        scored += self.cross_runs(seed) if needs == "cross scores" else []
        return float(sum(run.store.read_json("about.json")["seconds"] for run in scored))

    @property
    def own_costs(self) -> dict[str, str]:
        """Source of our own pairs -> the chapter whose table "cost" says what they took, of those that are recorded."""
        return {name: chapter for name, (*_, chapter) in OWN.items() if chapter and name in self._exports}

    # ------------------------------------------------------------ test sets

    def tests(self) -> tuple[dict[str, dict[str, Corpus]], pd.DataFrame, dict[str, str]]:
        """Test sets by group; what was taken out of them; and those that are not at hand, title -> reason.

        A pair that stands in the base corpus or in what can be added is taken out. Columns of the table: group, title,
        pairs (tested on), taken out, whole (rows of the set before a sample of it is drawn: its weight).
        """
        near = self.dial.in_distribution.get(self.name, {})
        groups = {IN: near} | {
            group: {title: place for title, place in each.items() if title not in near}
            for group, each in self.dial.groups.items()
        }
        found: dict[str, dict[str, Corpus]] = {}
        missing: dict[str, str] = {}
        for group, each in groups.items():
            found[group], lacking = load_each(each, self.data_dir)
            missing |= lacking
            found[group] |= {f"{self.title}, held out": self._split[1]} if group == IN and self._split[1] else {}
            found[group] |= self._stress() if self.dial.stress and group == self.dial.stress[0] else {}
        every = [test for each in found.values() for test in each.values()]
        if not every:
            return found, pd.DataFrame(columns=["group", "title", "pairs", "taken out", "whole"]), missing
        seen = overlap(_texts(every), _texts([self.whole, *self._added]))["pairs"].to_numpy()
        seen = iter(np.split(seen, np.cumsum([len(test) for test in every])[:-1]))
        rows, left = [], {}
        for group, each in found.items():
            left[group], room = {}, (self.dial.tested_limit or 0) // max(len(each), 1)
            for (title, test), gone in zip(each.items(), seen, strict=False):
                part = sample(test[~gone], min(room or len(test), int((~gone).sum())))
                left[group] |= {title: part} if len(part) else {}
                rows.append((group, title, len(part), int(gone.sum()), len(test)))
        return left, pd.DataFrame(rows, columns=["group", "title", "pairs", "taken out", "whole"]), missing

    @functools.cached_property
    def tested(self) -> dict[str, Corpus]:
        """The test sets of all groups by title."""
        return {title: test for each in self.tests()[0].values() for title, test in each.items()}

    def _stress(self) -> dict[str, Corpus]:
        _, name, split, size = self.dial.stress
        few, _ = load_each({STRESS: (name, split)}, self.data_dir, size)
        available, _ = dictionaries()
        wordnet = available.get("wordnet")
        made = [stress(kind, each, wordnet=wordnet) for each in few.values() for kind in KINDS
                if wordnet or kind != "antonym"]  # fmt: skip
        return {STRESS: concat(made, name=name, split="stress")} if made else {}


def own_pairs(name: str, table: pd.DataFrame) -> Corpus:
    """Pairs that the study wrote itself, as a corpus: what the chapter's own filter kept, with the labels asked for."""
    if name == GENERATED:  # what the teacher is sure of; the seed of the generator is the first
        first = table["seed"] == table["seed"].min()
        kept = table[first & (table["source"] == GENERATED) & table["D0 + G*"]]
    else:
        kept = table[table["kept"].astype(bool)]
    columns = kept[["uid", "premise", "hypothesis", "label"]].astype({"label": int})
    columns = columns.drop_duplicates(["premise", "hypothesis"]).assign(corpus=name, split="train")
    return Corpus(columns.assign(uid=[f"{name}-{at}" for at in range(len(columns))]), name, "train")


def _families(name: str, pairs: Counterfactuals, size: int, seed: int) -> Corpus:
    """So many different rows of random originals and their revisions, fewer where there are fewer; the table says which
    are originals, whose label people gave, where it was not people who revised them."""
    there = len(np.unique(pairs.origin)) + len(pairs)
    made = augmentation(pairs, there, seed=seed)
    made = made[~made.table.duplicated(["premise", "hypothesis"]).to_numpy()][:size]
    if any(arm.people for arm in ARMS if arm.source == name):
        return made
    keys, known = (pd.MultiIndex.from_frame(each.table[["premise", "hypothesis"]]) for each in (made, pairs.original))
    return Corpus(made.table.assign(**{BY_PEOPLE: keys.isin(known)}), made.name, made.split, made.classes)


def _texts(corpora: Sequence[Corpus]) -> Corpus:
    """The texts of corpora of any classes as one corpus, to look for the same pairs in another."""
    table = pd.concat([each.table[["premise", "hypothesis"]] for each in corpora], ignore_index=True)
    return Corpus(table.assign(uid=table.index.astype(str), label=0, corpus="", split=""), "texts", "")


@functools.cache
def probe() -> dict[str, str]:
    """Digests by "<arm>, <which>" of the rows that the arms which need scores take of made-up pairs and scores."""
    at = np.arange(PROBED)
    label, kind = at % 3, at // 3 % 3  # kinds: learnt from the hypothesis alone, learnt in the end, never learnt
    texts = {side: [f"{side} {each}" for each in at] for side in ("premise", "hypothesis")}
    rows = {"uid": at.astype(str), **texts, "label": label, "corpus": "made up", "split": "train"}
    pairs = Corpus(pd.DataFrame(rows), "made up", "train")
    gold, other = np.eye(3)[label], np.eye(3)[(label + 1) % 3]
    small = 0.1 * np.random.default_rng(0).permutation(PROBED)[:, None] / PROBED
    early, late = ((3 + small) * each for each in (gold, other))
    curves = [np.choose(kind[:, None], [early, late if epoch < 2 else early, late]) for epoch in range(5)]
    alone = np.where((kind == 0)[:, None], early, late)
    made, absent = choices(pairs, pair=np.stack(curves), hypothesis=np.stack([alone] * 4), cross=curves[-1])
    arms = [arm.name for arm in ARMS if arm.needs in SCORED]
    sets, _ = training_sets(Pool(pairs, choices=made, absent=absent), budget=PROBED // 3, arms=arms)
    return {f"{arm}, {which}": each.corpus.digest[:12] for (arm, which), each in sets.items()}


# ---------------------------------------------------------------- what is read off the parts


def table_of(tables: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """The rows of all parts; the columns stand in the docstring of the module. Equal trainings are one part (the twin
    of what adds other candidates is the base), so that the names of the arms are those that are asked for."""
    named = [name.rsplit(", training ", 1)[0] for name in tables]
    table = pd.concat(tables.values(), ignore_index=True)
    arms = [name.removesuffix(TWINS) for name in named]
    which = [TWIN if name.endswith(TWINS) else ARM for name in named]
    return table.assign(arm=arms, which=which, seed=table["seed"].astype(int))


def right_of(table: pd.DataFrame, tests: Mapping[str, Corpus]) -> dict[tuple[str, str], dict[str, NDArray[np.bool_]]]:
    """(arm, which) -> title of a test set -> (S, N) bool, as `compare` reads it. An arm that could not be made
    with every seed has the trainings with which it was."""
    return {
        key: {title: np.stack([unpacked(bits, len(test)) for bits in part[RIGHT + title]])
              for title, test in tests.items()}
        for key, part in table[table["reason"] == ""].groupby(["arm", "which"], sort=False)
    }  # fmt: skip


def costs(table: pd.DataFrame, written: Mapping[str, Mapping[str, float]]) -> pd.DataFrame:
    """What an arm costs, mean over its trainings.

    written  source -> the row of its chapter's table "cost"; each pair that is left counts with those thrown away
    Columns: arm, machine seconds (its training, the models that score its candidates, the writing of what it adds),
    tokens (of a language model), human labels.
    """
    arms = table[(table["reason"] == "") & (table["which"] == ARM)]
    nothing = dict.fromkeys(("prompt_tokens", "completion_tokens", "seconds"), 0.0)
    spent = pd.DataFrame([written.get(BY_NAME[arm].source, nothing) for arm in arms["arm"]], index=arms.index)
    share = arms["added"] / arms["pool"].clip(lower=1)
    tokens, seconds = share * (spent["prompt_tokens"] + spent["completion_tokens"]), share * spent["seconds"]
    found = arms[["arm"]].assign(
        **{"machine seconds": arms["training seconds"] + arms["scoring seconds"] + seconds},
        tokens=tokens,
        **{"human labels": arms["labels"]},
    )
    return found.groupby("arm", sort=False).mean().reset_index()


# ---------------------------------------------------------------- jobs


def jobs(scale: str) -> dict[str, list[str]]:
    """Every training of the chapter at a scale by the name of its job, and the jobs that it waits for.

    "score-<seed>-dynamics", "score-<seed>-hypothesis", "score-<seed>-fold-<k>", "train-<seed>-<arm>" and, of its twin,
    "train-<seed>-<arm>-twin". Which arms the corpora allow is found out by the job itself, which then says so and ends.
    """
    return _jobs(Plan.from_scale(scale))


def _jobs(plan: Plan) -> dict[str, list[str]]:
    waits: dict[str, list[str]] = {}
    for seed in range(max(map(plan.trainings, plan.arms), default=0)):
        for arm in plan.arms_of(seed):
            needs = BY_NAME[arm].needs
            before = [f"score-{seed}-dynamics"] if needs in ("dynamics", "levels") else []
            before += [f"score-{seed}-hypothesis"] if needs == "levels" else []
            before += [f"score-{seed}-fold-{k}" for k in range(plan.dial.folds)] if needs == "cross scores" else []
            waits |= {name: [] for name in before}
            # the twin of what adds other candidates is the base
            ends = ("",) if arm == "random more" and "base" in plan.arms else ("", "-twin")
            waits |= {f"train-{seed}-{_slug(arm)}{end}": before for end in ends}
    return waits


def run_job(plan: Plan, name: str) -> str:
    """Do one job of `jobs` and say in a line what came of it; a trained arm's predictions for the test sets are part of
    its job. Raises `JobError` for a name that is none of them."""
    if name not in _jobs(plan):
        raise JobError(f'there is no job "{name}": without --job, all are listed.')
    kind, seed, what = name.split("-", 2)
    if kind == "score" and what.startswith("fold-"):
        return plan.cross_runs(int(seed), [int(what.removeprefix("fold-"))])[0].spec.id
    if kind == "score":
        return plan.scoring(what, int(seed)).spec.id
    arms = {_slug(arm): arm for arm in plan.arms}
    arm = arms[what.removesuffix("-twin")]
    lacking = plan.absent([arm]).set_index("seed")["reason"]
    if int(seed) in lacking.index:
        return f"nothing to train: {lacking[int(seed)]}"
    part = f"{arm}{'' if what in arms else TWINS}, training {seed}"
    made = gather({part: plan.parts(plan.tested, [arm])[part]}, plan.study)[part]
    return f"nothing to train: {made['reason'][0]}" if made["reason"][0] else f"{made['training seconds'][0]:.0f} s"


def _slug(arm: str) -> str:
    return arm.lower().replace(" ", "-")


def main(
    scale: Annotated[str, typer.Argument(help="smoke, small or full")],
    corpus: Annotated[str | None, typer.Option(help="another corpus, by name or path")] = None,
    data_dir: Annotated[str | None, typer.Option(help="folder of corpora")] = None,
    job: Annotated[str | None, typer.Option(help="the training to do")] = None,
) -> None:
    """One training of chapter 61, or the list of all."""
    if job is None:
        print("\n".join(jobs(scale)))
        return
    try:
        print(f"{job}: {run_job(Plan.from_scale(scale, corpus, data_dir), job)}")
    except UserError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    typer.run(main)
