"""Processes of one run, which end with it, however it ends."""

import os
import random
import shutil
import signal
import socket
import subprocess
import time
import urllib.request

from . import machine
from .building import FOLDER, Trouble

POLL_S = 0.05
READY_MAX_S = 60
# Past proxies of the environment, which do not reach loopback.
DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


class Scene:
    """A folder, processes and ports of one run: `with Scene(name) as scene`.

    Processes are stopped at the end, also after an error or a signal, which is noticed where the
    run waits: an exception at any other point could leave a process behind. The folder goes too,
    but for a run that failed: its logs say why.
    """

    def __init__(self, name):
        self.folder = FOLDER / "runs" / f"{name}-{os.getpid()}"
        self.nodes = {}
        self.tools = {}
        self.signalled = False

    def __enter__(self):
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        self.handlers = {number: signal.signal(number, self.on_signal) for number in signals}
        return self

    def on_signal(self, *_):
        """Has the run end where it next waits."""
        self.signalled = True

    def __exit__(self, kind, error, trace):
        self.stop()
        for number, handler in self.handlers.items():
            signal.signal(number, handler)
        if kind is None or self.signalled:
            shutil.rmtree(self.folder)
        elif kind is Trouble:
            error.args = (f"{error}\nlogs are in {self.folder}",)
        if kind is None and self.signalled:
            raise KeyboardInterrupt

    def start(self, name, *argv, env=None):
        """Starts a node, with its output in NAME.log."""
        self.nodes[name] = self.spawn(name, argv, env)

    def start_tool(self, name, *argv):
        """Starts a program that puts load on the nodes."""
        self.tools[name] = self.spawn(name, argv, None)

    def run(self, name, *argv, seconds):
        """Runs a program to its end while the nodes live, and returns what it printed."""
        self.start_tool(name, *argv)
        tool = self.tools[name]
        self.wait(f"{name} to end", lambda: tool.poll() is not None, seconds)
        if tool.returncode:
            raise Trouble(f"{name} ended with exit code {tool.returncode}: {self.tail(name)}")
        del self.tools[name]
        return self.log(name)

    def spawn(self, name, argv, env):
        """A process in a group of its own, so that Ctrl-C is ours to pass on."""
        argv = [str(argument) for argument in argv]
        with (self.folder / f"{name}.log").open("wb") as log:
            return subprocess.Popen(
                argv,
                cwd=self.folder,
                env={**os.environ, **(env or {})},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def stop(self):
        """Asks all processes to end, and ends those that do not within five seconds."""
        processes = [*self.tools.values(), *self.nodes.values()]
        for process in processes:
            process.terminate()
        deadline = time.monotonic() + 5
        for process in processes:
            try:
                process.wait(max(0.0, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.tools, self.nodes = {}, {}

    def wait(self, what, asked, seconds=READY_MAX_S):
        """Waits until `asked` says yes, while all nodes live."""
        deadline = time.monotonic() + seconds
        while not asked():
            self.check()
            if time.monotonic() > deadline:
                raise Trouble(f"waited {seconds} s for {what} in vain")
            time.sleep(POLL_S)
        self.check()

    def last(self, seconds):
        """Lets the load last while all nodes and tools live."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.check()
            for name, tool in self.tools.items():
                if tool.poll() is not None:
                    raise Trouble(f"{name} ended under load: {self.tail(name)}")
            time.sleep(POLL_S)

    def check(self):
        """Fails if a node has ended, or if a signal came."""
        if self.signalled:
            raise KeyboardInterrupt
        for name, node in self.nodes.items():
            if node.poll() is not None:
                raise Trouble(f"{name} ended by itself ({node.returncode}): {self.tail(name)}")

    def log(self, name):
        """The output of a process so far."""
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def tail(self, name):
        """The last lines that a process printed."""
        return "\n".join(self.log(name).strip().splitlines()[-5:]) or "it said nothing"

    def cpu_seconds(self):
        """Processor time of all nodes, in seconds."""
        times = [machine.cpu_seconds(node.pid) for node in self.nodes.values()]
        return None if None in times else sum(times)

    def cores(self):
        """A function that says how many cores the nodes used since now."""
        cpu, began = self.cpu_seconds(), time.monotonic()

        def used():
            now = self.cpu_seconds()
            if cpu is None or now is None:
                return None
            return round((now - cpu) / (time.monotonic() - began), 2)

        return used


def free_ports(count):
    """So many ports on loopback that nobody has, below those that systems give to clients."""
    ports = random.sample(range(10_000, 30_000), 2_000)
    return [port for port in ports if is_free(port)][:count]


def is_free(port):
    """Tries to take a port on loopback: true if nobody has it."""
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def listens(port):
    """Tries to connect to a port on loopback: true if it takes connections."""
    with socket.socket() as probe:
        probe.settimeout(1)
        return probe.connect_ex(("127.0.0.1", port)) == 0


def answer(url):
    """The answer at a URL, empty if there is none."""
    try:
        with DIRECT.open(url, timeout=1) as response:
            return response.read().decode()
    except OSError:
        return ""
