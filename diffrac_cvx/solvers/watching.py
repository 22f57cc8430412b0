"""Run a generator in a thread of its own, so that its consumer can leave while a single long computation runs."""

import queue
import threading
from collections.abc import Callable, Iterator
from typing import TypeVar

PATIENCE = 0.2  # seconds between looks at the clock

Item = TypeVar("Item")


def watch(items: Iterator[Item], tick: Callable[[], None], left: threading.Event) -> Iterator[Item]:
    """Yield the items, made in another thread; call ``tick``, which may raise to leave, while one is being made.

    A product or a decomposition of large matrices may take minutes and cannot be interrupted.  Whoever leaves, by
    ``tick``, Ctrl-C or an error, does not wait for it: ``left`` is set, and the thread ends at the generator's next
    look at it.  The generator runs only while its consumer waits for an item.

    Parameters
    ----------
    items : iterator
        What to run in the other thread.
    tick : callable
        Called about five times a second, in the thread of the consumer.
    left : threading.Event
        Set when the consumer leaves.
    """
    ready: queue.SimpleQueue[tuple[bool, Item | BaseException | None]] = queue.SimpleQueue()
    wanted = threading.Semaphore(1)

    def work() -> None:
        try:
            for item in items:
                ready.put((True, item))
                wanted.acquire()
                if left.is_set():
                    return
            ready.put((False, None))
        except BaseException as error:  # raised again in the thread of the consumer
            ready.put((False, error))

    wanted.acquire()
    threading.Thread(target=work, daemon=True, name="diffrac_cvx").start()
    try:
        while True:
            found, item = wait(ready, tick)
            if not found:
                if isinstance(item, BaseException):
                    raise item
                return
            yield item  # type: ignore[misc]  # an item where one was found
            wanted.release()
    finally:
        left.set()
        wanted.release()


def wait(ready: "queue.SimpleQueue[Item]", tick: Callable[[], None]) -> Item:
    """Return the next entry of a queue; call ``tick`` until there is one."""
    while True:
        try:
            return ready.get(timeout=PATIENCE)
        except queue.Empty:
            tick()
