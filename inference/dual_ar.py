"""The dual-autoregressive model: the slow AR makes one semantic token a frame, the fast AR the frame's codes.

Shapes: B rows, T positions, C slow width, Q codebooks, S semantic codes.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from inference.config import ArkttsConfig
from inference.transformer import Attend, Block, RMSNorm, TransformerShape, rope_table, run_blocks, turns_at


def slow_shape(config: ArkttsConfig) -> TransformerShape:
    """Widths of the slow AR's stack."""
    return TransformerShape(
        dim=config.dim,
        n_layer=config.n_layer,
        n_head=config.n_head,
        n_local_heads=config.n_local_heads,
        head_dim=config.head_dim,
        intermediate_size=config.intermediate_size,
        norm_eps=config.norm_eps,
        qkv_bias=config.attention_qkv_bias,
        qk_norm=config.attention_qk_norm,
        o_bias=config.attention_o_bias,
    )


def fast_shape(config: ArkttsConfig) -> TransformerShape:
    """Widths of the fast AR's stack."""
    return TransformerShape(
        dim=config.fast_dim,
        n_layer=config.n_fast_layer,
        n_head=config.fast_n_head,
        n_local_heads=config.fast_n_local_heads,
        head_dim=config.fast_head_dim,
        intermediate_size=config.fast_intermediate_size,
        norm_eps=config.norm_eps,
        qkv_bias=config.fast_attention_qkv_bias,
        qk_norm=config.fast_attention_qk_norm,
        o_bias=config.fast_attention_o_bias,
    )


class DualAR(nn.Module):
    """All weights of `model.safetensors`, under the checkpoint's names, and the passes that generation is made of."""

    def __init__(self, config: ArkttsConfig):
        super().__init__()
        self.config = config
        slow, fast = slow_shape(config), fast_shape(config)
        self.embeddings = nn.Embedding(config.vocab_size, config.dim)
        self.codebook_embeddings = nn.Embedding(config.codebook_size * config.num_codebooks, config.dim)
        self.layers = nn.ModuleList(Block(slow) for _ in range(config.n_layer))
        self.norm = RMSNorm(config.dim, config.norm_eps)
        same_width = config.fast_dim == config.dim
        self.fast_project_in = nn.Identity() if same_width else nn.Linear(config.dim, config.fast_dim)
        self.fast_embeddings = nn.Embedding(config.codebook_size, config.fast_dim)
        self.fast_layers = nn.ModuleList(Block(fast) for _ in range(config.n_fast_layer))
        self.fast_norm = RMSNorm(config.fast_dim, config.norm_eps)
        self.fast_output = nn.Linear(config.fast_dim, config.codebook_size, bias=False)
        # Buffers are filled here, and not by a checkpoint: a loader that skips `__init__` would leave them undefined.
        self.register_buffer(
            "rope", rope_table(config.max_seq_len, config.head_dim, config.rope_base), persistent=False
        )
        self.register_buffer(
            "fast_rope", rope_table(config.num_codebooks, config.fast_head_dim, config.rope_base), persistent=False
        )
        self.register_buffer(
            "code_offsets", torch.arange(config.num_codebooks) * config.codebook_size, persistent=False
        )
        allowed = [*range(config.semantic_begin_id, config.semantic_end_id + 1), config.eos_token_id]
        self.register_buffer("allowed_ids", torch.tensor(allowed), persistent=False)  # [S + 1], eos last

    def embed(self, packed: Tensor) -> Tensor:
        """packed [B, Q + 1, T]: row 0 token ids, the others codes -> [B, T, C].

        A semantic id gets the sum of its frame's code embeddings on top of its own, unscaled.
        """
        tokens, codes = packed[:, 0], packed[:, 1:]
        semantic = (tokens >= self.config.semantic_begin_id) & (tokens <= self.config.semantic_end_id)
        summed = self.codebook_embeddings(codes + self.code_offsets[:, None]).sum(dim=1)
        return self.embeddings(tokens) + summed * semantic[..., None]

    def slow(self, embedded: Tensor, positions: Tensor, attend: Attend) -> Tensor:
        """embedded [B, T, C] at `positions` [B or 1, T] -> hidden [B, T, C] before the final norm."""
        return run_blocks(self.layers, embedded, turns_at(self.rope, positions), attend)

    def semantic_logits(self, normed: Tensor) -> Tensor:
        """Final-norm hidden [..., C] -> logits [..., S + 1] of the semantic ids and, last, of the end token.

        The head is tied to the embeddings; no other id can be chosen, so no other logit is computed.
        """
        return F.linear(normed, self.semantic_head)

    @property
    def semantic_head(self) -> Tensor:
        """Rows of the tied head that can be chosen, [S + 1, C]."""
        frozen = getattr(self, "_semantic_head", None)
        return self.embeddings.weight[self.allowed_ids] if frozen is None else frozen

    def freeze(self) -> DualAR:
        """Lay the weights out for inference; after this they must not change any more.

        The head's rows are gathered once.  On a CPU the matrices of linear layers are stored input-major: products with
        the few rows of a step take a fifth less time then.
        """
        self.eval().requires_grad_(False)
        self._semantic_head = self.embeddings.weight[self.allowed_ids].contiguous()
        if self._semantic_head.device.type == "cpu":
            self._semantic_head = _input_major(self._semantic_head)
            for module in self.modules():
                if isinstance(module, nn.Linear):
                    module.weight.data = _input_major(module.weight.data)
        return self

    def fast_input(self, hidden: Tensor) -> Tensor:
        """Slow hidden [..., C] before the final norm -> the fast AR's position 0, [..., fast_dim]."""
        return self.fast_project_in(self.norm(hidden) if self.config.norm_fastlayer_input else hidden)

    def fast(self, x: Tensor, first: int, attend: Attend) -> Tensor:
        """x [B, T, fast_dim] at positions first, first + 1, … -> logits [B, T, codebook_size]."""
        positions = torch.arange(first, first + x.shape[1], device=x.device)[None]
        turns = turns_at(self.fast_rope, positions)
        return self.fast_output(self.fast_norm(run_blocks(self.fast_layers, x, turns, attend)))


def _input_major(weight: Tensor) -> Tensor:
    """The same matrix [O, I] with its columns contiguous."""
    return weight.t().contiguous().t()
