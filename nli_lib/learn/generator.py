"""Generators: causal language models over premise, label and hypothesis, as objectives of the training loop::

    spec = study.spec("generator", seed=seed, objective=Generate(0.5).name)
    run = train(spec, corpus, Generate(0.5))
    run.logits                               # (E, N, C) log p(hypothesis | label, premise) under each label
    sample(load(str(run.model)), around.start, around.end, range(100), seed=seed)

`Generate` learns a corpus, with consistency unlikelihood if its weight is not 0. `Debias` continues from such a run: it
learns the pairs that the z-filter kept, and learns to avoid the features for which it rejected the others. Both write
pairs as `learn.encode` does.

The language model is given as hub id, as folder, or as one of `PARTS`, which are made from the packaged SmolLM2. The
names of `PARTS` are registered with `learn.text`, so a run can use them on any machine.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch.autograd.function import once_differentiable
from torch.nn import functional
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerFast
from transformers.modeling_layers import GradientCheckpointingLayer

from nli_lib import paths
from nli_lib.corpora.corpus import Corpus
from nli_lib.errors import TrainingError
from nli_lib.learn import encode
from nli_lib.learn.encode import HYPOTHESIS, PREMISE, Tokens
from nli_lib.learn.fit import Arrays, Run, fit
from nli_lib.learn.model import find_model, load_tokenizer, part_of, pick_device, takes_bf16
from nli_lib.learn.text import HUB_MODELS, LOWER_LAYERS, debias_name, generate_name, once, resolve_model
from nli_lib.store import RunSpec

PACKAGED = "smollm2-6"  # name of the package's file in `learn.text`


# Parts of SmolLM2-135M: number of lowest layers, number of first word pieces; None is all. The small part is for scale
# smoke. Byte-pair encoding finds the frequent word pieces first, so the first ones can write any text, with more
# pieces; the output layer over all 49,152 would cost four times as much as the two layers.
PARTS = {"smollm2": (None, None), "smollm2-2": (2, 4096)}


def language_model(name: str) -> str:
    """Return the name after making sure that the model exists: one of `PARTS` is made at its first use."""
    if name in PARTS:
        HUB_MODELS[name] = str(make(paths.MODELS / name, *PARTS[name]))
    return name


def make(target: Path, layers: int | None, pieces: int | None) -> Path:
    """Write a part of the packaged model to `target` in transformers' format, once; `target` is complete or absent.

    Notes
    -----
    *Departures*: the package's weights are quantised (four bits and an offset) and converted to fp32. A model of the
    lower layers keeps the whole model's last norm, which was trained on the output of its last layer.
    """

    def write(draft: Path) -> None:
        if layers is not None and layers <= LOWER_LAYERS[PACKAGED]:  # the layers of the encoder are faster to read
            source = {"pretrained_model_name_or_path": find_model(PACKAGED)}
        else:
            weights = Path(resolve_model(PACKAGED))
            source = {"pretrained_model_name_or_path": str(weights.parent), "gguf_file": weights.name}
        model = part_of(AutoModelForCausalLM, source, **({"num_hidden_layers": layers} if layers else {}))
        tokenizer = AutoTokenizer.from_pretrained(**source)
        tokenizer.backend_tokenizer.post_processor = None  # the objective decides how a text ends
        if pieces is not None:
            model.resize_token_embeddings(pieces)
            tokenizer = first_pieces(tokenizer, pieces)
        model.save_pretrained(draft)
        tokenizer.save_pretrained(draft)

    return once(target, write)


def first_pieces(tokenizer: PreTrainedTokenizerFast, count: int) -> PreTrainedTokenizerFast:
    """Cut a byte-pair tokenizer to its first `count` ids: special tokens, bytes, and the merges learnt first.

    The same training would have given this tokenizer if it had stopped at this size.
    """
    state = json.loads(tokenizer.backend_tokenizer.to_str())
    vocabulary = {piece: at for piece, at in state["model"]["vocab"].items() if at < count}
    merges = [pair for pair in state["model"]["merges"] if "".join(pair) in vocabulary]
    state["model"] |= {"vocab": vocabulary, "merges": merges}
    cut = type(tokenizer.backend_tokenizer).from_str(json.dumps(state))
    special = {"bos_token": tokenizer.bos_token, "eos_token": tokenizer.eos_token, "pad_token": tokenizer.pad_token}
    return PreTrainedTokenizerFast(tokenizer_object=cut, **special)


# ---------------------------------------------------------------- likelihood


AT_ONCE = 2**21  # logits processed in fp32 together: 8 MB, which fit into a processor's cache


class _ChosenLogP(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits: torch.Tensor, chosen: torch.Tensor) -> torch.Tensor:
        ctx.rows = max(1, AT_ONCE // logits.shape[1])
        total = torch.cat([part.float().logsumexp(1) for part in logits.split(ctx.rows)])
        ctx.save_for_backward(logits, chosen, total)
        return logits.gather(1, chosen[:, None])[:, 0].float() - total

    @staticmethod
    @once_differentiable
    def backward(ctx, gradient: torch.Tensor):
        """With p the probabilities and e the chosen token's unit vector: d_logits = d_log_p (e - p)."""
        result = torch.empty_like(ctx.saved_tensors[0])
        parts = zip(*(each.split(ctx.rows) for each in (result, *ctx.saved_tensors, gradient)), strict=True)
        for part, values, token, normaliser, factor in parts:
            p = (values.float() - normaliser[:, None]).exp_().mul_(-factor[:, None])
            part.copy_(p.scatter_add_(1, token[:, None], factor[:, None]))
        return result, None


def chosen_log_p(logits: torch.Tensor, chosen: torch.Tensor) -> torch.Tensor:
    """log p, (T,) in fp32, of the tokens `chosen` (T,), from the rows of `logits` (T, V).

    Equals `log_softmax(logits.float())` at these tokens, with its gradient rounded to the type of the logits as by a
    cast, but no more than `AT_ONCE` logits are in fp32 at a time.
    """
    return _ChosenLogP.apply(logits, chosen)


# ---------------------------------------------------------------- generator


SUREST = 1 - 2**-20  # largest probability used for unlikelihood, which is then 13.9


def train(spec: RunSpec, corpus: Corpus, objective: "Generate") -> Run:
    """`fit` for a generator; a model named in `PARTS` is made at its first use."""
    language_model(spec.model)
    return fit(spec, corpus, objective=objective)


class Generate:
    """Objective: the likelihood of every token of a pair, and the unlikelihood of the hypothesis under a wrong label.

    The loss of a batch is the mean over its pairs; the loss of a pair is::

        - sum over all tokens after the start of log p(token | before)
        - lambda sum over the tokens of the hypothesis of log(1 - p(token | premise, wrong label, before))

    In evaluation, "one" is replaced by the mean over all wrong labels.

    Recorded for each pair: the log-probability of the hypothesis and its end under each label, (C,). Its argmax is the
    predicted class, which the log's "accuracy" counts; in a training pass, labels that were not computed count as
    impossible. With two classes, "one" and "both" are the same.

    Attributes
    ----------
    unlikelihood
        lambda, the weight of the second term; 0 omits the term and its pass
    wrong
        "one" wrong label of each pair, drawn uniformly in every step, or "both": the sum over all of them

    Notes
    -----
    *Departures*: the paper does not say whether one wrong label is used or both. Here the end of the text is not made
    unlikely, because the hypothesis ends under any label; above p = `SUREST`, 1 - p is taken at `SUREST`, but the
    gradient continues.

    References
    ----------
    The paper on debiased generation, sections 2.1 and 2.2.1; lambda is 0.5 (Table 7).
    """

    def __init__(self, unlikelihood: float = 0.5, wrong: Literal["one", "both"] = "one"):
        if unlikelihood < 0 or wrong not in ("one", "both"):
            raise TrainingError(f"unlikelihood={unlikelihood} must not be negative, wrong={wrong!r} one or both")
        self.unlikelihood, self.wrong = unlikelihood, wrong
        self.name = generate_name(unlikelihood, wrong)

    def arrays(self, spec: RunSpec, corpus: Corpus, tokens: Tokens | None = None) -> Arrays:
        if self.unlikelihood and len(corpus.classes) < 2:
            raise TrainingError(f"{corpus.name} has one class: no label is wrong, so unlikelihood must be 0")
        tokens = encode.sequences(corpus, load_tokenizer(spec.model), spec.max_length)
        return {"tokens": tokens, "labels": torch.tensor(corpus.labels)}

    def model(self, spec: RunSpec, classes: tuple[str, ...]) -> tuple[PreTrainedModel, list[str]]:
        """Load the language model `spec.model`. Raises `TrainingError` if the checkpoint is not a language model."""
        torch.manual_seed(spec.seed)
        model = load(find_model(spec.model))
        pieces = encode.label_pieces(encode.frame(classes, load_tokenizer(spec.model)))
        model.register_buffer("label_pieces", pieces, persistent=False)
        if pick_device().type == "cuda":
            compile_layers(model)
        return model, []

    def loss(self, model: PreTrainedModel, batch: dict) -> tuple[torch.Tensor, torch.Tensor]:
        """Run the model on the batch under all its labels together, the right ones first."""
        tokens, labels = batch["tokens"], batch["labels"]
        wrong = self._wrong_labels(model, labels)
        under = [tokens, *(encode.relabelled(tokens, each, model.label_pieces) for each in wrong)]
        first = [PREMISE, *[HYPOTHESIS] * len(wrong)]  # where the wanted part of each begins
        wanted = [each["part"][:, 1:] >= part for each, part in zip(under, first, strict=True)]
        log_p = log_probabilities(model, [each["input_ids"] for each in under], wanted)
        recorded = torch.full((len(labels), len(model.label_pieces)), -torch.inf, device=labels.device)
        for label, each, sequence in zip([labels, *wrong], log_p, under, strict=True):
            spoken = torch.where(sequence["part"][:, 1:] >= HYPOTHESIS, each, 0).sum(1)  # its end too
            recorded.scatter_(1, label[:, None], spoken.detach()[:, None])
        loss = self._own(log_p[0], batch)
        weight = self.unlikelihood / (len(wrong) if wrong and self.wrong == "one" else 1)
        for each, sequence in zip(log_p[1:], under[1:], strict=True):
            loss = loss + weight * (unlikelihood(each) * (sequence["part"][:, 1:] == HYPOTHESIS)).sum(1)
        return loss.mean(), recorded

    def _own(self, own: torch.Tensor, batch: dict) -> torch.Tensor:
        """The first term, (B,), from the log-probabilities (B, L - 1) of the tokens under the right labels."""
        return -own.sum(1)

    def _wrong_labels(self, model: PreTrainedModel, labels: torch.Tensor) -> list[torch.Tensor]:
        """The wrong labels to compute in addition to the right ones (B,), each (B,): all of them in evaluation."""
        classes = len(model.label_pieces)
        if not model.training or (self.unlikelihood and self.wrong == "both"):
            return [(labels + step) % classes for step in range(1, classes)]
        if not self.unlikelihood:
            return []
        # on the CPU, because the loop seeds its stream in every epoch, so that a resumed run draws the same
        return [(labels + torch.randint(1, classes, labels.shape).to(labels.device)) % classes]


class Debias(Generate):
    """Objective: learn the pairs that the z-filter kept, and avoid the features for which it rejected the others;
    starts from a generator.

    The losses of a kept and of a rejected pair, with m_t = 0 for a token that contributes to a biased feature of the
    pair's label and m_t = 1 for any other::

        - sum over all tokens of log p_t
        - alpha sum over all tokens of log(m_t p_t + (1 - m_t)(1 - p_t))

    So the other tokens of a rejected pair are learnt like those of a kept pair; if the mask is 0 on the whole
    hypothesis, premise, label and end are still learnt.

    Attributes
    ----------
    rejected
        (N,) bool, the pairs that the filter rejected
    premise, hypothesis, whole
        the words that contributed to the features of the rejection, as `measure.giveaways.Flagged`
    alpha
        weight of the rejected pairs

    Notes
    -----
    *Departures*: means over batches with kept and rejected pairs replace the two sums; they are proportional to them on
    average. Biased features are those for which a pair was rejected, at its turn in the filter's pass; the paper does
    not say which Z is meant.

    References
    ----------
    The paper on debiased generation, section 4.1; alpha is 1 (Table 7).
    """

    def __init__(
        self, rejected: ArrayLike, premise: ArrayLike, hypothesis: ArrayLike, whole: ArrayLike, alpha: float = 1.0
    ):
        super().__init__(0.0)
        self.rejected, self.alpha = np.asarray(rejected, bool), alpha
        self.premise, self.hypothesis, self.whole = (np.asarray(each, bool) for each in (premise, hypothesis, whole))
        if self.rejected.all():
            raise TrainingError("the filter kept no pair: there is nothing to learn, only something to avoid")
        self.name = debias_name(self.rejected, self.premise, self.hypothesis, self.whole, alpha=alpha)

    def arrays(self, spec: RunSpec, corpus: Corpus, tokens: Tokens | None = None) -> Arrays:
        """`flagged` is 1 where m = 0: at the tokens of rejected pairs that should become unlikely."""
        if len(self.rejected) != len(corpus):
            raise TrainingError(f"the mask is made for {len(self.rejected)} pairs, the corpus has {len(corpus)}")
        tokenizer = load_tokenizer(spec.model)
        premise = encode.flagged_pieces(corpus.premise, self.premise, tokenizer)
        hypothesis = encode.flagged_pieces(corpus.hypothesis, self.hypothesis, tokenizer, whole=self.whole)
        tokens = encode.sequences(corpus, tokenizer, spec.max_length, (premise, hypothesis))
        rejected = torch.from_numpy(self.rejected)
        tokens.columns["flagged"] *= rejected.repeat_interleave(tokens.offsets.diff())
        return {"tokens": tokens, "labels": torch.tensor(corpus.labels), "rejected": rejected}

    def _own(self, own: torch.Tensor, batch: dict) -> torch.Tensor:
        flagged = batch["tokens"]["flagged"][:, 1:] > 0
        each = torch.where(flagged, unlikelihood(own), -own).sum(1)
        return torch.where(batch["rejected"], self.alpha * each, each)


def unlikelihood(log_p: torch.Tensor) -> torch.Tensor:
    """-log(1 - p), 0 and up, in the same shape; for p above `SUREST` the value at `SUREST`, so never infinite.

    The gradient for a logit, at most 1, continues there: the derivative uses the true p.
    """
    p = log_p.exp()
    return -torch.log1p(-(p - (p - p.clamp(max=SUREST)).detach()))


def log_probabilities(
    model: PreTrainedModel, batches: list[torch.Tensor], wanted: list[torch.Tensor]
) -> list[torch.Tensor]:
    """log p of each token after the first, given those before it, in fp32; 0 where it is not `wanted`.

    The output layer is computed only for the wanted tokens if the model allows it (`load`). No attention mask is
    needed, because padding comes after everything that counts. Under bf16 autocast the logits are rounded to bf16, as
    in transformers' training, and everything computed from them is fp32.

    Parameters
    ----------
    batches, wanted
        lists of batches, which go through the model together: ids (B, L) and booleans (B, L - 1). The result is (B, L -
        1) for each
    """
    longest = max(each.shape[1] for each in batches)
    ids = torch.cat([functional.pad(each, (0, longest - each.shape[1])) for each in batches])
    asked = torch.cat([functional.pad(each, (0, longest - 1 - each.shape[1])) for each in wanted])
    if model.plain_head:
        hidden = model.base_model(input_ids=ids, use_cache=False).last_hidden_state[:, :-1]
        logits = model.get_output_embeddings()(hidden[asked])
    else:
        logits = model(input_ids=ids, use_cache=False).logits[:, :-1][asked]
    each = chosen_log_p(logits, ids[:, 1:][asked])
    together = each.new_zeros(asked.shape).masked_scatter(asked, each)
    parts = together.split([len(part) for part in batches])
    return [part[:, : of.shape[1]] for part, of in zip(parts, wanted, strict=True)]


def compile_layers(model: PreTrainedModel, **options) -> None:
    """Compile each layer of `model` into one program at its first use, by `torch.compile` with `options`.

    A layer of a language model has about fifty operations, so small that a GPU waits for the next one during most of a
    step. All layers share one program, for batches of any shape. Set TORCH_COMPILE_DISABLE=1 if you cannot compile.

    Notes
    -----
    *Departures*: under bf16, results between the operations of a layer are rounded less often than elsewhere.
    """
    for module in model.modules():
        if isinstance(module, GradientCheckpointingLayer):  # transformers' class of the layers that a model repeats
            module.compile(dynamic=True, **options)


def load(path: str) -> PreTrainedModel:
    """Load the causal language model in a folder or under a hub id, in fp32. Its `plain_head` is True if its logits are
    the output layer of its last hidden state and nothing else.

    Raises
    ------
    TrainingError
        If the checkpoint has no output layer, or the model looks ahead.
    """
    model, loading = AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32, output_loading_info=True)
    if loading["missing_keys"]:
        some = ", ".join(sorted(loading["missing_keys"])[:3])
        raise TrainingError(f"{path} is no language model: it has no weights for {some}. Name a causal language model")
    model.eval()
    ids = torch.tensor([[1, 2, 3, 4], [1, 2, 3, 0]])
    with torch.inference_mode():
        logits = model(input_ids=ids, use_cache=False).logits
        plain = model.get_output_embeddings()(model.base_model(input_ids=ids, use_cache=False).last_hidden_state)
    if not torch.allclose(logits[0, :3], logits[1, :3], atol=1e-4):
        raise TrainingError(f"{path} sees the words that follow: name a causal language model, not an encoder")
    model.plain_head = plain.shape == logits.shape and torch.allclose(plain, logits, atol=1e-5)
    return model


# ---------------------------------------------------------------- sampling


@torch.no_grad()  # under inference_mode autocast would make its bf16 copies of the weights again for every token
def sample(
    model: PreTrainedModel, start: int, end: int, draws: Sequence[int], *, seed: int, max_length: int = 128
) -> list[np.ndarray | None]:
    """Sample one sequence for each number in `draws`: the ids between start and end, None if no end came in time.

    Each token is drawn from the model's whole distribution (temperature 1, nothing cut off): a random number that
    depends on `seed` and the draw's number is located in the cumulative probabilities. So a draw does not depend on the
    other draws, except through the last digits of the model's arithmetic, which differ between batch sizes; the same
    `draws` together give the same ids.

    Notes
    -----
    *Departures*: the paper states no temperature.

    References
    ----------
    The paper on debiased generation, section 2.2.1: "randomly sample".
    """
    device = pick_device()
    model.to(device).eval()
    uniform = np.stack([np.random.default_rng([seed, draw]).random(max_length) for draw in draws])
    uniform = torch.from_numpy(uniform).to(device)
    drawn = torch.full((len(draws), max_length), end, device=device)
    drawn[:, 0] = start
    going = torch.arange(len(draws), device=device)  # the rows in the cache, in its order
    cache = None
    # entered once, because autocast keeps those copies until it is left
    with torch.autocast(device.type, torch.bfloat16, enabled=takes_bf16("bf16")):
        for at in range(1, max_length):
            found = model(input_ids=drawn[going, at - 1 : at], past_key_values=cache, use_cache=True)
            cache = found.past_key_values
            cumulated = found.logits[:, -1].softmax(-1, dtype=torch.float32).cumsum(-1, dtype=torch.float64)
            wanted = uniform[going, at, None] * cumulated[:, -1:]
            token = torch.searchsorted(cumulated, wanted, right=True)[:, 0].clamp(max=cumulated.shape[1] - 1)
            ended = drawn[going, at - 1] == end if at > 1 else torch.zeros_like(going, dtype=torch.bool)
            drawn[going, at] = torch.where(ended, end, token)
            alive = drawn[going, at] != end
            if not (left := int(alive.sum())):
                break
            if left <= len(going) // 2 and hasattr(cache, "batch_select_indices"):
                cache.batch_select_indices(torch.nonzero(alive)[:, 0])
                going = going[alive]
    drawn = drawn.cpu().numpy()[:, 1:]
    return [row[: (row == end).argmax()] if (row == end).any() else None for row in drawn]
