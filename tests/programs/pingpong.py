#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
# Does Debian's fi_pingpong complete with verified data, every size, in both start orders?
"""fi_pingpong's two sides first meet on a TCP control connection of its own. A client that finds no
listener there gives up at once (exit status 111, ECONNREFUSED) before it has opened any provider, so
started bare before its server it fails on every provider. What remains of "client first" is a client
that waits, connected, for a server that does not exist yet: a relay here listens in the server's
place, and passes the bytes on once the server, started later, listens too. Nothing is retried.
"""
import socket
import subprocess
import threading
import time

from program import fail, require, setup

TIMEOUT_S = 120
ITERATIONS = "10"
SIZES_OF_ALL = 46  # what -S all means: 0, then every power of two and one and a half of it, to 6 MiB
SIZES_OF_DATAGRAMS = 25  # those of them up to 4096 bytes, which one packet of the loopback carries


def free_port():
    with socket.socket() as probe:
        probe.bind(("", 0))
        return probe.getsockname()[1]


def wait_for_listener(port, server):
    """Returns once a process listens on `port`. Asks the kernel's table, that of the server's host: connecting would
    use the one connection that the server accepts."""
    wanted = f":{port:04X} "
    end = time.monotonic() + TIMEOUT_S
    while time.monotonic() < end:
        require(server.poll() is None, f"server ended before its client came: {server.returncode}")
        for table in ("tcp", "tcp6"):
            for line in open(f"/proc/{server.pid}/net/{table}", encoding="ascii").readlines()[1:]:
                fields = line.split()
                if f"{fields[1]} ".endswith(wanted) and fields[3] == "0A":
                    return
        time.sleep(0.01)
    fail(f"server did not listen on {port} within {TIMEOUT_S} s")


def start(test, options, *more):
    command = ["fi_pingpong", "-p", test.provider, "-c", "-I", ITERATIONS, *options, *more]
    # Without an address to begin with, a server takes the first interface, whose packets may be short.
    return subprocess.Popen(command, env={**test.env, "FI_WEFT_IFACE": "lo"}, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def start_server_first(test, options, address):
    port = str(free_port())
    server = start(test, options, "-B", port)
    wait_for_listener(int(port), server)
    return server, start(test, options, "-P", port, address)


def pump(source, sink):
    while data := source.recv(4096):
        sink.sendall(data)
    sink.shutdown(socket.SHUT_WR)


def start_client_first(test, options, address):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    listener = socket.socket(family)
    listener.bind((address, 0))
    listener.listen(1)
    client = start(test, options, "-P", str(listener.getsockname()[1]), address)
    near, _ = listener.accept()  # the client is up and waits
    time.sleep(0.3)
    port = free_port()
    server = start(test, options, "-B", str(port))
    wait_for_listener(port, server)
    far = socket.create_connection((address, port))
    for pair in ((near, far), (far, near)):
        threading.Thread(target=pump, args=pair, daemon=True).start()
    return server, client


def finish(name, process):
    try:
        output, _ = process.communicate(timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        output, _ = process.communicate()
        fail(f"{name}: no end within {TIMEOUT_S} s; it printed\n{output}")
    require(process.returncode == 0, f"{name}: exit status {process.returncode}\n{output}")
    return output


def check_table(name, output, sizes, iterations=ITERATIONS):
    """Every row must say that as many messages came back and were verified as were sent (`=N`)."""
    rows = [line.split() for line in output.splitlines()[1:] if line.strip()]
    require(len(rows) == sizes, f"{name}: {len(rows)} sizes were reported, not {sizes}:\n{output}")
    for row in rows:
        require(row[1:3] == [iterations, f"={iterations}"], f"{name}: a size failed: {row}")


def check(test, order, options, address, sizes):
    starter = {"server first": start_server_first, "client first": start_client_first}[order]
    name = f"fi_pingpong {' '.join(options)} to {address}, {order}"
    server, client = starter(test, options, address)
    outputs = [finish(f"{name}, client", client), finish(f"{name}, server", server)]
    for output in outputs:
        check_table(name, output, sizes)
    print(f"{name}: {sizes} sizes verified")


def main():
    test, _ = setup(__doc__)
    for order in ("server first", "client first"):
        for kind in (["-e", "rdm", "-m", "msg"], ["-e", "rdm", "-m", "tagged"], ["-e", "msg"]):
            check(test, order, [*kind, "-S", "all"], "127.0.0.1", SIZES_OF_ALL)
        # It sends nothing again: one lost datagram would be the end.
        check(test, order, ["-e", "dgram", "-S", "all"], "127.0.0.1", SIZES_OF_DATAGRAMS)
    for endpoint in ("rdm", "msg"):
        check(test, "server first", ["-e", endpoint, "-6", "-S", "all"], "::1", SIZES_OF_ALL)
        check(test, "client first", ["-e", endpoint, "-6", "-S", "65536"], "::1", 1)
    check(test, "server first", ["-e", "dgram", "-6", "-S", "all"], "::1", SIZES_OF_DATAGRAMS)
    test.env["FI_WEFT_LINKS"] = "udp"  # the link between hosts, within this one
    check(test, "server first", ["-e", "dgram", "-S", "all"], "127.0.0.1", SIZES_OF_DATAGRAMS)
    check(test, "client first", ["-e", "dgram", "-6", "-S", "all"], "::1", SIZES_OF_DATAGRAMS)


if __name__ == "__main__":
    main()
