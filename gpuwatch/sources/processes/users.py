"""Names of users, one id at a time.

A directory service may take seconds to answer, or for ever: it is asked in a thread of its own and
the number stands in until then. Users are never enumerated.
"""

import threading
from collections.abc import Callable

from gpuwatch.clean import decode
from gpuwatch.sources.tree import Tree


def system_user(uid: int) -> str | None:
    """The system's answer (files, LDAP, sssd, ...); None for an id without a name."""
    try:
        import pwd
    except ImportError:  # not a Unix
        return None
    try:
        return pwd.getpwuid(uid).pw_name
    except (KeyError, OSError):
        return None


def in_thread(task: Callable[[], None]) -> None:
    threading.Thread(target=task, name="user-name", daemon=True).start()


class UserNames:
    """`resolve` is asked for ids that /etc/passwd of the tree does not have; `start` runs that task."""

    def __init__(
        self,
        tree: Tree,
        resolve: Callable[[int], str | None] = system_user,
        start: Callable[[Callable[[], None]], None] = in_thread,
    ) -> None:
        self._tree = tree
        self._resolve = resolve
        self._start = start
        self._names: dict[int, str] = {}
        self._files_read = False

    def name(self, uid: int) -> str:
        """The name if it is known by now, else the number."""
        if not self._files_read:
            self._files_read = True
            self._names.update(_passwd(self._tree))
        known = self._names.get(uid)
        if known is None:
            known = self._names[uid] = str(uid)
            self._start(lambda: self._ask(uid))
            return self._names[uid]
        return known

    def _ask(self, uid: int) -> None:
        name = self._resolve(uid)
        if name:
            self._names[uid] = decode(name)


def _passwd(tree: Tree) -> dict[int, str]:
    try:
        data = tree.read("/etc/passwd")
    except OSError:
        return {}
    names: dict[int, str] = {}
    for line in data.split(b"\n"):
        words = line.split(b":")
        if len(words) >= 3 and words[2].isdigit() and words[0]:
            names.setdefault(int(words[2]), decode(words[0]))
    return names
