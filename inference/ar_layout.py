"""How stage 0's share of memory is laid out: weights, KV slots, and what is kept of references."""

from __future__ import annotations

from inference.checkpoint import Checkpoint
from inference.deploy import DeployConfig
from inference.device import device_memory, weight_bytes
from inference.memory import OutOfBudget, kv_slots, spare_slots
from inference.runner import ARRunner

_SLOTS_A_KEPT = 4  # for so many KV slots, one slot's worth of references is kept (of a slot: some three of 30 s)


def lay_out_runner(checkpoint: Checkpoint, deploy: DeployConfig, device: str) -> tuple[ARRunner, int]:
    """The model with as many KV slots as are wanted and fit -> and positions of references that may be kept."""
    config, stage = checkpoint.config, deploy.ar
    if stage.max_model_len > config.max_seq_len:
        raise ValueError(
            f"stages[0].max_model_len: the checkpoint's max_seq_len is {config.max_seq_len}, got {stage.max_model_len}"
        )
    model = checkpoint.load_dual_ar("float32" if device == "cpu" else config.dtype or "bfloat16", device)
    size = model.norm.weight.element_size()
    slot = 2 * config.n_layer * config.n_local_heads * stage.max_model_len * config.head_dim * size
    share = device_memory(device, stage), stage.memory_utilization, weight_bytes(model), slot
    graphs = device != "cpu" and not stage.enforce_eager
    slots = kv_slots(*share, stage.max_num_streams + graphs) - graphs  # graphs need one that stands for no sequence
    if slots < 1:
        raise OutOfBudget(
            f"stages[0].gpu_memory_utilization: {stage.memory_utilization} leaves room for one KV slot; with "
            "stages[0].enforce_eager: false two are needed"
        )
    kept = spare_slots(*share, slots + graphs, wanted=max(1, slots // _SLOTS_A_KEPT)) * stage.max_model_len
    kind = _graph_runner() if graphs else ARRunner
    runner = kind(model, stage.max_num_seqs, slots, max_len=stage.max_model_len, ignore_eos=deploy.ignore_eos)
    return runner, kept


def _graph_runner() -> type[ARRunner]:
    from inference.cuda.graph_runner import GraphRunner  # only where there is such a device

    return GraphRunner
