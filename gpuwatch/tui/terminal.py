"""The terminal is taken and given back here, whatever happens in between.

Textual alone leaves a raw terminal on SIGTERM and SIGHUP, starts a second pair of threads on every
SIGCONT and spins when the terminal vanishes. The four cures below can go when it does better:

* F1: SIGTERM, SIGHUP and SIGINT leave through the front door, with 128 + signal as exit status.
* F2: SIGCONT does nothing; SIGTSTP and ctrl+z suspend in a way that gives the terminal back first.
* F3: a vanished terminal ends the program, also where no SIGHUP was sent.
* F4: what has not left 0.4 s after leaving began is ended hard, the terminal restored by hand.

Private parts of Textual are used in this file only, each with its reason.
"""

import asyncio
import contextlib
import os
import queue
import select
import signal
import sys
import threading
from codecs import getincrementaldecoder
from collections.abc import Callable, Sequence
from types import FrameType

from rich.console import RenderableType
from textual._xterm_parser import XTermParser
from textual.app import App
from textual.drivers._writer_thread import WriterThread
from textual.drivers.linux_driver import LinuxDriver

from gpuwatch.tui.tty import Tty

#: Seconds from the wish to leave until the process is ended hard.
GRACE_S = 0.4
#: Elsewhere `poll` knows no terminals (macOS calls them invalid); there SIGHUP has to be enough.
POLLS_TERMINALS = sys.platform == "linux"
#: How often a lone escape is asked whether it was a key.
ESCAPE_POLL_MS = 50


class Leaving:
    """F1, F3 and F4: one thread that sleeps in `poll` until somebody wants to leave.

    `closers` (a recording's end) run first and must be safe to call from another thread.
    """

    def __init__(
        self,
        restore: Callable[[], None],
        closers: Sequence[Callable[[], None]] = (),
        *,
        input_fd: int = 0,
        end: Callable[[int], None] = os._exit,
    ) -> None:
        self.code: int | None = None
        self._restore, self._closers, self._end = restore, closers, end
        self._input_fd = input_fd
        self._wake_read, self._wake_write = os.pipe()
        self._closed, self._done = threading.Event(), threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._exit: Callable[[int], object] | None = None

    def start(self) -> None:
        """Install the signal handlers and begin to watch the terminal."""
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            # Not the loop's own handlers: they wait while a stuck terminal blocks the loop.
            signal.signal(number, self._on_signal)
        threading.Thread(target=self._watch, name="gpuwatch-leaving", daemon=True).start()

    def attach(self, loop: asyncio.AbstractEventLoop, leave: Callable[[int], object]) -> None:
        """From now on leaving calls `leave(code)` in `loop`."""
        self._loop, self._exit = loop, leave
        if self.code is not None:
            loop.call_soon(leave, self.code)

    def begin(self, code: int) -> None:
        """Leave with this exit status. Safe in a signal handler and in any thread; first wins."""
        if self.code is not None:
            return
        self.code = code
        os.write(self._wake_write, b"x")
        if self._loop is not None and self._exit is not None:
            with contextlib.suppress(RuntimeError):  # the loop has ended by itself
                self._loop.call_soon_threadsafe(self._exit, code)

    def finish(self) -> int:
        """The orderly way worked; the last resort is called off. Returns the exit status."""
        self.begin(1)  # nobody asked to leave: the screen failed
        self._closed.wait(GRACE_S)
        self._done.set()
        return self.code or 0

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        self.begin(128 + number)

    def _watch(self) -> None:
        waiter = select.poll()
        if POLLS_TERMINALS:
            # No event is asked for: HUP, ERR and NVAL are told anyway.
            waiter.register(self._input_fd, 0)
        waiter.register(self._wake_read, select.POLLIN)
        waiter.poll()
        self.begin(128 + signal.SIGHUP)  # unless somebody began it
        closing = threading.Thread(target=self._close, name="gpuwatch-closing", daemon=True)
        closing.start()
        if not self._done.wait(GRACE_S):
            self._restore()
            self._end(self.code or 0)

    def _close(self) -> None:
        try:
            for close in self._closers:
                close()
        finally:
            self._closed.set()


class Driver(LinuxDriver):
    """Textual's driver on a `Tty`, with the mouse held back and job control put right."""

    screen: Tty  # set on the subclass that `driver_for` makes

    def __init__(self, *arguments: object, **named: object) -> None:
        super().__init__(*arguments, **named)  # type: ignore[arg-type] # handed on as they came
        self._file = self.screen.file  # private: the stream cannot be chosen otherwise
        self._wake_read, self._wake_write = os.pipe()
        self._on_screen = False
        # F2: the parent's SIGCONT handler enters application mode a second time.
        signal.signal(signal.SIGCONT, signal.SIG_DFL)
        signal.signal(signal.SIGTSTP, self._on_stop_signal)

    def _on_stop_signal(self, _number: int, _frame: FrameType | None) -> None:
        self._loop.call_soon_threadsafe(suspend, self, os.getpid())

    def start_application_mode(self) -> None:
        self._on_screen = True
        super().start_application_mode()  # type: ignore[no-untyped-call] # Textual leaves it untyped

    def stop_application_mode(self) -> None:
        if self._on_screen:
            # After a resize tmux pushes what stands above the cursor into the scrollback of the shell
            # when the alternate screen ends; an empty one leaves nothing there.
            self.write("\x1b[H\x1b[2J")
            self._on_screen = False
        super().stop_application_mode()

    def _get_terminal_size(self) -> tuple[int, int]:
        return self.screen.size()

    def _enable_mouse_support(self) -> None:
        # Private: any-motion reports (1003) cost 0.7 ms for each move of the pointer.
        if self._mouse:
            self.write("\x1b[?1000h\x1b[?1006h")

    def _disable_mouse_support(self) -> None:
        self.write("\x1b[?1000l\x1b[?1006l\x1b[?1016l")

    def set_mouse(self, on: bool) -> None:
        """Report clicks and the wheel, or leave them to the terminal to select text."""
        self._mouse = on
        if on:
            self._enable_mouse_support()
        else:
            self._disable_mouse_support()

    def run_input_thread(self) -> None:
        """Read keys until `disable_input`.

        Private: the parent wakes ten times a second, a twelfth of what the whole program costs, and
        spins at the end of the input.
        """
        if not POLLS_TERMINALS:
            super().run_input_thread()
            return
        parser, decode = XTermParser(self._debug), getincrementaldecoder("utf-8")("replace").decode
        waiter = select.poll()
        waiter.register(self.fileno, select.POLLIN)
        waiter.register(self._wake_read, select.POLLIN)
        while True:
            # Only an escape that may begin a sequence needs the time to go on.
            waiting = parser._timeout_time is not None
            ready = dict(waiter.poll(ESCAPE_POLL_MS if waiting else None))
            if self._wake_read in ready:
                os.read(self._wake_read, 1)
                return
            if ready:
                try:
                    data = os.read(self.fileno, 4096)
                except OSError:
                    data = b""
                if not data:  # the terminal is gone; `Leaving` sees it too
                    return
                for event in parser.feed(decode(data)):
                    self.process_message(event)
            for event in parser.tick():
                self.process_message(event)

    def disable_input(self) -> None:
        thread = self._key_thread
        if POLLS_TERMINALS and thread is not None and thread.is_alive():
            os.write(self._wake_write, b"x")
        super().disable_input()

    def write(self, data: str) -> None:
        # Private: when the terminal is gone the writer ends, and its bounded queue blocks for ever.
        writer: WriterThread | None = self._writer_thread
        while writer is not None and writer.is_alive():
            with contextlib.suppress(queue.Full):
                writer._queue.put(data, timeout=0.5)
                return


class FullScreenApp(App[None]):
    """An app that fails in silence: `failure` holds the reason for whoever started it.

    Private: Textual would print a traceback with all local values over the terminal.
    """

    ENABLE_COMMAND_PALETTE = False
    ALLOW_SELECT = False  # the mouse selects rows; `m` leaves it to the terminal for text

    @property
    def failure(self) -> Exception | None:
        return self._exception

    def panic(self, *renderables: RenderableType) -> None:
        if self._exception is None:
            self._exception = RuntimeError("the screen failed")
        self._close_messages_no_wait()

    def _fatal_error(self) -> None:
        self._close_messages_no_wait()

    def _set_pointer_shape(self, shape: str) -> None:
        """Nothing: the sequence for it is a rare one, and some terminals print it."""


def driver_for(screen: Tty) -> type[Driver]:
    """Textual takes a class and constructs it itself."""
    return type("ScreenDriver", (Driver,), {"screen": screen})


def suspend(driver: Driver, target: int = 0) -> None:
    """F2: stop as the shell expects; returns after `fg`. `target` 0 is the whole process group.

    The default action of SIGTSTP is used, not SIGSTOP: the kernel ignores it where no shell could
    ever continue us.
    """
    driver.suspend_application_mode()
    previous = signal.signal(signal.SIGTSTP, signal.SIG_DFL)
    try:
        os.kill(target, signal.SIGTSTP)
    finally:
        signal.signal(signal.SIGTSTP, previous)
        driver.resume_application_mode()
        driver._app.refresh(layout=True)  # private: its own way back does the same
