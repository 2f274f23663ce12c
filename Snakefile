# The study as a Snakemake workflow: `snakemake --cores 2` runs what is missing or stale, two notebooks at a time; with
# an executor plugin (slurm, kubernetes, ...) the same file runs on a cluster. Order and staleness are those of
# `nli-study run` (nli_lib.study.runner): a file says since when and why a notebook has to run.
#
#     snakemake --cores 2 --config scale=small corpus=snli
#
# The trainings of chapter 61 are jobs of their own, each a run that the chapter then finds in the store. On a cluster
# the folder of the project is shared, and `nli_lib.study.budgets` in a job trains what is missing:
#
#     pip install -e '.[cluster]' -c constraints.txt
#     snakemake notebook_61_equal_budgets --executor slurm --jobs 50 --config scale=small

import shlex
import sys

from nli_lib.study.budgets import NOTEBOOK, Plan
from nli_lib.study.runner import Request, choose, order, write_reasons

ASKED = {name: str(value) for name, value in config.items() if name in ("scale", "corpus") and value is not None}
REQUEST = Request(**ASKED)
CORPUS = ["--corpus", REQUEST.corpus] if REQUEST.corpus else []
NAMES = choose([], REQUEST.scale)
ORDER = {name: [other for other in after if other in NAMES] for name, after in order().items() if name in NAMES}
TRAININGS = Plan.from_scale(REQUEST.scale).waits() if NOTEBOOK in ORDER else {}  # job -> those that it waits for


def done(name):
    return f"data/runs/snakemake/{REQUEST.study}/{name}.done"


def command(*words):
    """The shell's command of a rule, as a function: Snakemake would look for wildcards in a text of params."""
    text = shlex.join([sys.executable, "-m", *words, *CORPUS])
    return lambda wildcards: text


rule all:
    input:
        [done(name) for name in ORDER],
    params:
        command=command("nli_lib", "book", "--scale", REQUEST.scale),
    shell:
        "{params.command}"


for name, after in ORDER.items():

    rule:
        name:
            f"notebook_{name}"
        input:
            write_reasons(name, REQUEST),
            [done(other) for other in after],
            [done(job) for job in TRAININGS if name == NOTEBOOK],
        output:
            touch(done(name)),
        params:
            command=command("nli_lib", "run", name, "--scale", REQUEST.scale),
        resources:
            mem_mb=4000,
        shell:
            "{params.command}"


for job, before in TRAININGS.items():

    rule:
        name:
            f"training_{job.replace('-', '_')}"
        input:
            write_reasons(NOTEBOOK, REQUEST),
            [done(other) for other in [*ORDER[NOTEBOOK], *before]],
        output:
            touch(done(job)),
        params:
            command=command("nli_lib.study.budgets", REQUEST.scale, "--job", job),
        threads: 1
        resources:
            mem_mb=4000,
            runtime=120,
        shell:
            "{params.command}"
