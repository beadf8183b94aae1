"""The rows of `weft bench nccl` through torch.distributed: one process a GPU.

    python nccl_bandwidth.py [--ranks N] [--most BYTES]
"""
import argparse
import json
import os
import statistics
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
SIZES = [8, 64, KIB, 8 * KIB, 64 * KIB, 256 * KIB, MIB, 4 * MIB, 16 * MIB, 64 * MIB, 256 * MIB, GIB, 4 * GIB]
ROUNDS = 7


def rank_main(rank, n, port, most):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", rank=rank, world_size=n, device_id=torch.device("cuda", rank))
    a = torch.zeros(most // 4, device="cuda")
    b = torch.zeros(most // 4, device="cuda")

    def micros(call, calls, wait):
        dist.all_reduce(b[:1])
        torch.cuda.synchronize()
        stream = torch.cuda.current_stream()
        start = time.perf_counter()
        for _ in range(calls):
            call()
            if wait:
                stream.synchronize()
        torch.cuda.synchronize()
        return (time.perf_counter() - start) * 1e6 / calls

    def measure(name, size, factor, call):
        calls = 300 if size <= 64 * KIB else 60 if size <= 16 * MIB else 12 if size <= 256 * MIB else 4
        queued, waited = [], []
        for turn in range(-1, ROUNDS):
            q = micros(call, calls, False)
            w = micros(call, calls // 4, True) if size <= MIB else 0
            if turn >= 0:
                queued.append(q)
                waited.append(w)
        if rank:
            return
        params = {"ranks": "processes", "n": n, "bytes": size}
        us = statistics.median(queued)

        def row(bench, value, unit, **more):
            print(json.dumps({"bench": bench, "impl": "torch", "params": {**params, **more},
                              "value": round(value, 3), "unit": unit}), flush=True)

        row("nccl_" + name, us, "us", how="queued")
        row("nccl_" + name + "_busbw", size * factor / us / 1e3, "GB/s")
        if size <= MIB:
            row("nccl_" + name, statistics.median(waited), "us", how="waited")

    def exchange(out, into):
        ops = [dist.P2POp(dist.isend, out, (rank + 1) % n), dist.P2POp(dist.irecv, into, (rank - 1) % n)]
        for work in dist.batch_isend_irecv(ops):
            work.wait()

    for size in (s for s in SIZES if s <= most):
        count, part = max(size // 4, 1), max(size // 4 // n, 1)
        whole, cut, mine = a[:count], a[:part * n], a[:part]
        filled, one, got = b[:part * n], b[:part], b[:count]
        ring, share = 2 * (n - 1) / n, (n - 1) / n
        measure("all_reduce", size, ring, lambda: dist.all_reduce(whole))
        measure("all_reduce_async", size, ring, lambda: dist.all_reduce(whole, async_op=True).wait())
        measure("all_gather", size, share, lambda: dist.all_gather_into_tensor(filled, mine))
        measure("reduce_scatter", size, share, lambda: dist.reduce_scatter_tensor(one, cut))
        measure("all_to_all", size, share, lambda: dist.all_to_all_single(filled, cut))
        measure("broadcast", size, 1, lambda: dist.broadcast(whole, 0))
        measure("send_recv", size, 1, lambda: exchange(whole, got))
    dist.destroy_process_group()


if __name__ == "__main__":
    args = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    args.add_argument("--ranks", type=int, default=torch.cuda.device_count())
    args.add_argument("--most", type=int, default=4 * GIB)
    args.add_argument("--port", type=int, default=29731)
    a = args.parse_args()
    mp.spawn(rank_main, (a.ranks, a.port, a.most), nprocs=a.ranks)
