# The study as a Snakemake workflow: `snakemake --cores 2` runs what is missing or stale, two notebooks at a time; with
# an executor plugin (slurm, kubernetes, ...) the same file runs on a cluster. Order and staleness are those of
# `nli-study run` (nli_lib.study.schedule): a file says since when and why a notebook has to run.
#
#     snakemake --cores 2 --config scale=small corpus=snli

import sys

from nli_lib.study.schedule import Request, order, write_reasons

REQUEST = Request(scale=config.get("scale", "smoke"), corpus=config.get("corpus"))
DIAL = f"--scale {REQUEST.scale}" + (f" --corpus {REQUEST.corpus}" if REQUEST.corpus else "")
ORDER = order()


def done(name):
    return f"data/runs/snakemake/{REQUEST.study}/{name}.done"


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
            write_reasons(name, REQUEST),
            [done(other) for other in after],
        output:
            touch(done(name)),
        params:
            command=f"{sys.executable} -m nli_lib run {name} {DIAL}",
        resources:
            mem_mb=4000,
        shell:
            "{params.command}"
