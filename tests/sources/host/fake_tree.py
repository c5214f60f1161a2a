"""A file system in a dictionary, for readers of /proc and /sys."""

from gpuwatch.sources.base import Clock


class FakeTree:
    """`files` maps paths to content or to the error that reading them raises."""

    def __init__(self, files=None, links=None, affinity=4, usage=None):
        self.files: dict[str, bytes | Exception] = dict(files or {})
        self.links: dict[str, str] = dict(links or {})
        self.cores: int | dict[int, int] = affinity
        self.shm = usage
        self.reads: list[str] = []

    def read(self, path):
        self.reads.append(path)
        content = self.files.get(path)
        if content is None:
            raise FileNotFoundError(2, "No such file or directory", path)
        if isinstance(content, Exception):
            raise content
        return content

    def list(self, path):
        if isinstance(error := self.files.get(path), Exception):
            raise error
        prefix = path.rstrip("/") + "/"
        paths = [*self.files, *self.links]
        names = {name[len(prefix) :].split("/")[0] for name in paths if name.startswith(prefix)}
        if not names:
            raise FileNotFoundError(2, "No such file or directory", path)
        return sorted(names)

    def link(self, path):
        if path not in self.links:
            raise FileNotFoundError(2, "No such file or directory", path)
        return self.links[path]

    def real(self, path):
        return self.links.get(path, path)

    def usage(self, path):
        if self.shm is None:
            raise FileNotFoundError(2, "No such file or directory", path)
        return self.shm

    def affinity(self, pid):
        if isinstance(self.cores, dict):
            if pid not in self.cores:
                raise ProcessLookupError(3, "No such process")
            return self.cores[pid]
        return self.cores

    def owner(self, path):
        return 0


class FakeClock:
    def __init__(self, monotonic_s=1000.0, wall_s=1_800_000_000.0):
        self.now = monotonic_s
        self.wall = wall_s

    @property
    def clock(self):
        return Clock(lambda: self.now, lambda: self.wall)
