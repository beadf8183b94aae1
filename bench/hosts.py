#!/usr/bin/env python3
r"""Runs ranks on several "hosts" of this machine: network namespaces, joined by a slow network.

Every host has an address of its own and shares nothing with the others but the file system. Packets
between them pass through this process, which lets as many bits a second leave and enter a host as
--mbit says and hands each packet over --delay-ms later (half a round trip). It needs root, ip and
/dev/net/tun, and no kernel module for delays. Ranks get RANK, LOCAL_RANK, WORLD_SIZE, MASTER_ADDR,
MASTER_PORT and WEFT_HOST_ID, without which the kernel would say that all are on one machine.

  bench/hosts.py --hosts 2 --ranks-per-host 2 --delay-ms 0.25 --mbit 1000 -- java -cp ... \
    dev.weft.bench.AlgorithmBenchmark all_reduce hierarchical,direct,ring 1024,65536,1048576 8
"""

import argparse
import fcntl
import heapq
import os
import select
import signal
import struct
import subprocess
import sys
import threading
import time

TUNSETIFF = 0x400454CA
IFF_TUN = 0x0001
IFF_NO_PI = 0x1000
NETWORK = "10.77.0."
PORT = 29477
PACKETS = 64  # taken from one host before the next one's turn


def ip(*arguments):
    subprocess.run(["ip", *arguments], check=True)


class Host:
    """A namespace with one interface, whose packets this process reads and writes."""

    def __init__(self, index, mtu):
        self.name = f"weft-{os.getpid()}-{index}"
        self.address = f"{NETWORK}{index + 1}"
        self.leaving = 0.0  # when what was sent so far has left
        self.entering = 0.0
        device = f"weft{os.getpid() % 100000}h{index}"
        self.fd = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
        fcntl.ioctl(self.fd, TUNSETIFF, struct.pack("16sH", device.encode(), IFF_TUN | IFF_NO_PI))
        ip("netns", "add", self.name)
        ip("link", "set", device, "netns", self.name)
        self.inside("link", "set", "lo", "up")
        self.inside("link", "set", device, "mtu", str(mtu), "txqueuelen", "10000", "up")
        self.inside("addr", "add", f"{self.address}/24", "dev", device)

    def inside(self, *arguments):
        ip("-n", self.name, *arguments)

    def close(self):
        os.close(self.fd)
        ip("netns", "del", self.name)


def carry(hosts, delay, bits, stopped):
    """Moves packets until told to stop."""
    by_fd = {h.fd: h for h in hosts}
    under_way = []  # when something happens next to a packet, in which order, where to, has it left
    number = 0
    while not stopped.is_set():
        now = time.monotonic()
        while under_way and under_way[0][0] <= now:
            at, _, to, packet, entered = heapq.heappop(under_way)
            if not entered:
                # It has left its host, and queues up with those of other hosts.
                to.entering = max(at, to.entering) + len(packet) * 8 / bits
                number += 1
                heapq.heappush(under_way, (to.entering + delay, number, to, packet, True))
                continue
            try:
                os.write(to.fd, packet)
            except OSError:
                pass  # as a full queue drops it; TCP sends it again
        wait = 0.1 if not under_way else max(0.0, min(0.1, under_way[0][0] - now))
        ready, _, _ = select.select(list(by_fd), [], [], wait)
        for fd in ready:
            source = by_fd[fd]
            for _ in range(PACKETS):
                try:
                    packet = os.read(fd, 65536)
                except BlockingIOError:
                    break
                if packet[0] >> 4 != 4 or packet[16:19] != bytes((10, 77, 0)):
                    continue  # not IPv4, or to nobody here
                index = packet[19] - 1
                if not 0 <= index < len(hosts):
                    continue
                # A host's first bit leaves as the other's is entered: one of both takes the time.
                began = max(time.monotonic(), source.leaving)
                source.leaving = began + len(packet) * 8 / bits
                number += 1
                heapq.heappush(under_way, (began, number, hosts[index], packet, False))


def start(hosts, each, command):
    """Starts the ranks, host by host."""
    ranks = []
    size = len(hosts) * each
    for h, host in enumerate(hosts):
        for local in range(each):
            variables = dict(
                os.environ,
                RANK=str(h * each + local),
                LOCAL_RANK=str(local),
                LOCAL_WORLD_SIZE=str(each),
                WORLD_SIZE=str(size),
                MASTER_ADDR=hosts[0].address,
                MASTER_PORT=str(PORT),
                WEFT_HOST_ID=host.name,
            )
            ranks.append(
                subprocess.Popen(["ip", "netns", "exec", host.name, *command], env=variables)
            )
    return ranks


def await_all(ranks):
    """The first code that is not 0, when all have ended; a rank that fails ends the others."""
    code = 0
    while any(r.poll() is None for r in ranks):
        failed = [r.returncode for r in ranks if r.returncode]
        if failed and code == 0:
            code = failed[0]
            for r in ranks:
                r.terminate()
        time.sleep(0.05)
    return code or next((r.returncode for r in ranks if r.returncode), 0)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--hosts", type=int, default=2)
    parser.add_argument("--ranks-per-host", type=int, default=2)
    parser.add_argument("--delay-ms", type=float, default=0.25)
    parser.add_argument("--mbit", type=float, default=1000)
    parser.add_argument("--mtu", type=int, default=9000)
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()
    if os.geteuid() != 0 or not os.path.exists("/dev/net/tun"):
        sys.exit("hosts.py needs root and /dev/net/tun to make network namespaces")
    # Ended from outside, it takes hosts and ranks along all the same.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    hosts = []
    ranks = []
    stopped = threading.Event()
    try:
        for i in range(options.hosts):
            hosts.append(Host(i, options.mtu))
        carrier = threading.Thread(
            target=carry, args=(hosts, options.delay_ms / 1e3, options.mbit * 1e6, stopped)
        )
        carrier.start()
        ranks = start(hosts, options.ranks_per_host, options.command)
        code = await_all(ranks)
    finally:
        for r in ranks:
            if r.poll() is None:
                r.kill()
        stopped.set()
        if hosts:
            carrier.join()
        for h in hosts:
            h.close()
    sys.exit(code)


if __name__ == "__main__":
    main()
