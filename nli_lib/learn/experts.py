"""Debiasing during training: a second prediction, from the hypothesis alone, takes part in the loss but not in the
test::

    ProductOfExperts   the two predictions are multiplied, as in the paper on debiased generation
    DebiasedFocal      an example counts less, the more surely its hypothesis alone predicts the label
    Ensemble           the product with a hypothesis-only model that was trained before and is frozen

The first two add a bias head to the encoder, which it shares with the main head; `expert_logits` returns its
predictions. Only the main head is recorded and used for predictions. Everything is computed in log space.
"""

import hashlib
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pandas as pd
import torch
from numpy.typing import ArrayLike
from safetensors.torch import load_file
from torch import nn
from torch.nn import functional
from transformers import PreTrainedModel

from nli_lib.corpora.corpus import Corpus
from nli_lib.learn.encode import Tokens, encode
from nli_lib.learn.fit import Arrays, Classify, Run
from nli_lib.learn.model import load_classifier, load_tokenizer, text_vector
from nli_lib.learn.predict import one_pass
from nli_lib.store import RunSpec

HEAD = "expert"  # the bias head's name among the model's parameters
MAX_LENGTH = 64  # word pieces of a hypothesis; longer ones are cut


def product(logits: torch.Tensor, expert: torch.Tensor, beta: float) -> torch.Tensor:
    """log p' (B, C), where p' = softmax(log p + beta log b), of the main logits and the bias head's, both (B, C).

    p = (.4, .4, .2) and b = (.7, .2, .1) give (.916, .075, .009) at beta 2. For a class that b all but excludes the
    result is a large negative number, never log 0.
    """
    log_p, log_b = functional.log_softmax(logits, -1), functional.log_softmax(expert, -1)
    return functional.log_softmax(log_p + beta * log_b, -1)


def focal_weight(expert: torch.Tensor, labels: torch.Tensor, focus: float) -> torch.Tensor:
    """(1 - b_gold) ** focus (B,), 0 to 1, from the bias head's logits (B, C); 1 where it excludes the label.

    1 - b_gold is summed over the other classes, so it does not vanish by rounding where b_gold is nearly 1.
    """
    gold = functional.one_hot(labels, expert.shape[1]).bool()
    others = functional.log_softmax(expert, -1).masked_fill(gold, -torch.inf).logsumexp(-1)
    return torch.exp(focus * others)


class _BiasHead(Classify):
    """Arrays, heads and recording shared by the two objectives with a bias head.

    They differ in `combine`, the loss () common to both heads, computed from their logits (B, C) and the labels (B,).

    Attributes
    ----------
    value
        the method's parameter: beta of the product, focus of the focal loss
    reads
        "own": the bias head reads the example's hypothesis. "another": it reads the hypothesis of another example,
        assigned by `others` with the run's seed; this control can know only the label frequencies
    """

    def __init__(self, method: str, knob: str, value: float, gamma: float, detached: bool, reads: str):
        if value < 0:
            raise ValueError(f"{knob} is {value}, it must be 0 or more")
        if gamma < 0 or reads not in ("own", "another"):
            raise ValueError(f"gamma is {gamma}, reads {reads!r}: gamma must be 0 or more, reads own or another")
        self.value, self.gamma, self.detached, self.reads = float(value), float(gamma), detached, reads
        self.name = f"{method}, {knob} {self.value:g}, gamma {self.gamma:g}"
        self.name += ", head detached" * detached + ", another hypothesis" * (reads == "another")

    def arrays(self, spec: RunSpec, corpus: Corpus, tokens: Tokens | None = None) -> Arrays:
        alone = encode(*corpus.texts("hypothesis"), load_tokenizer(spec.model), min(MAX_LENGTH, spec.max_length))
        if self.reads == "another":
            alone = alone[others(corpus.labels, seed=spec.seed)]
        return {**super().arrays(spec, corpus, tokens), "hypothesis": alone}

    def model(self, spec: RunSpec, classes: tuple[str, ...]) -> tuple[PreTrainedModel, list[str]]:
        model, new = super().model(spec, classes)
        return model, new + add_head(model, spec.seed)

    def loss(self, model: PreTrainedModel, batch: dict) -> tuple[torch.Tensor, torch.Tensor]:
        """The common loss plus gamma times the bias head's cross-entropy, and the main head's logits, which are
        recorded.

        The encoder reads the hypothesis without a gradient, which amounts to multiplying it by 0. It does so after the
        pair, because autocast keeps its first bf16 copies, and those need a gradient.
        """
        logits = model(**batch["tokens"]).logits.float()
        with torch.no_grad():
            read = pooled(model, batch["hypothesis"])
        expert = model.get_submodule(HEAD)(read).float()
        common = self.combine(logits, expert.detach() if self.detached else expert, batch["labels"])
        return common + self.gamma * functional.cross_entropy(expert, batch["labels"]), logits


class ProductOfExperts(_BiasHead):
    """CE(label, p') + gamma CE(label, b), where p' = softmax(log p + beta log b): `product`.

    b is the prediction of the bias head, which reads the encoder's output for the hypothesis alone. The encoder learns
    nothing from it; the bias head learns from both terms. With ``detached`` it learns only from the second term. That
    is another method, as in Clark et al. (2019) and He et al. (2019), where the bias model is trained separately.

    Notes
    -----
    *Departures*: none in the loss. Their code takes the logarithm of a softmax, which can be log 0; section 5.1 prints
    beta = 1, but the best value of Table 10 is 2.

    References
    ----------
    The paper on debiased generation, section 5.1 and Table 10 (beta .05 to 2, gamma .05 to 1); Karimi Mahabadi et al.
    (2020) and their code, where beta is `poe_alpha` and gamma `lambda_h`.
    """

    def __init__(self, beta: float = 2.0, gamma: float = 0.4, *, detached: bool = False, reads: str = "own"):
        super().__init__("product of experts", "beta", beta, gamma, detached, reads)

    def combine(self, logits: torch.Tensor, expert: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return functional.nll_loss(product(logits, expert, self.value), labels)


class DebiasedFocal(_BiasHead):
    """-(1 - b_gold)^focus log p_gold, mean, + gamma CE(label, b), with the heads of `ProductOfExperts`.

    References
    ----------
    Karimi Mahabadi et al. (2020), focus 2; the weight's gradient reaches the bias head in their code and here, unless
    it is ``detached``.
    """

    def __init__(self, focus: float = 2.0, gamma: float = 1.0, *, detached: bool = False, reads: str = "own"):
        super().__init__("debiased focal loss", "focus", focus, gamma, detached, reads)

    def combine(self, logits: torch.Tensor, expert: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        each = functional.cross_entropy(logits, labels, reduction="none")
        return (focal_weight(expert, labels, self.value) * each).mean()


class Ensemble(Classify):
    """CE(label, softmax(log p + beta log b)), where b is the fixed prediction of another model from the hypothesis.

    Attributes
    ----------
    expert
        (N, C) logits or log-probabilities of that model for the N training examples, in their order

    References
    ----------
    The bias product of Clark et al. (2019); He et al. (2019). There b is a prediction for the bias model's training
    pairs.
    """

    def __init__(self, expert: ArrayLike, beta: float = 1.0):
        self.expert, self.beta = np.asarray(expert, dtype=np.float32), float(beta)
        if self.expert.ndim != 2 or not np.isfinite(self.expert).all():
            raise ValueError(f"expert must be finite logits (N, C), not {self.expert.shape}")
        digest = hashlib.sha256(self.expert.tobytes()).hexdigest()[:8]
        self.name = f"ensemble with {digest}, beta {self.beta:g}"

    def arrays(self, spec: RunSpec, corpus: Corpus, tokens: Tokens | None = None) -> Arrays:
        if self.expert.shape != (len(corpus), len(corpus.classes)):
            sizes = f"{self.expert.shape} for {len(corpus)} examples of {len(corpus.classes)} classes"
            raise ValueError(f"expert has shape {sizes}; early stopping on other examples is not possible here")
        return {**super().arrays(spec, corpus, tokens), "expert": torch.tensor(self.expert)}

    def loss(self, model: PreTrainedModel, batch: dict) -> tuple[torch.Tensor, torch.Tensor]:
        logits = model(**batch["tokens"]).logits.float()
        return functional.nll_loss(product(logits, batch["expert"], self.beta), batch["labels"]), logits


def others(labels: ArrayLike, *, seed: int) -> np.ndarray:
    """Assign each of N examples the hypothesis of another, (N,) positions, each of them once.

    labels (N,). The examples of each label receive hypotheses of all labels in proportion, to within one or two: in a
    plain permutation the two labels are slightly correlated by chance, and a bias head learns that. One example in N,
    on average, keeps its hypothesis.
    """
    gold, random = np.asarray(labels), np.random.default_rng([seed, 0xB1A5])
    shuffled = random.permutation(len(gold))
    takers = shuffled[np.argsort(gold[shuffled], kind="stable")]  # label by label
    shuffled = random.permutation(len(gold))
    alike = pd.Series(shuffled).groupby(gold[shuffled])
    rank = (alike.cumcount() + 0.5) / alike.transform("size")
    dealt = shuffled[np.argsort(rank.to_numpy(), kind="stable")]  # every section has the labels in proportion
    given = np.empty(len(gold), dtype=np.int64)
    given[takers] = dealt
    return given


def add_head(model: PreTrainedModel, seed: int) -> list[str]:
    """Add a bias head to `model`, initialised from `seed`; return the names of its parameters.

    Dropout, then layers from the encoder's width d to d, d/2, d/4 and the classes, with tanh between them and weights
    drawn as BERT's are. Source: the released code of Karimi Mahabadi et al. (2020), its "deep" classifier.
    """
    config, generator = model.config, torch.Generator().manual_seed(seed)
    width = config.hidden_size
    sizes = [width, width, width // 2, width // 4, config.num_labels]
    layers: list[nn.Module] = [nn.Dropout(getattr(config, "hidden_dropout_prob", 0.0))]
    for entering, leaving in pairwise(sizes):
        layer = nn.Linear(entering, leaving)
        nn.init.normal_(layer.weight, std=getattr(config, "initializer_range", 0.02), generator=generator)
        nn.init.zeros_(layer.bias)
        layers += [layer, nn.Tanh()]
    model.add_module(HEAD, nn.Sequential(*layers[:-1]))
    return [f"{HEAD}.{name}" for name, _ in model.get_submodule(HEAD).named_parameters()]


def pooled(model: PreTrainedModel, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
    """The encoder's output for each text (B, W): BERT's pooled output; for encoders without one, the first token's last
    hidden state; for decoders, which read from left to right, the last token's."""
    output = model.base_model(**inputs)
    if getattr(output, "pooler_output", None) is not None:
        return output.pooler_output
    return text_vector(model, output.last_hidden_state, inputs)


@torch.inference_mode()
def expert_logits(run: Run, hypotheses: Sequence[str], *, batch_size: int = 64) -> np.ndarray:
    """Logits (N, C) float32 of a run's bias head for N hypotheses, dropout off.

    The columns are the classes that the run was trained on. Raises `ValueError` for a run without a bias head.
    """
    run.store.verify("model")
    weights = load_file(run.model / "model.safetensors")
    own = {name.removeprefix(f"{HEAD}."): each for name, each in weights.items() if name.startswith(f"{HEAD}.")}
    if not own:
        raise ValueError(f"{run.spec.id} has no bias head: its objective is {run.spec.objective!r}")
    classes = tuple(run.store.read_json("about.json")["classes"])
    model, _ = load_classifier(str(run.model), classes, run.spec.seed)
    add_head(model, run.spec.seed)
    model.get_submodule(HEAD).load_state_dict(own)
    tokens = encode(list(hypotheses), None, load_tokenizer(str(run.model)), min(MAX_LENGTH, run.spec.max_length))
    head = model.get_submodule(HEAD)
    return one_pass(model, tokens, run.spec.precision, lambda inputs: head(pooled(model, inputs)), batch_size)
