# The study as a Snakemake workflow: `snakemake --cores 2` runs what is missing or stale, two notebooks at a time; with
# an executor plugin (slurm, kubernetes, ...) the same file runs on a cluster. Order and dependence come from
# notebooks/order.yaml; whether a notebook still stands is asked of the same records as in `nli-study status`.
#
#     snakemake --cores 2 --config scale=small corpus=snli

import sys
from pathlib import Path

from nli_lib.study.manifest import study_name
from nli_lib.study.schedule import Request, order, stale

SCALE = config.get("scale", "smoke")
CORPUS = config.get("corpus")
STUDY = study_name(SCALE, CORPUS)
DIAL = f"--scale {SCALE}" + (f" --corpus {CORPUS}" if CORPUS else "")
ORDER = order()


def done(name):
    return f"data/runs/snakemake/{STUDY}/{name}.done"


for name in ORDER:
    if stale(name, Request(scale=SCALE, corpus=CORPUS)):
        Path(done(name)).unlink(missing_ok=True)


rule all:
    input:
        [done(name) for name in ORDER],
    shell:
        f"{sys.executable} -m nli_lib book {DIAL}"


for name, after in ORDER.items():

    rule:
        name:
            f"notebook_{name}"
        input:
            f"notebooks/{name}.ipynb",
            [done(other) for other in after],
        output:
            touch(done(name)),
        params:
            command=f"{sys.executable} -m nli_lib run {name} {DIAL}",
        resources:
            mem_mb=4000,
        shell:
            "{params.command}"
