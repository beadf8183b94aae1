"""The rows of `weft bench train-gpt --mesh ...` in torch: DTensor tensor parallelism, DDP or fully_shard, and 1F1B.

    python train_gpt_parallel.py --mesh dp=2,pp=1,tp=2 [--sharded] [--precisions bf16,tf32,fp32] [--cpu --tiny]

The model is that of `weft bench train-gpt`; the attention is F.scaled_dot_product_attention, AdamW the fused one.
With --sharded, bf16 means parameters gathered and computed in bfloat16 and gradients reduced in float32; else autocast.
"""
import argparse
import contextlib
import json
import os
import statistics
import time
import warnings

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
import torch.nn.functional as F
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor, Replicate
from torch.distributed.tensor.parallel import ColwiseParallel, PrepareModuleInput, RowwiseParallel, parallelize_module
from torch.distributed.tensor.parallel.ddp import _pre_dp_module_transform
from torch.nn.parallel import DistributedDataParallel

warnings.filterwarnings("ignore")


class Norm(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(d))

    def forward(self, x):
        f = x.float()
        return (f * torch.rsqrt(f.pow(2).mean(-1, keepdim=True) + 1e-5)).to(x.dtype) * self.weight


def rotate(x, cos, sin):
    even, odd = x.float()[..., 0::2], x.float()[..., 1::2]
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), -1).flatten(-2).to(x.dtype)


class Attention(nn.Module):
    def __init__(self, d, heads, angles):
        super().__init__()
        self.width, self.angles = d // heads, angles
        self.wq, self.wk, self.wv, self.wo = (nn.Linear(d, d, bias=False) for _ in range(4))

    def forward(self, y):
        batch, seq, _ = y.shape
        q, k, v = (w(y).view(batch, seq, -1, self.width).transpose(1, 2) for w in (self.wq, self.wk, self.wv))
        q, k = rotate(q, *self.angles), rotate(k, *self.angles)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.wo(mixed.transpose(1, 2).reshape(batch, seq, -1))


class FeedForward(nn.Module):
    def __init__(self, d, ff):
        super().__init__()
        self.w1, self.w3, self.w2 = nn.Linear(d, ff, bias=False), nn.Linear(d, ff, bias=False), nn.Linear(ff, d, bias=False)

    def forward(self, y):
        return self.w2(F.silu(self.w1(y)) * self.w3(y))


class Block(nn.Module):
    def __init__(self, d, heads, ff, angles):
        super().__init__()
        self.n1, self.n2 = Norm(d), Norm(d)
        self.attn, self.ffn = Attention(d, heads, angles), FeedForward(d, ff)

    def forward(self, x):
        x = x + self.attn(self.n1(x))
        return x + self.ffn(self.n2(x))


class Stage(nn.Module):
    """Some of the blocks, with the embedding before the first and the head after the last."""

    def __init__(self, a, first, last, begin, end, device):
        super().__init__()
        half = a.d_model // a.heads // 2
        angles = torch.arange(a.seq, dtype=torch.float64)[:, None] * 10000.0 ** (-torch.arange(half, dtype=torch.float64) / half)
        angles = angles.cos().float().to(device), angles.sin().float().to(device)
        self.emb = nn.Embedding(a.vocab, a.d_model) if first else None
        if first:
            nn.init.uniform_(self.emb.weight, -a.d_model ** -0.5, a.d_model ** -0.5)  # as Weft's, so that losses compare
        self.layers = nn.ModuleList(Block(a.d_model, a.heads, a.d_ff, angles) for _ in range(begin, end))
        self.norm = Norm(a.d_model) if last else None
        self.out = nn.Linear(a.d_model, a.vocab, bias=False) if last else None
        self.autocast = contextlib.nullcontext

    def forward(self, x):
        with self.autocast():
            if self.emb is not None:
                x = self.emb(x)
            for block in self.layers:
                x = block(x)
            return x if self.out is None else self.out(self.norm(x))


def shard_layers(stage, tp):
    if stage.emb is not None:
        parallelize_module(stage, tp, {"emb": RowwiseParallel(input_layouts=Replicate())})
    for block in stage.layers:
        # One DTensor for all layers that read it: their gradients are added before they are reduced.
        plan = {m: PrepareModuleInput(input_layouts=(Replicate(),), desired_input_layouts=(Replicate(),)) for m in ("attn", "ffn")}
        plan.update({w: ColwiseParallel() for w in ("attn.wq", "attn.wk", "attn.wv", "ffn.w1", "ffn.w3")})
        parallelize_module(block, tp, {**plan, "attn.wo": RowwiseParallel(), "ffn.w2": RowwiseParallel()})
    if stage.out is not None:
        parallelize_module(stage, tp, {"out": ColwiseParallel(output_layouts=Replicate())})


def run(a, precision, device, mesh, rank):
    torch.backends.cuda.matmul.allow_tf32 = precision == "tf32"
    torch.manual_seed(1)
    sizes = dict(zip(mesh.mesh_dim_names, mesh.shape))
    dp, pp, tp = sizes["dp"], sizes["pp"], sizes["tp"]
    at = mesh.get_local_rank("pp")
    bounds = [0] + [a.layers * i // pp for i in range(1, pp)] + [a.layers]
    stage = Stage(a, at == 0, at == pp - 1, bounds[at], bounds[at + 1], device).to(device)
    if tp > 1:
        shard_layers(stage, mesh["tp"])
    sharded = a.sharded and dp > 1
    model = stage
    if sharded:
        policy = MixedPrecisionPolicy(torch.bfloat16, torch.float32) if precision == "bf16" else MixedPrecisionPolicy()
        for block in stage.layers:
            fully_shard(block, mesh=mesh["dp"], mp_policy=policy)
        fully_shard(stage, mesh=mesh["dp"], mp_policy=policy, reshard_after_forward=False)
    else:
        if precision == "bf16":
            stage.autocast = lambda: torch.autocast(device.type, torch.bfloat16)
        if dp > 1:
            if tp > 1:
                _pre_dp_module_transform(stage)
            model = DistributedDataParallel(stage, process_group=mesh.get_group("dp"), gradient_as_bucket_view=True)
    mats = [p for p in model.parameters() if p.ndim >= 2]
    vecs = [p for p in model.parameters() if p.ndim < 2]
    groups = [{"params": mats, "weight_decay": 0.1}, {"params": vecs, "weight_decay": 0.0}]
    cuda = device.type == "cuda"
    # DTensors of two meshes cannot share a fused update: those on a mesh of two dimensions have a group of their own.
    by_mesh = {}
    for g in groups:
        for p in g["params"]:
            key = (str(p.device_mesh) if isinstance(p, DTensor) else "", g["weight_decay"])
            by_mesh.setdefault(key, []).append(p)
    opt = torch.optim.AdamW([{"params": ps, "weight_decay": k[1]} for k, ps in by_mesh.items()],
                            lr=3e-4, betas=(0.9, 0.95), eps=1e-8, fused=cuda)
    base = torch.randint(0, a.vocab, (97,), generator=torch.Generator().manual_seed(2))
    data = base.repeat(a.batch * (a.seq + 1) // 97 + 2)[: a.batch * (a.seq + 1)].view(a.batch, a.seq + 1).to(device)
    x, y = data[:, :-1].contiguous(), data[:, 1:].contiguous()

    def loss_of(logits, targets):
        return F.cross_entropy(logits.float().reshape(-1, a.vocab), targets.reshape(-1))

    schedule = None
    if pp > 1:
        from torch.distributed.pipelining import PipelineStage, Schedule1F1B
        parts = a.microbatches or 2 * pp
        schedule = Schedule1F1B(PipelineStage(model, at, pp, device, group=mesh.get_group("pp")), parts, loss_fn=loss_of)

    def clip():
        # Parameters on different meshes have their norms taken apart.
        squares = torch.zeros((), device=device)
        for ps in by_mesh.values():
            norm = torch.nn.utils.get_total_norm([p.grad for p in ps])
            norm = norm.full_tensor() if isinstance(norm, DTensor) else norm
            squares += norm ** 2
        if pp > 1:
            dist.all_reduce(squares, group=mesh.get_group("pp"))
        total = squares.sqrt()
        for ps in by_mesh.values():
            torch.nn.utils.clip_grads_with_norm_(ps, 1.0, total)

    sync = torch.cuda.synchronize if cuda else (lambda: None)
    if cuda:
        torch.cuda.reset_peak_memory_stats()
    times, host, last = [], [], 0.0
    for step in range(a.warmup + a.steps):
        sync()
        start = time.perf_counter()
        if schedule is None:
            loss = loss_of(model(x), y)
            loss.backward()
        else:
            losses = []
            args = (x,) if at == 0 else ()
            schedule.step(*args, target=y if at == pp - 1 else None, losses=losses)
            loss = torch.stack(losses).mean() if losses else torch.zeros(())
        clip()
        opt.step()
        opt.zero_grad(set_to_none=True)
        launched = time.perf_counter()
        sync()
        if step >= a.warmup:
            times.append(time.perf_counter() - start)
            host.append(launched - start)
        last = loss.item()
    if rank != dist.get_world_size() - 1:
        return
    seconds = statistics.median(times)
    params = {"precision": precision, "dp": dp, "pp": pp, "tp": tp, "sharded": a.sharded, "batch": a.batch,
              "d_model": a.d_model, "layers": a.layers, "seq": a.seq, "device": device.type}
    out = [("train_gpt_parallel", a.batch * a.seq * dp / seconds, "tokens/s"),
           ("train_gpt_parallel_step", seconds * 1e3, "ms"),
           ("train_gpt_parallel_host", statistics.median(host) * 1e3, "ms"),
           ("train_gpt_parallel_loss_last", last, "nats")]
    if cuda:
        out.append(("train_gpt_parallel_peak_memory", torch.cuda.max_memory_allocated() / 2 ** 20, "MiB"))
    for bench, value, unit in out:
        print(json.dumps({"bench": bench, "impl": "torch", "params": params, "value": round(value, 3), "unit": unit}), flush=True)


def rank_main(rank, a, n):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(a.port), RANK=str(rank), WORLD_SIZE=str(n), LOCAL_RANK=str(rank))
    device = torch.device("cpu") if a.cpu else torch.device("cuda", rank)
    if a.cpu:
        torch.set_num_threads(1)
        dist.init_process_group("gloo")
    else:
        torch.cuda.set_device(device)
        dist.init_process_group("nccl", device_id=device)
    mesh = init_device_mesh(device.type, tuple(a.mesh.values()), mesh_dim_names=tuple(a.mesh))
    for precision in a.precisions.split(","):
        run(a, precision, device, mesh, rank)
    dist.barrier()
    dist.destroy_process_group()


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("--mesh", default="dp=2,pp=1,tp=1")
    ap.add_argument("--sharded", action="store_true")
    ap.add_argument("--precisions", default="bf16,tf32,fp32")
    ap.add_argument("--microbatches", type=int, default=0)
    ap.add_argument("--cpu", action="store_true")
    ap.add_argument("--tiny", action="store_true")
    ap.add_argument("--port", type=int, default=29751)
    for k, v in (("vocab", 256), ("d_model", 1024), ("heads", 16), ("layers", 12), ("d_ff", 2736),
                 ("seq", 1024), ("batch", 8), ("steps", 10), ("warmup", 3)):
        ap.add_argument("--" + k.replace("_", "-"), type=int, default=v, dest=k)
    a = ap.parse_args()
    given = dict(p.split("=") for p in a.mesh.split(","))
    a.mesh = {k: int(given.get(k, 1)) for k in ("dp", "pp", "tp")}
    if a.tiny:
        a.d_model, a.heads, a.layers, a.d_ff, a.seq, a.batch, a.steps = 64, 4, 4, 176, 32, 4, 3
    n = a.mesh["dp"] * a.mesh["pp"] * a.mesh["tp"]
    mp.spawn(rank_main, (a, n), nprocs=n)


if __name__ == "__main__":
    main()
