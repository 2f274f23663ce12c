"""Many small trainings at once on a GPU, of which one alone uses little::

    runs = together([lambda: fit(spec, corpus) for spec in specs])

Each training runs in a separate thread, as it would alone: its rows in its order, its log, checkpoints, early stopping
and files. Only a step is taken for all trainings of one shape and schedule (seeds, arms, folds), by the last that asks
for it. Their weights are stacked, (M, ...), and the tokens of their batches follow each other without padding, (T, W):
a linear layer is one grouped product, AdamW one call, a step of one size one captured graph.

Rows of a batch do not mix, so a step gives each training what it gets alone, up to rounding; dropout masks come from
another random stream. Only classifiers built like BERT are stacked; others are trained alone, after those.

Notes
-----
*Departures*: attention alone is padded, to the longest text of the step.
"""

from __future__ import annotations

import functools
import threading
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
import torch
import transformers
from torch.nn import functional

from nli_lib.corpora.corpus import Corpus
from nli_lib.learn import fit
from nli_lib.learn.model import find_model, pick_device
from nli_lib.store import RunSpec

WORDS, PLACES, TYPES = (f"bert.embeddings.{name}_embeddings.weight" for name in ("word", "position", "token_type"))
FILLED = 2048  # a captured step is filled up to a multiple of so many tokens, so that few sizes occur
LONG = 8  # and its longest text to a multiple of so many
WARM = 2  # steps of a size before it is captured
MOMENTS = "exp_avg", "exp_avg_sq"
LOADING = threading.Lock()  # a head is drawn from the one random stream of all threads
ASKED = ("enter", "evaluate", "train")  # in the order in which they are served


class AloneError(Exception):
    """A training that cannot be stacked; it has not begun."""


def each(calls: Sequence[Callable[[], object]]) -> None:
    """Do each; where there is a GPU, their trainings together."""
    if pick_device().type == "cuda":
        together(calls)
        return
    for call in calls:
        call()


def together(calls: Sequence[Callable[[], object]], at_once: int = 32) -> list:
    """Call `calls`, which train by `fit`, `at_once` of them together; return their results.

    An error in one leaves the others alone and is raised at the end.
    """
    found = []
    for start in range(0, len(calls), at_once):
        part = calls[start : start + at_once]
        room = Room(len(part))
        results = [None] * len(part)
        given = [(room, results, at, call) for at, call in enumerate(part)]
        threads = [threading.Thread(target=_work, args=each, daemon=True) for each in given]  # a stop ends them too
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        found += results
    found = [call() if isinstance(each, AloneError) else each for call, each in zip(calls, found, strict=True)]
    for error in found:
        if isinstance(error, Exception):
            raise error
    return found


def _work(room: Room, results: list, at: int, call: Callable[[], object]) -> None:
    fit.HERE.loop = functools.partial(StackedLoop, room)
    try:
        results[at] = call()
    except Exception as error:
        results[at] = error
    finally:
        room.leave()


class Room:
    """A place where `members` threads meet: what all have asked for is done by the last, in its thread."""

    def __init__(self, members: int):
        self.members, self.asked, self.found, self.turn = members, {}, {}, threading.Condition()

    def ask(self, loop: StackedLoop, kind: str, *what: object) -> object:
        """The answer for `loop` to a question of this kind, one of `ASKED`. Raises what answering it raised."""
        with self.turn:
            self.asked[loop] = kind, what
            self._serve()
            self.turn.wait_for(lambda: loop in self.found)
            found = self.found.pop(loop)
        if isinstance(found, Exception):
            raise found
        return found

    def leave(self) -> None:
        with self.turn:
            self.members -= 1
            self._serve()

    def _serve(self) -> None:
        """Answer the questions of one kind once all members have asked; a step waits while others evaluate."""
        if not self.asked or len(self.asked) < self.members:
            return
        kind = min((kind for kind, _ in self.asked.values()), key=ASKED.index)
        stacks = {}
        for loop in [loop for loop, (asked, _) in self.asked.items() if asked == kind]:
            stacks.setdefault(loop.kind if kind == "enter" else loop.stack, {})[loop] = self.asked.pop(loop)[1]
        for stack, group in stacks.items():
            try:
                self.found |= dict.fromkeys(group, Stack(group)) if kind == "enter" else getattr(stack, kind)(group)
            except Exception as error:
                self.found |= dict.fromkeys(group, error)
        self.turn.notify_all()


class StackedLoop(fit.Loop):
    """The loop of a training whose steps are taken together with others."""

    written_out = False
    stack = None

    def __init__(self, room: Room, spec: RunSpec, corpus: Corpus, **parts: object):
        kind = transformers.AutoConfig.from_pretrained(find_model(spec.model)).model_type
        if kind != "bert" or type(parts.get("objective") or fit.Classify()) is not fit.Classify:
            raise AloneError(f"{spec.id}: only classifiers built like BERT are stacked")
        with LOADING:
            super().__init__(spec, corpus, **parts)
        self.room = room

    @property
    def kind(self) -> str:
        """A key that stacked trainings share: all that decides a step but the rows, and how far they are."""
        names = {"corpus", "content", "split", "limit", "subset", "view", "validation", "model", "seed"}
        shapes = {name: each.shape for name, each in self.model.named_parameters() if "word_embeddings" not in name}
        config = self.model.config.hidden_act, self.model.config.num_attention_heads
        return repr((self.spec.model_dump(exclude=names), shapes, config, self.optimizer.steps, self.step_number))

    @property
    def step_number(self) -> int:
        return self.optimizer.step_number

    def start_epoch(self, epoch: int) -> list[np.ndarray]:
        with LOADING:
            batches = super().start_epoch(epoch)
        self.stack = self.stack or self.room.ask(self, "enter")
        return batches

    def forward(self, rows: np.ndarray, arrays: fit.Arrays | None = None) -> tuple[torch.Tensor, torch.Tensor]:
        """As a loop's; without dropout once the training has begun."""
        if self.stack is None:
            return super().forward(rows, arrays)
        return self.room.ask(self, "evaluate", rows, bool(self.watched) and arrays is self.watched)

    def step(self, rows: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
        found = self.room.ask(self, "train", rows, False)
        if self.step_number % (self.optimizer.steps // self.spec.epochs) == 0:  # the last of its epoch
            self.stack.give(self)
        return found

    def vectors(self) -> list[dict[str, list[torch.Tensor]]]:
        """For each group of the optimizer: a parameter's name -> views of its weights and, from the first step on, of
        both moments."""
        names, found = {each: name for name, each in self.model.named_parameters()}, []
        for group in self.optimizer.groups:
            state = self.optimizer.adamw.state.setdefault(group.master, {})
            if not state:
                state |= {"step": torch.zeros((), device=self.device)}
                state |= {name: torch.zeros_like(group.master) for name in MOMENTS}
            flat = group.master, *(state[name] for name in MOMENTS)
            cut = zip(*(each.split([p.numel() for p in group.parameters]) for each in flat), strict=True)
            views = zip(group.parameters, cut, strict=True)
            found.append({names[p]: [each.view_as(p) for each in flat] for p, flat in views})
        return found


class Stack:
    """M trainings of one shape and schedule; B texts of T tokens in a step.

    Attributes
    ----------
    weights
        name of a parameter -> the weights of all in fp32, (M, ...); those of the word pieces, of which each training
        has others, follow each other, (V, W)
    of
        name -> the training to which each row of the weights belongs, (M,) or (V,)
    """

    def __init__(self, loops: Sequence[StackedLoop]):
        self.loops, first = list(loops), next(iter(loops))
        self.device, self.config, self.spec = first.device, first.model.config, first.spec
        self.lower = torch.bfloat16 if first.bf16 else torch.float32
        self.weights, self.of, settings, states = {}, {}, [], {}
        groups = zip(*(loop.vectors() for loop in loops), strict=True)
        for group, own in zip(groups, first.optimizer.adamw.param_groups, strict=True):
            for name in group[0]:
                joined = torch.cat if name == WORDS else torch.stack
                weights, *moments = (joined(each) for each in zip(*(views[name] for views in group), strict=True))
                sizes = torch.tensor([len(views[name][0]) if name == WORDS else 1 for views in group])
                self.of[name] = torch.arange(len(group)).repeat_interleave(sizes).to(self.device)
                self.weights[name] = weights.requires_grad_()
                step = torch.tensor(float(first.step_number), device=self.device)
                states[weights] = {"step": step, **dict(zip(MOMENTS, moments, strict=True))}
            settings.append({"params": [self.weights[name] for name in group[0]], "weight_decay": own["weight_decay"]})
        # elsewhere a grouped product asks the CPU for the sizes of its groups, which no captured graph can
        self.graphs = first.bf16 and self.device.type == "cuda" and torch.cuda.get_device_capability() >= (9, 0)
        self.rate = torch.zeros((), device=self.device)
        how = {"lr": self.rate, "eps": self.spec.epsilon, "fused": True, "capturable": self.graphs}
        self.adamw = torch.optim.AdamW(settings, **how)
        self.adamw.state.update(states)
        self.seen, self.captured = Counter(), {}
        self.pool = torch.cuda.graph_pool_handle() if self.graphs else None
        self._read()

    def _read(self) -> None:
        """Lay out the texts of all trainings: tokens (all,), with ids that are rows of `weights`, and labels; where
        they begin, for each training and either kind of its texts."""
        ids, types, labels, self.starts = [], [], [], {}
        words = tokens_before = texts_before = 0
        for number, loop in enumerate(self.loops):
            embedding = loop.model.get_input_embeddings()
            for watched, arrays in enumerate((loop.arrays, loop.watched)[: 1 + bool(loop.watched)]):
                tokens = arrays["tokens"]
                own = tokens.columns["input_ids"]
                ids.append(embedding.lookup[own] + words)
                types.append(tokens.columns.get("token_type_ids", torch.zeros_like(own)))
                labels.append(arrays["labels"])
                self.starts[number, bool(watched)] = tokens.offsets.numpy() + tokens_before, texts_before
                tokens_before, texts_before = tokens_before + len(own), texts_before + len(labels[-1])
            words += len(embedding.weight)
        self.ids, self.types, self.labels = torch.cat(ids), torch.cat(types), torch.cat(labels)

    def _plan(self, asked: dict[StackedLoop, tuple], fill: bool) -> tuple[tuple[int, int, int], dict]:
        """The size of a step (longest text, tokens, texts) and its indices; with `fill`, with tokens of no text."""
        parts = []
        for number, loop in enumerate(self.loops):
            if loop in asked:
                rows, watched = asked[loop]
                offsets, first = self.starts[number, watched]
                parts.append((np.full(len(rows), number), offsets[rows], offsets[rows + 1], first + rows))
        of, start, end, label = map(np.concatenate, zip(*parts, strict=True))
        size = end - start
        longest, added, spare = int(size.max()), 0, 0
        if fill:
            longest += -longest % LONG
            added, spare = -int(size.sum()) % FILLED, -(-FILLED // longest)
        filled = np.minimum(np.maximum(added - longest * np.arange(spare), 0), longest)
        sizes = np.concatenate([size, filled])
        text = np.repeat(np.arange(len(sizes)), sizes)
        before = np.cumsum(sizes) - sizes
        position = np.arange(len(text)) - before[text]
        owner = np.concatenate([of, np.full(spare, len(self.loops) - 1)])
        count = functools.partial(np.bincount, minlength=len(self.loops))
        plan = {"place": np.concatenate([start, np.zeros(spare, np.int64)])[text] + position, "position": position}
        plan |= {"slot": text * longest + position, "owner": owner[text], "size": sizes, "of": of, "label": label}
        plan |= {"first": before[: len(of)], "ends": count(owner[text]).cumsum(), "text_ends": count(of).cumsum()}
        plan = {name: torch.from_numpy(each).to(self.device, non_blocking=True) for name, each in plan.items()}
        return (longest, len(text), len(of)), plan

    def _forward(self, longest: int, plan: dict, drop: bool) -> tuple[torch.Tensor, torch.Tensor]:
        """The loss of each text (B,) and its logits (B, C)."""
        weights, config = self.weights, self.config
        width, heads = config.hidden_size, config.num_attention_heads
        owner = functional.one_hot(plan["owner"], len(self.loops)).float()  # (T, M): a product spreads weights
        ends = {len(owner): plan["ends"].int(), len(plan["of"]): plan["text_ends"].int()}

        def linear(values: torch.Tensor, *names: str) -> torch.Tensor:
            weight, bias = (torch.cat([weights[f"{each}.{kind}"] for each in names], 1) for kind in ("weight", "bias"))
            of = (owner if len(values) == len(owner) else text).to(self.lower)
            values, weight, bias = (each.to(self.lower) for each in (values, weight, bias))
            return functional.grouped_mm(values, weight.transpose(1, 2), offs=ends[len(values)]) + of @ bias

        def normed(values: torch.Tensor, name: str) -> torch.Tensor:
            values = functional.layer_norm(values.float(), (width,), eps=config.layer_norm_eps)
            return torch.addcmul(owner @ weights[f"{name}.bias"], values, owner @ weights[f"{name}.weight"])

        def dropped(values: torch.Tensor) -> torch.Tensor:
            return functional.dropout(values, config.hidden_dropout_prob, drop)

        def embedded(name: str, ids: torch.Tensor) -> torch.Tensor:
            return functional.embedding(plan["owner"] * weights[name].shape[1] + ids, weights[name].flatten(0, 1))

        text = functional.one_hot(plan["of"], len(self.loops)).float()  # (B, M)
        values = functional.embedding(self.ids[plan["place"]], weights[WORDS])
        values = values + embedded(TYPES, self.types[plan["place"]]) + embedded(PLACES, plan["position"])
        values = dropped(normed(values, "bert.embeddings.LayerNorm"))
        seen = torch.arange(longest, device=self.device) < plan["size"].clamp(min=1)[:, None]
        for layer in range(config.num_hidden_layers):
            at = f"bert.encoder.layer.{layer}"
            joined = linear(values, *(f"{at}.attention.self.{name}" for name in ("query", "key", "value")))
            padded = joined.new_zeros(seen.numel(), 3 * width).index_copy(0, plan["slot"], joined)
            cut = padded.view(len(seen), longest, 3, heads, width // heads).permute(2, 0, 3, 1, 4)
            rate = config.attention_probs_dropout_prob if drop else 0.0
            context = functional.scaled_dot_product_attention(*cut, seen[:, None, None], rate)
            context = context.transpose(1, 2).reshape(-1, width)[plan["slot"]]
            out = linear(context, f"{at}.attention.output.dense")
            values = normed(values + dropped(out), f"{at}.attention.output.LayerNorm")
            up = functional.gelu(linear(values, f"{at}.intermediate.dense"))
            values = normed(values + dropped(linear(up, f"{at}.output.dense")), f"{at}.output.LayerNorm")
        pooled = dropped(linear(values[plan["first"]], "bert.pooler.dense").tanh()).float()
        head = (text @ weights["classifier.weight"].flatten(1)).view(len(pooled), -1, width)
        logits = (head * pooled[:, None]).sum(2) + text @ weights["classifier.bias"]
        return functional.cross_entropy(logits, self.labels[plan["label"]], reduction="none"), logits

    def _answers(self, asked: dict, of: torch.Tensor, losses: torch.Tensor, logits: torch.Tensor) -> dict:
        """The mean loss () and the logits (B, C) of each training."""
        sums = losses.new_zeros(len(self.loops)).index_add(0, of, losses.detach())
        parts = iter(logits.detach().clone().split([len(asked[loop][0]) for loop in self.loops if loop in asked]))
        mine = [(at, loop, next(parts)) for at, loop in enumerate(self.loops) if loop in asked]
        return {loop: (sums[at] / len(part), part) for at, loop, part in mine}

    @torch.inference_mode()
    def evaluate(self, asked: dict[StackedLoop, tuple]) -> dict[StackedLoop, tuple[torch.Tensor, torch.Tensor]]:
        (longest, *_), plan = self._plan(asked, fill=False)
        return self._answers(asked, plan["of"], *self._forward(longest, plan, drop=False))

    def train(self, asked: dict[StackedLoop, tuple]) -> dict[StackedLoop, tuple[torch.Tensor, torch.Tensor]]:
        size, plan = self._plan(asked, self.graphs)
        optimizers = [loop.optimizer for loop in asked]
        at, steps = optimizers[0].step_number, optimizers[0].steps
        if at % (steps // self.spec.epochs) == 0:
            seeds = [*sorted(loop.spec.seed for loop in self.loops), at]
            torch.manual_seed(int(np.random.SeedSequence(seeds).generate_state(1)[0]))
        rate = self.spec.learning_rate * fit.rate_factor(self.spec, at, steps)
        self.rate.fill_(rate)
        self.seen[size] += 1
        replays = self.graphs and self.seen[size] > WARM
        found = self._replayed(size, plan) if replays else self._step(size[0], plan)
        for each in optimizers:
            each.step_number += 1
            each.decay_product *= 1 - rate * self.spec.weight_decay
        return self._answers(asked, plan["of"], *found)

    def _step(self, longest: int, plan: dict) -> tuple[torch.Tensor, torch.Tensor]:
        """One update of all weights; the losses (B,) and logits (B, C) before it."""
        losses, logits = self._forward(longest, plan, drop=True)
        counts = plan["text_ends"].diff(prepend=plan["text_ends"].new_zeros(1))
        (losses / counts[plan["of"]]).sum().backward()
        if self.spec.clip is not None:
            squares = torch.zeros(len(self.loops), device=self.device)
            for name, each in self.weights.items():
                squares = squares.index_add(0, self.of[name], each.grad.flatten(1).square().sum(1))
            factor = (self.spec.clip / (squares.sqrt() + 1e-6)).clamp(max=1)  # as in clip_grad_norm_
            for name, each in self.weights.items():
                each.grad.mul_(factor[self.of[name]].view(-1, *[1] * (each.dim() - 1)))
        self.adamw.step()
        self.adamw.zero_grad()
        return losses.detach(), logits.detach()

    def _replayed(self, size: tuple[int, int, int], plan: dict) -> tuple[torch.Tensor, torch.Tensor]:
        """A step as one captured graph, which reads its indices where those of its first plan lay."""
        if size not in self.captured:
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, pool=self.pool):
                found = self._step(size[0], plan)
            self.captured[size] = graph, plan, found
        graph, place, found = self.captured[size]
        for name, each in plan.items():
            place[name].copy_(each)
        graph.replay()
        return found

    def give(self, loop: StackedLoop) -> None:
        """Copy the weights and moments of one training to where it keeps them itself."""
        number = self.loops.index(loop)
        for group, flat in zip(loop.vectors(), loop.optimizer.groups, strict=True):
            for name, views in group.items():
                state = self.adamw.state[self.weights[name]]
                stacked = self.weights[name].detach(), *(state[kind] for kind in MOMENTS)
                for view, each in zip(views, stacked, strict=True):
                    view.copy_(each[self.of[name] == number].view_as(view))
            loop.optimizer.adamw.state[flat.master]["step"].fill_(loop.step_number)
            flat.refresh()
