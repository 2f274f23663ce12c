"""A Trainer's logits, row by row and epoch by epoch. Run alone: pytest tests/learn/test_recorder.py"""

import multiprocessing
import pickle
import socket

import numpy as np
import pandas as pd
import pytest
import recorder_worker
import torch
import transformers
from datasets import Dataset
from recorder_worker import StopAt
from tiny_words import make_corpus
from torch.utils.data import DataLoader, IterableDataset
from transformers import DataCollatorWithPadding, Trainer

from nli_lib.errors import TrainingError
from nli_lib.learn.recorder import FILE, Numbered, RecordLogits
from nli_lib.measure import dynamics

ROWS, BATCH, EPOCHS, RATE = 22, 8, 3, 1e-3  # the last batch of an epoch holds 6


@pytest.fixture(scope="module")
def tokenizer(encoder):
    return transformers.AutoTokenizer.from_pretrained(encoder)


@pytest.fixture(scope="module")
def dataset(tokenizer):
    """22 rows with their texts and a name each, and what the model reads."""
    table = make_corpus(50)[np.arange(ROWS)].table[["uid", "premise", "hypothesis", "label"]]
    read = Dataset.from_pandas(table, preserve_index=False)
    return read.map(lambda rows: tokenizer(rows["premise"], rows["hypothesis"]), batched=True)


@pytest.fixture(scope="module")
def start(encoder):
    def make():
        torch.manual_seed(3)
        return transformers.AutoModelForSequenceClassification.from_pretrained(encoder, num_labels=3)

    return make


@pytest.fixture(scope="module")
def trainer(dataset, tokenizer, start, tmp_path_factory):
    """A Trainer of these rows with some callbacks, made and not begun."""

    def make(*callbacks, kind=Trainer, rows=dataset, model=None, collate=None, folder=None, **changes):
        known = {"num_train_epochs": EPOCHS, "per_device_train_batch_size": BATCH, "learning_rate": RATE, "seed": 5}
        known |= {"report_to": "none", "save_strategy": "no", "use_cpu": True, "disable_tqdm": True, **changes}
        arguments = transformers.TrainingArguments(output_dir=str(folder or tmp_path_factory.mktemp("out")), **known)
        given = {"data_collator": collate or DataCollatorWithPadding(tokenizer), "callbacks": list(callbacks)}
        return kind(model=model or start(), args=arguments, train_dataset=rows, eval_dataset=rows, **given)

    return make


@pytest.fixture(scope="module")
def whole(trainer, dataset):
    """For each capture the recorder and the Trainer of one training."""
    made = {}
    for capture in ("train", "eval"):
        recorder = RecordLogits(dataset, "uid", capture=capture)
        made[capture] = recorder, trainer(recorder)
        made[capture][1].train()
    return made


def plain_loop(model, dataset, tokenizer, seed):
    """The definition: shuffle, pad, forward, keep the logits, step. (E, N, C) and the model."""
    transformers.set_seed(seed)
    steps = -(-len(dataset) // BATCH) * EPOCHS
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0.0, fused=True)
    linear = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: max(0.0, (steps - step) / steps))
    logits = np.full((EPOCHS, len(dataset), 3), np.nan, np.float32)
    inputs = dataset.select_columns(["input_ids", "token_type_ids", "attention_mask", "label"])
    model.train()
    for epoch in range(EPOCHS):
        order = torch.randperm(len(dataset), generator=torch.Generator().manual_seed(seed + epoch)).tolist()
        batches = [order[at : at + BATCH] for at in range(0, len(order), BATCH)]
        loader = DataLoader(inputs, batch_sampler=batches, collate_fn=DataCollatorWithPadding(tokenizer))
        for rows, batch in zip(batches, loader, strict=True):
            output = model(**batch)
            logits[epoch, rows] = output.logits.detach().numpy()
            output.loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            linear.step()
            model.zero_grad()
    return logits, model


def test_equal_to_a_plain_loop_bit_for_bit(whole, dataset, start, tokenizer):
    recorder, trained = whole["train"]
    logits, model = plain_loop(start(), dataset, tokenizer, seed=5)
    np.testing.assert_array_equal(recorder.logits, logits)
    assert recorder.logits.dtype == np.float32
    assert recorder.uid.tolist() == dataset["uid"] and recorder.labels.tolist() == dataset["label"]
    torch.testing.assert_close(trained.model.state_dict(), model.state_dict(), rtol=0, atol=0)


def test_the_training_is_the_same_without_it_and_every_measure_reads_it(whole, trainer):
    without = trainer()
    without.train()
    for recorder, trained in whole.values():
        torch.testing.assert_close(trained.model.state_dict(), without.model.state_dict(), rtol=0, atol=0)
        scores = pd.DataFrame(dynamics.scores(recorder.logits, recorder.labels))
        assert len(scores) == ROWS and scores.notna().all(axis=None)


class KeepLogits(Trainer):
    """The slow twin: what the loss was computed from, with the name of each row in the batch."""

    def compute_loss(self, model, inputs, return_outputs=False, **kwargs):
        rows = inputs.pop("row").tolist()
        loss, output = super().compute_loss(model, inputs, return_outputs=True, **kwargs)
        if model.training:
            self.kept.extend(zip(rows, output.logits.detach().numpy().copy(), strict=True))
        return (loss, output) if return_outputs else loss


@pytest.mark.parametrize("changes", [
    {"gradient_accumulation_steps": 2},
    {"train_sampling_strategy": "group_by_length"},
    {"dataloader_num_workers": 2},
    {"eval_strategy": "epoch", "gradient_accumulation_steps": 3},
    {"bf16": True}], ids=str)  # fmt: skip
def test_equal_to_what_the_loss_was_computed_from(dataset, trainer, changes):
    numbered = dataset.add_column("row", list(range(ROWS))).remove_columns(["uid", "premise", "hypothesis"])
    recorder = RecordLogits(dataset, "uid")
    twin = trainer(recorder, kind=KeepLogits, rows=numbered, remove_unused_columns=False, **changes)
    twin.kept = []
    twin.train()
    rows, logits = (np.stack(each).reshape(EPOCHS, ROWS, -1) for each in zip(*twin.kept, strict=True))
    expected = np.empty_like(recorder.logits)
    np.put_along_axis(expected, rows, logits, axis=1)
    np.testing.assert_array_equal(recorder.logits, expected)


def test_the_evaluation_pass_shows_the_model_after_each_epoch(whole, dataset):
    recorder, trained = whole["eval"]
    logits = trained.predict(dataset).predictions
    np.testing.assert_allclose(recorder.logits[-1], logits, rtol=0, atol=1e-6)  # batches are padded otherwise
    assert np.abs(recorder.logits[0] - logits).max() > 1e-3


# 3 and 6 are the last steps of an epoch
@pytest.mark.parametrize(("capture", "step"), [("train", 1), ("train", 3), ("train", 5), ("eval", 4), ("eval", 6)])
def test_a_resumed_training_has_every_row_of_every_epoch(dataset, trainer, whole, tmp_path, step, capture):
    with pytest.raises(KeyboardInterrupt):
        trainer(RecordLogits(dataset, "uid", capture=capture), StopAt(step), folder=tmp_path).train()
    resumed = RecordLogits(dataset, "uid", capture=capture)
    trainer(resumed, folder=tmp_path).train(resume_from_checkpoint=True)
    np.testing.assert_array_equal(resumed.logits, whole[capture][0].logits)


def test_a_checkpoint_each_epoch_and_one_without_logits(dataset, trainer, whole, tmp_path):
    given = {"folder": tmp_path, "save_strategy": "epoch"}
    trainer(RecordLogits(dataset, "uid"), **given).train()
    resumed = RecordLogits(dataset, "uid")
    trainer(resumed, **given).train(resume_from_checkpoint=str(tmp_path / "checkpoint-3"))
    np.testing.assert_array_equal(resumed.logits, whole["train"][0].logits)
    (tmp_path / "checkpoint-9" / FILE).unlink()
    with pytest.raises(TrainingError, match="checkpoint-9.*is missing.*earlier checkpoint"):
        trainer(RecordLogits(dataset, "uid"), **given).train(resume_from_checkpoint=True)


def test_a_training_again_starts_from_nothing(dataset, trainer):
    recorder = RecordLogits(dataset, "uid")
    trained = trainer(recorder)
    trained.train()
    first = recorder.logits
    trained.train()
    assert recorder.logits.shape == first.shape and not np.array_equal(recorder.logits, first)


def test_repeated_rows_are_one_row(dataset, trainer):
    again = dataset.select([*range(ROWS), 3, 4, 3])
    recorder = RecordLogits(again, "uid")
    trainer(recorder, rows=again).train()
    assert recorder.logits.shape == (EPOCHS, ROWS, 3) and recorder.uid.tolist() == dataset["uid"]
    assert np.isfinite(recorder.logits).all()


def test_a_row_that_repeats_keeps_its_first_logits(dataset, trainer):
    again = dataset.select([0] * ROWS)
    recorder, order = RecordLogits(again, "uid"), RecordLogits(again.add_column("at", list(range(ROWS))), "at")
    for each in (recorder, order):
        trainer(each, rows=again).train()
    for epoch in range(EPOCHS):
        first = torch.randperm(ROWS, generator=torch.Generator().manual_seed(5 + epoch))[0]
        np.testing.assert_array_equal(recorder.logits[epoch, 0], order.logits[epoch, first])


def test_an_unfinished_epoch_is_left_out_and_said(dataset, trainer):
    recorder = RecordLogits(dataset, "uid")
    trainer(recorder, max_steps=4).train()
    assert len(recorder.logits) == 1 and recorder.left_out == "Left out: epoch 1: 14 of 22 rows not seen."


def test_it_is_saved_for_machines_without_torch(whole, tmp_path):
    recorder = whole["train"][0]
    recorder.save(tmp_path / "mine.npz")
    with np.load(tmp_path / "mine.npz", allow_pickle=False) as stored:
        np.testing.assert_array_equal(stored["logits"], recorder.logits)
        assert stored["uid"].tolist() == recorder.uid.tolist() and str(stored["capture"]) == "train"


def test_a_numbered_dataset_goes_to_workers_and_keeps_its_own_methods():
    """Such as set_epoch, by which a dataset is told of the epoch."""
    rows = Dataset.from_dict({"a": [5, 6, 7]})
    again = pickle.loads(pickle.dumps(Numbered(rows, range(3))))
    assert again.__getitems__([2, 0]) == [(2, {"a": 7}), (0, {"a": 5})] and len(again) == 3
    assert again.column_names == ["a"] and not hasattr(again, "set_epoch")


def two_processes(encoder, folder, *trainings):
    """Train on two processes (gloo), one (folder, options) after another; what both said, and their exit codes.

    A server that has imported torch and the Trainer once forks them.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free.getsockname()[1]), "WORLD_SIZE": "2"}
    context, workers = multiprocessing.get_context("forkserver"), []
    context.set_forkserver_preload(["nli_lib.learn.recorder", "transformers.trainer"])
    logs = [folder / f"said by {rank}.txt" for rank in (0, 1)]
    for rank, log in enumerate(logs):
        given = ({**place, "RANK": str(rank), "LOCAL_RANK": str(rank)}, log, encoder, trainings)
        workers.append(context.Process(target=recorder_worker.work, args=given, daemon=True))
        workers[-1].start()
    for worker in workers:
        worker.join(240)
        assert worker.exitcode is not None, "a process hangs"
    return [log.read_text() for log in logs], [worker.exitcode for worker in workers]


@pytest.fixture(scope="module")
def together(encoder, tmp_path_factory):
    """A folder for each of three trainings of the same two processes, of which the last one is cut and goes on."""
    folder = tmp_path_factory.mktemp("together")
    # dispatch: the first process reads the batches of both
    how = {"whole": {}, "dispatched": {"dispatch": True}, "cut": {"stop": 2}}
    said, codes = two_processes(encoder, folder, *((folder / name, options) for name, options in how.items()))
    assert 0 not in codes and "KeyboardInterrupt" in said[0], said
    said, codes = two_processes(encoder, folder, (folder / "cut", {"resume": True}))
    assert codes == [0, 0], said
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("name", ["whole", "dispatched"])
def test_two_processes_see_every_row_in_every_epoch(together, name):
    """21 rows in batches of 4 on two processes: the last batches are filled with rows of the first."""
    with np.load(together / name / "both.npz") as stored, np.load(together / name / "one.npz") as other:
        logits = stored["logits"]
        np.testing.assert_array_equal(logits, other["logits"])  # both processes hold all
        assert logits.shape == (2, 21, 3) and np.isfinite(logits).all()
        # what each process's own forward passes said, kept beside it by the worker
        for epoch, kept in enumerate((stored["kept_0"], stored["kept_1"])):
            first = {}
            for row, *values in kept:
                first.setdefault(int(row), values)
            np.testing.assert_array_equal(logits[epoch], np.float32([first[row] for row in range(21)]))


@pytest.mark.slow
def test_two_processes_go_on_after_a_kill(together):
    with np.load(together / "whole" / "both.npz") as uncut, np.load(together / "cut" / "both.npz") as cut:
        np.testing.assert_array_equal(uncut["logits"], cut["logits"])


# ---------------------------------------------------------------- what is refused


class Stream(IterableDataset):
    def __iter__(self):
        yield {"uid": "a", "label": 0}


TWO = {"uid": ["a", "b"], "label": [0, 1]}


@pytest.mark.parametrize(("given", "options", "said"), [
    (TWO, {"column": "name"}, "no column name; it has uid, label"),
    ({**TWO, "uid": ["x", "x"]}, {}, "uid 'x' names rows with different labels"),
    ({**TWO, "uid": [0.5, 1.5]}, {}, "holds float64 of shape .2,.: text or whole numbers"),
    ({**TWO, "label": [-1, -1]}, {}, "whole numbers from 0"),
    ({**TWO, "label": [0.5, 0.5]}, {}, "whole numbers from 0"),
    ({**TWO, "label": ["neutral"] * 2}, {}, "whole numbers from 0"),
    (TWO, {"capture": "test"}, 'capture="test" is neither'),
    (Stream(), {}, "only be iterated, .*: give the recorder one that is read whole"),
    (Dataset.from_dict(TWO).to_iterable_dataset(), {}, "only be iterated, .*: give the recorder one that is"),
    (iter([]), {}, "only be iterated, .*: give the recorder one that is read whole")])  # fmt: skip
def test_what_a_recorder_cannot_be_made_of(given, options, said):
    with pytest.raises(TrainingError, match=said):
        RecordLogits(given, **{"column": "uid", **options})


@pytest.mark.parametrize(("rows", "changes", "said"), [
    (lambda rows: rows.select(range(20)), {}, "trains on 20 rows and the recorder was given 22"),
    (lambda rows: rows, {"dataloader_drop_last": True}, "drop_last"),
    (lambda rows: Stream(), {"max_steps": 2}, "only be iterated"),
    (lambda rows: rows, {"collate": "turned"}, "a data collator that keeps the order of the rows")])  # fmt: skip
def test_trainings_that_cannot_be_recorded(dataset, trainer, tokenizer, rows, changes, said):
    if "collate" in changes:
        padded = DataCollatorWithPadding(tokenizer)
        changes = {"collate": lambda rows: padded(sorted(rows, key=lambda row: row["label"]))}
    with pytest.raises(TrainingError, match=said):
        trainer(RecordLogits(dataset, "uid"), rows=rows(dataset), **changes).train()


class PopLabels(Trainer):
    """A loss of one's own that keeps the labels from the model."""

    def compute_loss(self, model, inputs, return_outputs=False, **_):
        labels = inputs.pop("labels")
        output = model(**inputs)
        loss = torch.nn.functional.cross_entropy(output.logits, labels)
        return (loss, output) if return_outputs else loss


OTHER_ORDER = r"^row \d+ of the Trainer's dataset has label \d, and row .*, uid '.*', has \d: give .* in the same order"


@pytest.mark.parametrize(("kind", "changes"), [
    (Trainer, {}),
    (Trainer, {"label_smoothing_factor": 0.1}),
    (PopLabels, {}),
    (PopLabels, {"dataloader_num_workers": 1})], ids=str)  # fmt: skip
def test_another_order_ends_the_training_at_its_first_batch(dataset, trainer, kind, changes):
    recorder = RecordLogits(dataset, "uid")
    trainer(recorder, kind=kind, **changes).train()
    assert recorder.logits.shape == (EPOCHS, ROWS, 3)
    made = trainer(RecordLogits(dataset, "uid"), kind=kind, rows=dataset.shuffle(seed=1), **changes)
    with pytest.raises(TrainingError, match=OTHER_ORDER) as error:
        made.train()
    assert made.state.global_step == 0 and "\n" not in str(error.value)


def test_names_that_the_rows_still_bear_are_compared(dataset, trainer, tokenizer):
    """All labels are equal: they cannot show the order."""
    rows = dataset.map(lambda row: {"label": 1}).remove_columns(["premise", "hypothesis"])
    padded, recorder = DataCollatorWithPadding(tokenizer), RecordLogits(rows, "uid")

    def collate(rows):
        return padded([{name: value for name, value in row.items() if name != "uid"} for row in rows])

    given = {"collate": collate, "remove_unused_columns": False}
    trainer(recorder, rows=rows, **given).train()
    assert recorder.uid.tolist() == rows["uid"] and recorder.logits.shape == (EPOCHS, ROWS, 3)
    with pytest.raises(TrainingError, match=r"row \d+ of the Trainer's dataset has uid '(\S+)', .*, uid '(?!\1)"):
        trainer(RecordLogits(rows, "uid"), rows=rows.shuffle(seed=1), **given).train()


def test_batches_without_labels_and_names_are_warned_of(dataset, trainer):
    """Labels as probabilities (soft), as a collator may make them; the rows have lost their own."""
    soft = dataset.map(lambda row: {"labels": np.eye(3)[row["label"]].tolist()}).remove_columns("label")
    recorder = RecordLogits(dataset, "uid")
    with pytest.warns(UserWarning, match="neither labels nor uid: whether .* in the order .* cannot be seen"):
        trainer(recorder, rows=soft, num_train_epochs=1).train()
    assert recorder.logits.shape == (1, ROWS, 3)


def test_a_loss_that_chooses_arguments_is_told_after_the_first_step(dataset, trainer):
    class Chosen(Trainer):
        def compute_loss(self, model, inputs, return_outputs=False, **_):
            output = model(**{name: inputs[name] for name in ("input_ids", "attention_mask", "labels")})
            return (output.loss, output) if return_outputs else output.loss

    made = trainer(RecordLogits(dataset, "uid"), kind=Chosen)
    with pytest.raises(TrainingError, match=r'chosen arguments, without nli_positions_\d+.*capture="eval"'):
        made.train()
    assert made.state.global_step == 1
    recorder = RecordLogits(dataset, "uid", capture="eval")
    trainer(recorder, kind=Chosen).train()
    assert recorder.logits.shape == (EPOCHS, ROWS, 3)


@pytest.mark.parametrize("capture", ["train", "eval"])
def test_formats_transforms_and_datasets_of_ones_own_do_not_hide_the_names(dataset, trainer, tokenizer, whole, capture):
    texts = dataset.select_columns(["uid", "premise", "hypothesis", "label"])

    class Pairs(torch.utils.data.Dataset):
        def __len__(self):
            return len(texts)

        def __getitem__(self, at):
            row = texts[at]
            return {**tokenizer(row["premise"], row["hypothesis"]), "label": row["label"], "uid": row["uid"]}

    tensors = dataset.with_format("torch", columns=["input_ids", "token_type_ids", "attention_mask", "label"])
    made = texts.with_transform(lambda rows: {**tokenizer(rows["premise"], rows["hypothesis"]), "label": rows["label"]})
    for shown, changes in ((tensors, {}), (made, {"remove_unused_columns": False}), (Pairs(), {})):
        recorder = RecordLogits(shown, "uid", capture=capture)
        trainer(recorder, rows=shown, **changes).train()
        np.testing.assert_array_equal(recorder.logits, whole[capture][0].logits)
        assert recorder.uid.tolist() == dataset["uid"]


def test_two_recorders_see_one_training(dataset, trainer, whole):
    both = [RecordLogits(dataset, "uid", capture=capture) for capture in whole]
    trainer(*both).train()
    for recorder in both:
        np.testing.assert_array_equal(recorder.logits, whole[recorder.capture][0].logits)


def test_the_same_model_is_recorded_after_a_training_that_was_stopped(dataset, trainer, start):
    model, recorder = start(), RecordLogits(dataset, "uid")
    with pytest.raises(KeyboardInterrupt):
        trainer(RecordLogits(dataset, "uid"), StopAt(2), model=model).train()
    trainer(recorder, model=model).train()
    assert recorder.logits.shape == (EPOCHS, ROWS, 3)


def test_a_sequence_of_dicts_and_a_table(dataset):
    for given in (list(dataset), dataset.to_pandas(), dataset.to_dict()):
        recorder = RecordLogits(given, "uid")
        assert recorder.uid.tolist() == dataset["uid"] and recorder.labels.tolist() == dataset["label"]
