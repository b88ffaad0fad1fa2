"""The machine under the figures, and what else it had to do. Linux's /proc, or nothing."""

import os
import platform
import resource
from pathlib import Path

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


def here():
    """The machine, by the names that `quorate bench --json` uses."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20
    return {
        "cores": os.cpu_count(),
        "cpu": cpu_name() or platform.machine(),
        "memory_mb": memory,
        "kernel": f"{platform.system()} {platform.release()}",
    }


def cpu_name():
    """The processor's name, where the kernel says it."""
    lines = read("/proc/cpuinfo").splitlines()
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), "")


def cpu_seconds(pid):
    """Processor time that a process has used, in seconds; `None` where there is no /proc."""
    # The name in parentheses may have spaces; user and system time are the twelfth and thirteenth
    # field behind it.
    fields = read(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND if fields else None


class Look:
    """A look at the whole machine. It begins and ends while nothing of ours runs, for processes
    count as ours once they have ended."""

    def __init__(self):
        self.before = self.counters()

    @staticmethod
    def counters():
        """All time, time that programs used, that the host kept, and that ours used: seconds."""
        head = read("/proc/stat").partition("\n")[0].split()[1:9]
        fields = [int(field) / TICKS_PER_SECOND for field in head] or [0.0] * 8
        uses = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        ours = sum(use.ru_utime + use.ru_stime for use in uses)
        return sum(fields), fields[0] + fields[1] + fields[2], fields[7], ours

    def end(self):
        """Shares of all processor time since the beginning: used by others, kept by the host."""
        pairs = zip(self.before, self.counters())
        total, busy, steal, ours = (now - then for then, now in pairs)
        if not total:
            return {"others_share": None, "steal_share": None}
        others = max(0.0, busy - ours) / total
        return {"others_share": round(others, 3), "steal_share": round(steal / total, 3)}


def read(path):
    """A file's text, empty where there is none."""
    try:
        return Path(path).read_text()
    except OSError:
        return ""
