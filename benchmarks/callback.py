"""What recording costs: Hugging Face's Trainer with `RecordLogits` against the same training without it, in one run.

    python benchmarks/callback.py [--rows 1500] [--rounds 5] [--model minilm]

Rounds alternate which comes first. The ratio is that of the medians of processor time, so that other work on the
machine does not count. `capture="eval"`, a pass after the epoch, is shown beside it.
"""

import argparse
import time

import pandas as pd
import torch
from datasets import Dataset
from transformers import (
    AutoModelForSequenceClassification,
    AutoTokenizer,
    DataCollatorWithPadding,
    Trainer,
    TrainingArguments,
)

from nli_lib.corpora.planted import make_split
from nli_lib.learn.text import resolve_model
from nli_tools import RecordLogits

WAYS = ("without", "train", "eval")


def seconds(way, model, tokenizer, dataset):
    """Processor seconds of one epoch of training."""
    torch.manual_seed(0)
    callbacks = [] if way == "without" else [RecordLogits(dataset, "uid", capture=way)]
    arguments = TrainingArguments(
        output_dir="unused", num_train_epochs=1, per_device_train_batch_size=32, per_device_eval_batch_size=32,
        report_to="none", save_strategy="no", logging_strategy="no", use_cpu=True, disable_tqdm=True,
    )  # fmt: skip
    network = AutoModelForSequenceClassification.from_pretrained(model, num_labels=3)
    collate = DataCollatorWithPadding(tokenizer)
    trainer = Trainer(model=network, args=arguments, train_dataset=dataset, data_collator=collate, callbacks=callbacks)
    started = time.process_time()
    trainer.train()
    return time.process_time() - started


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--rows", type=int, default=1_500)
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--ways", nargs="*", choices=WAYS[1:], default=WAYS[1:])
    arguments.add_argument("--model", default="minilm")
    given = arguments.parse_args()
    model = resolve_model(given.model)
    tokenizer = AutoTokenizer.from_pretrained(model)
    table = make_split("train", given.rows).table[["uid", "premise", "hypothesis", "label"]]
    dataset = Dataset.from_pandas(table, preserve_index=False)
    dataset = dataset.map(lambda rows: tokenizer(rows["premise"], rows["hypothesis"]), batched=True)
    seconds("without", model, tokenizer, dataset)  # caches are warm from here on
    rows, ways = [], ("without", *given.ways)
    for number in range(given.rounds):
        for way in ways if number % 2 else reversed(ways):
            rows.append({"round": number, "way": way, "seconds": seconds(way, model, tokenizer, dataset)})
            print(rows[-1], flush=True)
    table = pd.DataFrame(rows).pivot(index="round", columns="way", values="seconds")[list(ways)]
    ratio = table.div(table["without"], axis=0)
    print(f"\n{given.rows:,} rows, {torch.get_num_threads()} thread(s), processor seconds an epoch\n{table.round(2)}")
    print(f"\nmedian: {table.median().round(2).to_dict()}")
    for way in given.ways:
        whole = table[way].median() / table["without"].median()
        print(
            f"{way}: {whole - 1:+.1%} by medians; by round {ratio[way].min() - 1:+.1%} to {ratio[way].max() - 1:+.1%}"
        )


if __name__ == "__main__":
    main()
