"""Training on the part of the vocabulary that occurs.

A word piece that is nowhere in the training corpus has a zero gradient in every step, so both Adam moments of its
embedding stay zero and AdamW only multiplies the row by (1 - lr_t * weight_decay). Those rows are left out of the
training (30,522 rows of 384 become a few thousand: no dense gradient to clear, clip and step through) and get the
product of those factors at the end.
"""

import torch
from torch import nn
from torch.nn import functional
from transformers import PreTrainedModel


class CompactEmbedding(nn.Module):
    """Stands in for an embedding of which only the rows `ids` occur; takes and gives what the whole one does.

    An id outside `ids` raises `IndexError`; it never gives a wrong row.
    """

    def __init__(self, whole: nn.Embedding, ids: torch.Tensor):
        super().__init__()
        lookup = torch.full((whole.num_embeddings,), -1, device=ids.device)
        lookup[ids] = torch.arange(len(ids), device=ids.device)
        self.register_buffer("lookup", lookup, persistent=False)
        self.register_buffer("ids", ids, persistent=False)
        self.weight = nn.Parameter(whole.weight.detach()[ids].clone())
        padding = -1 if whole.padding_idx is None else int(lookup[whole.padding_idx])
        self.padding_idx = None if padding < 0 else padding

    def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
        # A sparse gradient holds the rows of this batch only; a dense one would be cleared and summed in every step.
        # On a GPU the dense one is kept: adding rows there is not done in a fixed order.
        sparse = self.weight.device.type == "cpu"
        return functional.embedding(self.lookup[input_ids], self.weight, self.padding_idx, sparse=sparse)


def compact(model: PreTrainedModel, ids: torch.Tensor) -> tuple[nn.Embedding | None, str]:
    """Replace `model`'s word embedding by the rows `ids` of it; returns the whole one, and in words what was done.

    Returns None where the table cannot be cut: it is no plain embedding, or another layer shares its weights.
    """
    whole = model.get_input_embeddings()
    if type(whole) is not nn.Embedding or whole.max_norm is not None or whole.scale_grad_by_freq or whole.sparse:
        return None, f"word embedding stays whole: {type(whole).__name__} is not a plain embedding"
    users = [name for name, each in model.named_parameters(remove_duplicate=False) if each is whole.weight]
    if len(users) > 1:
        return None, f"word embedding stays whole: shared by {', '.join(users)}"
    model.set_input_embeddings(CompactEmbedding(whole, ids))
    return whole, f"{len(ids):,} of {whole.num_embeddings:,} word pieces occur and are trained"


@torch.no_grad()
def restore(model: PreTrainedModel, whole: nn.Embedding | None, decay: float) -> None:
    """Put the whole embedding back: trained rows as they are, the others times `decay`, the product over all steps."""
    if whole is None:
        return
    part = model.get_input_embeddings()
    whole.weight.mul_(decay)
    whole.weight[part.ids] = part.weight.to(whole.weight.dtype)
    model.set_input_embeddings(whole)
