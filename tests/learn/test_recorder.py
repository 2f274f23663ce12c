"""A Trainer's logits, row by row and epoch by epoch. Run alone: pytest tests/learn/test_recorder.py"""

import multiprocessing
import socket
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import recorder_worker
import torch
from datasets import Dataset
from torch.utils.data import DataLoader, IterableDataset
from transformers import (
    AutoModelForSequenceClassification,
    AutoTokenizer,
    DataCollatorWithPadding,
    Trainer,
    TrainerCallback,
    TrainingArguments,
    set_seed,
)

from nli_lib.learn.recorder import FILE, RecorderError, RecordLogits
from nli_lib.measure import dynamics

ROWS, BATCH, EPOCHS, RATE = 22, 8, 3, 1e-3  # the last batch of an epoch holds 6


@pytest.fixture
def tokenizer(encoder):
    return AutoTokenizer.from_pretrained(encoder)


@pytest.fixture
def dataset(corpus, tokenizer):
    """22 rows with their texts and a name each, and what the model reads."""
    table = corpus[np.arange(ROWS)].table[["uid", "premise", "hypothesis", "label"]]
    read = Dataset.from_pandas(table, preserve_index=False)
    return read.map(lambda rows: tokenizer(rows["premise"], rows["hypothesis"]), batched=True)


@pytest.fixture
def start(encoder):
    def make():
        torch.manual_seed(3)
        return AutoModelForSequenceClassification.from_pretrained(encoder, num_labels=3)

    return make


@pytest.fixture
def settings(tmp_path):
    def make(**changes):
        known = {"num_train_epochs": EPOCHS, "per_device_train_batch_size": BATCH, "learning_rate": RATE, "seed": 5}
        known |= {"report_to": "none", "save_strategy": "no", "use_cpu": True, "disable_tqdm": True}
        return TrainingArguments(output_dir=str(tmp_path / "out"), **{**known, **changes})

    return make


def recorded(recorder, model, dataset, tokenizer, arguments, *callbacks, **train):
    collate = DataCollatorWithPadding(tokenizer)
    given = {"model": model, "args": arguments, "train_dataset": dataset, "data_collator": collate}
    trainer = Trainer(**given, callbacks=[recorder, *callbacks])
    trainer.train(**train)
    return trainer


def plain_loop(model, dataset, tokenizer, seed):
    """The definition: shuffle, pad, forward, keep the logits, step. (E, N, C) and the model."""
    set_seed(seed)
    steps = -(-len(dataset) // BATCH) * EPOCHS
    plain = [name for name, _ in model.named_parameters() if "bias" in name or "LayerNorm" in name]
    groups = [
        {"params": [each for name, each in model.named_parameters() if name not in plain], "weight_decay": 0.0},
        {"params": [each for name, each in model.named_parameters() if name in plain], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=RATE, betas=(0.9, 0.999), eps=1e-8, fused=True)  # as the Trainer does
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


def test_equal_to_a_plain_loop_bit_for_bit(dataset, start, settings, tokenizer):
    recorder = RecordLogits(dataset, "uid")
    trainer = recorded(recorder, start(), dataset, tokenizer, settings())
    logits, model = plain_loop(start(), dataset, tokenizer, seed=5)
    np.testing.assert_array_equal(recorder.logits, logits)
    assert recorder.logits.dtype == np.float32
    assert recorder.uid.tolist() == dataset["uid"] and recorder.labels.tolist() == dataset["label"]
    for name, value in model.state_dict().items():
        assert torch.equal(value, trainer.model.state_dict()[name]), name


def test_the_training_is_the_same_without_it(dataset, start, settings, tokenizer):
    with_it = recorded(RecordLogits(dataset, "uid"), start(), dataset, tokenizer, settings())
    without = recorded(TrainerCallback(), start(), dataset, tokenizer, settings())
    for name, value in without.model.state_dict().items():
        assert torch.equal(value, with_it.model.state_dict()[name]), name


class KeepLogits(Trainer):
    """The slow twin: what the loss was computed from, with the name of each row in the batch."""

    def compute_loss(self, model, inputs, return_outputs=False, **kwargs):
        rows = inputs.pop("row").tolist()
        loss, output = super().compute_loss(model, inputs, return_outputs=True, **kwargs)
        if model.training:
            self.kept.extend(zip(rows, output.logits.detach().numpy().copy(), strict=True))
        return (loss, output) if return_outputs else loss


@pytest.mark.parametrize(
    "changes",
    [
        {"gradient_accumulation_steps": 2},
        {"train_sampling_strategy": "group_by_length"},
        {"dataloader_num_workers": 2},
        {"eval_strategy": "epoch", "gradient_accumulation_steps": 3},
        {"bf16": True},
    ],
    ids=str,
)
def test_equal_to_what_the_loss_was_computed_from(dataset, start, settings, tokenizer, changes):
    numbered = dataset.add_column("row", list(range(ROWS))).remove_columns(["uid", "premise", "hypothesis"])
    given = {"train_dataset": numbered, "data_collator": DataCollatorWithPadding(tokenizer), "eval_dataset": numbered}
    recorder = RecordLogits(dataset, "uid")
    arguments = settings(**changes, remove_unused_columns=False)
    trainer = KeepLogits(model=start(), args=arguments, **given, callbacks=[recorder])
    trainer.kept = []
    trainer.train()
    rows, logits = zip(*trainer.kept, strict=True)
    assert len(rows) == EPOCHS * ROWS
    expected = np.empty_like(recorder.logits)
    for epoch in range(EPOCHS):
        part = slice(epoch * ROWS, (epoch + 1) * ROWS)
        expected[epoch, list(rows[part])] = np.stack(logits[part])
    np.testing.assert_array_equal(recorder.logits, expected)


def test_every_measure_reads_it(dataset, start, settings, tokenizer):
    recorder = RecordLogits(dataset, "uid")
    recorded(recorder, start(), dataset, tokenizer, settings())
    scores = pd.DataFrame(dynamics.scores(recorder.logits, recorder.labels))
    assert len(scores) == ROWS and scores.notna().all(axis=None)


def test_the_evaluation_pass_shows_the_model_after_each_epoch(dataset, start, settings, tokenizer):
    recorder = RecordLogits(dataset, "uid", capture="eval")
    trainer = recorded(recorder, start(), dataset, tokenizer, settings())
    trained = trainer.predict(dataset).predictions
    np.testing.assert_allclose(recorder.logits[-1], trained, rtol=0, atol=1e-6)  # batches are padded otherwise
    assert np.abs(recorder.logits[0] - trained).max() > 1e-3
    without = recorded(TrainerCallback(), start(), dataset, tokenizer, settings())
    for name, value in without.model.state_dict().items():
        assert torch.equal(value, trainer.model.state_dict()[name]), name


class StopAt(TrainerCallback):
    """Ends a training after some step, as a kill would after that step's checkpoint."""

    def __init__(self, step):
        self.step = step

    def on_step_end(self, args, state, control, **kwargs):
        if state.global_step == self.step:
            control.should_save = True
        return control

    def on_save(self, args, state, control, **kwargs):
        if state.global_step == self.step:
            raise KeyboardInterrupt


# 3 and 6 are the last steps of an epoch
@pytest.mark.parametrize(("capture", "step"), [("train", 1), ("train", 3), ("train", 5), ("eval", 4), ("eval", 6)])
def test_a_resumed_training_has_every_row_of_every_epoch(dataset, start, settings, tokenizer, step, capture):
    whole = RecordLogits(dataset, "uid", capture=capture)
    recorded(whole, start(), dataset, tokenizer, settings())
    with pytest.raises(KeyboardInterrupt):
        recorded(RecordLogits(dataset, "uid", capture=capture), start(), dataset, tokenizer, settings(), StopAt(step))
    resumed = RecordLogits(dataset, "uid", capture=capture)
    recorded(resumed, start(), dataset, tokenizer, settings(), resume_from_checkpoint=True)
    np.testing.assert_array_equal(resumed.logits, whole.logits)


def test_a_checkpoint_each_epoch(dataset, start, settings, tokenizer):
    arguments = settings(save_strategy="epoch")
    whole = RecordLogits(dataset, "uid")
    recorded(whole, start(), dataset, tokenizer, arguments)
    resumed = RecordLogits(dataset, "uid")
    first = Path(arguments.output_dir, "checkpoint-3")
    recorded(resumed, start(), dataset, tokenizer, arguments, resume_from_checkpoint=str(first))
    np.testing.assert_array_equal(resumed.logits, whole.logits)


def test_a_checkpoint_without_logits_is_refused(dataset, start, settings, tokenizer):
    arguments = settings(save_strategy="epoch")
    recorded(RecordLogits(dataset, "uid"), start(), dataset, tokenizer, arguments)
    (Path(arguments.output_dir, "checkpoint-9") / FILE).unlink()
    with pytest.raises(RecorderError, match="checkpoint-9.*is missing.*earlier checkpoint"):
        recorded(RecordLogits(dataset, "uid"), start(), dataset, tokenizer, arguments, resume_from_checkpoint=True)


def test_a_training_again_starts_from_nothing(dataset, start, settings, tokenizer):
    recorder = RecordLogits(dataset, "uid")
    trainer = recorded(recorder, start(), dataset, tokenizer, settings())
    first = recorder.logits
    trainer.train()
    assert recorder.logits.shape == first.shape and not np.array_equal(recorder.logits, first)


def test_repeated_rows_are_one_row(dataset, start, settings, tokenizer):
    again = dataset.select([*range(ROWS), 3, 4, 3])
    recorder = RecordLogits(again, "uid")
    recorded(recorder, start(), again, tokenizer, settings())
    assert recorder.logits.shape == (EPOCHS, ROWS, 3) and recorder.uid.tolist() == dataset["uid"]
    assert np.isfinite(recorder.logits).all()


def test_a_row_that_repeats_keeps_its_first_logits(dataset, start, settings, tokenizer):
    again = dataset.select([0] * ROWS)
    recorder, order = RecordLogits(again, "uid"), RecordLogits(again.add_column("at", list(range(ROWS))), "at")
    recorded(recorder, start(), again, tokenizer, settings())
    recorded(order, start(), again, tokenizer, settings())
    for epoch in range(EPOCHS):
        first = torch.randperm(ROWS, generator=torch.Generator().manual_seed(5 + epoch))[0]
        np.testing.assert_array_equal(recorder.logits[epoch, 0], order.logits[epoch, first])


def test_an_unfinished_epoch_is_left_out_and_said(dataset, start, settings, tokenizer):
    recorder = RecordLogits(dataset, "uid")
    recorded(recorder, start(), dataset, tokenizer, settings(max_steps=4))
    assert len(recorder.logits) == 1
    assert recorder.left_out == "Left out: epoch 1: 14 of 22 rows not seen."


def test_it_is_saved_for_machines_without_torch(dataset, start, settings, tokenizer, tmp_path):
    recorder = RecordLogits(dataset, "uid")
    recorded(recorder, start(), dataset, tokenizer, settings())
    recorder.save(tmp_path / "mine.npz")
    with np.load(tmp_path / "mine.npz", allow_pickle=False) as stored:
        np.testing.assert_array_equal(stored["logits"], recorder.logits)
        assert stored["uid"].tolist() == recorder.uid.tolist() and str(stored["capture"]) == "train"


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def two_processes(encoder, folder, *trainings):
    """Train on two processes (gloo), one (folder, options) after another; what both said, and their exit codes.

    A server that has imported torch and the Trainer once forks them.
    """
    context, port, workers = multiprocessing.get_context("forkserver"), free_port(), []
    context.set_forkserver_preload(["nli_lib.learn.recorder", "transformers.trainer"])
    logs = [folder / f"said by {rank}.txt" for rank in (0, 1)]
    for rank, log in enumerate(logs):
        place = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": 2, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        place = {name: str(value) for name, value in place.items()}
        workers.append(context.Process(target=recorder_worker.work, args=(place, log, encoder, trainings), daemon=True))
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


def test_no_such_column(dataset):
    with pytest.raises(RecorderError, match="no column name; it has uid, premise"):
        RecordLogits(dataset, "name")


def test_a_name_with_two_labels(dataset):
    table = dataset.to_pandas().assign(uid="x", label=[0, 1] * (ROWS // 2))
    with pytest.raises(RecorderError, match="uid 'x' names rows with different labels"):
        RecordLogits(table, "uid")


@pytest.mark.parametrize("label", [-1, 0.5, "neutral"])
def test_labels_that_are_none(label):
    with pytest.raises(RecorderError, match="whole numbers from 0"):
        RecordLogits({"uid": ["a", "b"], "label": [label, label]}, "uid")


def test_another_length(dataset, start, settings, tokenizer):
    with pytest.raises(RecorderError, match="trains on 20 rows and the recorder was given 22"):
        recorded(RecordLogits(dataset, "uid"), start(), dataset.select(range(20)), tokenizer, settings())


class PopLabels(Trainer):
    """A loss of one's own that keeps the labels from the model."""

    def compute_loss(self, model, inputs, return_outputs=False, **_):
        labels = inputs.pop("labels")
        output = model(**inputs)
        loss = torch.nn.functional.cross_entropy(output.logits, labels)
        return (loss, output) if return_outputs else loss


OTHER_ORDER = r"^row \d+ of the Trainer's dataset has label \d, and row .*, uid '.*', has \d: give .* in the same order"


@pytest.mark.parametrize(
    ("trainer", "changes"),
    [
        (Trainer, {}),
        (Trainer, {"label_smoothing_factor": 0.1}),
        (PopLabels, {}),
        (PopLabels, {"dataloader_num_workers": 1}),
    ],
    ids=str,
)
def test_another_order_ends_the_training_at_its_first_batch(dataset, start, settings, tokenizer, trainer, changes):
    given = {"args": settings(**changes), "data_collator": DataCollatorWithPadding(tokenizer)}
    for train, same in ((dataset, True), (dataset.shuffle(seed=1), False)):
        recorder = RecordLogits(dataset, "uid")
        made = trainer(model=start(), train_dataset=train, callbacks=[recorder], **given)
        if same:
            made.train()
            assert recorder.logits.shape == (EPOCHS, ROWS, 3)
            continue
        with pytest.raises(RecorderError, match=OTHER_ORDER) as error:
            made.train()
        assert made.state.global_step == 0 and "\n" not in str(error.value)


def test_names_that_the_rows_still_bear_are_compared(dataset, start, settings, tokenizer):
    """All labels are equal: they cannot show the order."""
    rows = dataset.map(lambda row: {"label": 1}).remove_columns(["premise", "hypothesis"])
    padded = DataCollatorWithPadding(tokenizer)

    def collate(rows):
        return padded([{name: value for name, value in row.items() if name != "uid"} for row in rows])

    def trainer(recorder, train):
        arguments = settings(remove_unused_columns=False)
        given = {"train_dataset": train, "data_collator": collate}
        return Trainer(model=start(), args=arguments, callbacks=[recorder], **given)

    recorder = RecordLogits(rows, "uid")
    trainer(recorder, rows).train()
    assert recorder.uid.tolist() == rows["uid"] and recorder.logits.shape == (EPOCHS, ROWS, 3)
    with pytest.raises(RecorderError, match=r"row \d+ of the Trainer's dataset has uid '(\S+)', .*, uid '(?!\1)"):
        trainer(RecordLogits(rows, "uid"), rows.shuffle(seed=1)).train()


def test_a_collator_that_turns_the_rows_is_refused(dataset, start, settings, tokenizer):
    padded = DataCollatorWithPadding(tokenizer)

    def collate(rows):
        return padded(sorted(rows, key=lambda row: row["label"]))

    trainer = Trainer(
        model=start(), args=settings(), train_dataset=dataset, data_collator=collate,
        callbacks=[RecordLogits(dataset, "uid")],
    )  # fmt: skip
    with pytest.raises(RecorderError, match="a data collator that keeps the order of the rows"):
        trainer.train()


def test_batches_without_labels_and_names_are_warned_of(dataset, start, settings, tokenizer):
    """Labels as probabilities (soft), as a collator may make them; the rows have lost their own."""
    soft = dataset.map(lambda row: {"labels": np.eye(3)[row["label"]].tolist()}).remove_columns("label")
    recorder = RecordLogits(dataset, "uid")
    with pytest.warns(UserWarning, match="neither labels nor uid: whether .* in the order .* cannot be seen"):
        recorded(recorder, start(), soft, tokenizer, settings(num_train_epochs=1))
    assert recorder.logits.shape == (1, ROWS, 3)


def test_a_loss_that_chooses_arguments_is_told_after_the_first_step(dataset, start, settings, tokenizer):
    class Chosen(Trainer):
        def compute_loss(self, model, inputs, return_outputs=False, **_):
            output = model(**{name: inputs[name] for name in ("input_ids", "attention_mask", "labels")})
            return (output.loss, output) if return_outputs else output.loss

    given = {"args": settings(), "train_dataset": dataset, "data_collator": DataCollatorWithPadding(tokenizer)}
    trainer = Chosen(model=start(), callbacks=[RecordLogits(dataset, "uid")], **given)
    with pytest.raises(RecorderError, match=r'chosen arguments, without nli_positions_\d+.*capture="eval"'):
        trainer.train()
    assert trainer.state.global_step == 1
    recorder = RecordLogits(dataset, "uid", capture="eval")
    Chosen(model=start(), callbacks=[recorder], **given).train()
    assert recorder.logits.shape == (EPOCHS, ROWS, 3)


@pytest.mark.parametrize("capture", ["train", "eval"])
def test_formats_and_transforms_do_not_hide_the_names(dataset, start, settings, tokenizer, capture):
    plain = RecordLogits(dataset, "uid", capture=capture)
    recorded(plain, start(), dataset, tokenizer, settings())
    tensors = dataset.with_format("torch", columns=["input_ids", "token_type_ids", "attention_mask", "label"])
    made = dataset.select_columns(["uid", "premise", "hypothesis", "label"]).with_transform(
        lambda rows: {**tokenizer(rows["premise"], rows["hypothesis"]), "label": rows["label"]}
    )
    for shown, changes in ((tensors, {}), (made, {"remove_unused_columns": False})):
        recorder = RecordLogits(shown, "uid", capture=capture)
        recorded(recorder, start(), shown, tokenizer, settings(**changes))
        np.testing.assert_array_equal(recorder.logits, plain.logits)
        assert recorder.uid.tolist() == dataset["uid"]


def test_a_dataset_of_ones_own_with_rows_is_not_taken_apart(dataset, start, settings, tokenizer):
    class Pairs(torch.utils.data.Dataset):
        def __init__(self, rows):
            self.rows = rows

        def __len__(self):
            return len(self.rows)

        def __getitem__(self, at):
            row = self.rows[at]
            return {**tokenizer(row["premise"], row["hypothesis"]), "label": row["label"], "uid": row["uid"]}

    plain, recorder = RecordLogits(dataset, "uid"), RecordLogits(dataset, "uid")
    recorded(plain, start(), dataset, tokenizer, settings())
    pairs = Pairs(dataset.select_columns(["uid", "premise", "hypothesis", "label"]))
    recorded(recorder, start(), pairs, tokenizer, settings())
    np.testing.assert_array_equal(recorder.logits, plain.logits)


def test_two_recorders_see_one_training(dataset, start, settings, tokenizer):
    train, evaluated = RecordLogits(dataset, "uid"), RecordLogits(dataset, "uid", capture="eval")
    recorded(train, start(), dataset, tokenizer, settings(), evaluated)
    for recorder in (train, evaluated):
        alone = RecordLogits(dataset, "uid", capture=recorder.capture)
        recorded(alone, start(), dataset, tokenizer, settings())
        np.testing.assert_array_equal(recorder.logits, alone.logits)


def test_the_same_model_is_recorded_after_a_training_that_was_stopped(dataset, start, settings, tokenizer):
    model = start()
    with pytest.raises(KeyboardInterrupt):
        recorded(RecordLogits(dataset, "uid"), model, dataset, tokenizer, settings(), StopAt(2))
    recorder = RecordLogits(dataset, "uid")
    recorded(recorder, model, dataset, tokenizer, settings())
    assert recorder.logits.shape == (EPOCHS, ROWS, 3)


def test_batches_that_leave_rows_out(dataset, start, settings, tokenizer):
    with pytest.raises(RecorderError, match="drop_last"):
        recorded(RecordLogits(dataset, "uid"), start(), dataset, tokenizer, settings(dataloader_drop_last=True))


def test_a_stream(dataset, start, settings, tokenizer):
    class Stream(IterableDataset):
        def __iter__(self):
            yield from dataset

    with pytest.raises(RecorderError, match="only be iterated"):
        recorded(RecordLogits(dataset, "uid"), start(), Stream(), tokenizer, settings(max_steps=2))
    for stream in (Stream(), dataset.to_iterable_dataset(), (row for row in dataset)):
        with pytest.raises(RecorderError, match="only be iterated, .*: give the recorder one that is read whole"):
            RecordLogits(stream, "uid")


def test_a_sequence_of_dicts_and_a_table(dataset):
    for given in (list(dataset), dataset.to_pandas(), dataset.to_dict()):
        recorder = RecordLogits(given, "uid")
        assert recorder.uid.tolist() == dataset["uid"] and recorder.labels.tolist() == dataset["label"]
