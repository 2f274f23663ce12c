"""AdamW on two flat vectors: fp32 masters of all weights, one with weight decay and one without.

In bf16 the weights of linear layers live in the model as bf16 copies of their masters, made once a step; autocast would
cast each of them in every step and cast its gradient back. Both give the same numbers: a linear layer's gradient is
computed in bf16 either way, and the masters, both Adam moments and the norm used for clipping are fp32.
"""

import math

import torch
from torch import nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters
from transformers.trainer_pt_utils import get_parameter_names

from nli_lib.spec import RunSpec

BETAS = (0.9, 0.999)


def rate_factor(spec: RunSpec, step: int, steps: int) -> float:
    """Factor of the learning rate at update `step` (from 0) of `steps`, 0 to 1.

    Rises linearly from 0 over the warm-up, which is `spec.warmup_steps` or ceil(spec.warmup * steps) updates, and then
    falls linearly to 0 or stays 1, as `spec.schedule` says; the first update of a run with warm-up has factor 0. As
    Hugging Face's `get_linear_schedule_with_warmup` and `get_constant_schedule_with_warmup`.
    """
    rise = math.ceil(spec.warmup * steps) if spec.warmup_steps is None else spec.warmup_steps
    if step < rise:
        return step / rise
    return 1.0 if spec.schedule == "constant" else max(0.0, (steps - step) / max(1, steps - rise))


def only_in_linear_layers(model: nn.Module) -> set[nn.Parameter]:
    """The parameters that only linear layers use: under bf16 autocast they enter every product as bf16."""
    linear, other = set(), set()
    for module in model.modules():
        users = linear if type(module) is nn.Linear else other
        users.update(module.parameters(recurse=False))
    return linear - other


def decayed(model: nn.Module) -> set[str]:
    """Names of the parameters with weight decay: all but biases and those of normalisation layers."""
    return set(get_parameter_names(model, [], [r"bias$", "norm"]))


class _Group:
    """Parameters that share a decay, laid end to end in one fp32 master; those with a bf16 copy come first."""

    def __init__(self, parameters: list[nn.Parameter], copied: set[nn.Parameter]):
        self.parameters = sorted(parameters, key=lambda each: each not in copied)
        copied = [each for each in self.parameters if each in copied]
        sizes = [each.numel() for each in self.parameters]
        self.master = parameters_to_vector(self.parameters).detach()
        self.master.grad = torch.zeros_like(self.master)
        self.copies = self.master.new_empty(sum(sizes[: len(copied)]), dtype=torch.bfloat16)
        views = zip(self.master.grad.split(sizes), self.parameters, strict=True)
        self.gradients = [gradient.view_as(parameter) for gradient, parameter in views]
        self.release()
        vector_to_parameters(self.copies, copied)
        self.refresh()

    def gather(self) -> None:
        """Move the gradients of the backward pass into the flat fp32 one."""
        for parameter, gradient in zip(self.parameters, self.gradients, strict=True):
            if parameter.grad.is_sparse:
                gradient.zero_().index_add_(0, parameter.grad._indices()[0], parameter.grad._values())
            else:
                gradient.copy_(parameter.grad)
            parameter.grad = None

    def refresh(self) -> None:
        self.copies.copy_(self.master[: len(self.copies)])

    def release(self) -> None:
        """Give every parameter its fp32 master."""
        vector_to_parameters(self.master, self.parameters)


class FlatAdamW:
    """AdamW, schedule and clipping as `spec` says, on the flat masters of a model's parameters, over `steps` updates.

    With `bf16` the model holds bf16 copies of what only its linear layers use. Parameters that need no gradient are
    left alone.
    """

    def __init__(self, model: nn.Module, spec: RunSpec, steps: int, bf16: bool = False):
        self.spec, self.steps, self.step_number = spec, steps, 0
        self.decay_product = 1.0  # what a decayed weight that never had a gradient has been multiplied by
        self.groups, settings = [], []
        copied, names = only_in_linear_layers(model) if bf16 else set(), decayed(model)
        trained = {name: each for name, each in model.named_parameters() if each.requires_grad}
        for decay, group in ((spec.weight_decay, trained.keys() & names), (0.0, trained.keys() - names)):
            if group:
                self.groups.append(_Group([each for name, each in trained.items() if name in group], copied))
                settings.append({"params": [self.groups[-1].master], "weight_decay": decay})
        self.adamw = torch.optim.AdamW(settings, lr=spec.learning_rate, betas=BETAS, eps=spec.epsilon, fused=True)

    def step(self) -> None:
        """One update from the gradients in the model's parameters, which are used up."""
        for group in self.groups:
            group.gather()
        if self.spec.clip is not None:
            nn.utils.clip_grad_norm_([group.master for group in self.groups], self.spec.clip)
        rate = self.spec.learning_rate * rate_factor(self.spec, self.step_number, self.steps)
        for settings in self.adamw.param_groups:
            settings["lr"] = rate
        self.adamw.step()
        self.decay_product *= 1 - rate * self.spec.weight_decay
        self.step_number += 1
        for group in self.groups:
            group.refresh()

    def release(self) -> None:
        """End the training: the model's parameters are the fp32 masters again."""
        for group in self.groups:
            group.release()

    def weights(self) -> dict:
        """All that the trained weights are, by reference."""
        return {"masters": [group.master for group in self.groups], "decay_product": self.decay_product}

    def load_weights(self, weights: dict) -> None:
        for group, master in zip(self.groups, weights["masters"], strict=True):
            group.master.copy_(master)
            group.refresh()
        self.decay_product = weights["decay_product"]

    def state_dict(self) -> dict:
        return {**self.weights(), "adamw": self.adamw.state_dict(), "step": self.step_number}

    def load_state_dict(self, state: dict) -> None:
        self.load_weights(state)
        self.adamw.load_state_dict(state["adamw"])
        self.step_number = state["step"]
