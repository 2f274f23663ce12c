"""One of two processes that train together, for test_recorder.py."""

import contextlib
import os

import numpy as np
import torch
import transformers
from torch.utils.data import Dataset
from transformers import Trainer, TrainerCallback, TrainingArguments

from nli_lib.learn.recorder import RecordLogits

ROWS = 21


class Rows(Dataset):
    def __len__(self):
        return ROWS

    def __getitem__(self, at):
        return {"input_ids": [2, 5 + at % 7, 6 + at % 5, 7 + at // 4, 3], "attention_mask": [1] * 5, "label": at % 3}


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


class Keep(RecordLogits):
    """Keeps, beside the recording, what each forward pass of this process said."""

    kept = ()

    def on_epoch_begin(self, *args, **kwargs):
        self.kept = [*self.kept, []]
        super().on_epoch_begin(*args, **kwargs)

    def _before(self, module, args, kwargs):
        self.rows = kwargs[self.key].tolist()
        return super()._before(module, args, kwargs)

    def _after(self, module, args, output):
        self.kept[-1].append([[row, *values] for row, values in zip(self.rows, output.logits.tolist(), strict=True)])
        super()._after(module, args, output)


def train(encoder, folder, *, stop=None, resume=False, dispatch=False):
    torch.manual_seed(3)
    model = transformers.AutoModelForSequenceClassification.from_pretrained(encoder, num_labels=3)
    arguments = TrainingArguments(
        output_dir=str(folder / "out"), num_train_epochs=2, per_device_train_batch_size=4, learning_rate=1e-3, seed=5,
        report_to="none", save_strategy="steps", save_steps=1, use_cpu=True, disable_tqdm=True, ddp_backend="gloo",
        accelerator_config={"dispatch_batches": dispatch},
    )  # fmt: skip
    recorder = Keep([{"row": at, "label": at % 3} for at in range(ROWS)], "row")
    given = {"train_dataset": Rows(), "data_collator": transformers.default_data_collator}
    trainer = Trainer(model=model, args=arguments, **given, callbacks=[recorder, StopAt(stop)])
    assert arguments.world_size == 2
    trainer.train(resume_from_checkpoint=resume)

    everybody = [None, None]
    torch.distributed.all_gather_object(everybody, recorder.kept)
    if torch.distributed.get_rank() == 0:
        # in the order of the steps, the processes in turn
        both = [
            [row for step in zip(*(each[epoch] for each in everybody), strict=True) for part in step for row in part]
            for epoch in range(len(recorder.kept))
        ]
        kept = {f"kept_{epoch}": rows for epoch, rows in enumerate(both)}
        np.savez(folder / "both.npz", logits=recorder.logits, **kept)
    else:
        np.savez(folder / "one.npz", logits=recorder.logits)
    recorder.save(folder / "saved.npz")


def work(place, log, encoder, trainings):
    """Train one (folder, options) after another; place: the environment that torch's processes find each other by."""
    os.environ |= place
    torch.set_num_threads(1)
    with log.open("w") as said, contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        try:
            for folder, options in trainings:
                train(encoder, folder, **options)
        except BaseException as error:
            print(repr(error))
            raise
    torch.distributed.destroy_process_group()
