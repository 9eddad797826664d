"""The lines at the bottom of the terminal that are drawn again and again.

Owns when to draw and how to clear; what is drawn comes from a callback.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from rich.console import Console, RenderableType
from rich.live import Live

TICK_S = 0.1


class Region:
    """Redraws a few times a second between `start` and `stop`, from the event loop.

    Anything printed on the console meanwhile lands above. A dumb terminal gets nothing.
    """

    def __init__(self, console: Console, draw: Callable[[], RenderableType]) -> None:
        """`draw` may print what is complete, and gives what goes below it."""
        self._console = console
        self._draw = draw
        self._live: Live | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._failed: Exception | None = None

    def start(self) -> None:
        """Draw from now on; harmless while drawing.

        Raises:
            OutputLost: the terminal went away while nobody looked.
            Exception: drawing broke for another reason.
        """
        if self._failed is not None:
            raise self._failed
        if self._timer is None and not self._console.is_dumb_terminal:
            self._timer = asyncio.get_running_loop().call_later(TICK_S, self._tick)

    def stop(self) -> None:
        """Clear the region and give the terminal back as it was."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._live is not None:
            live, self._live = self._live, None
            live.stop()

    def _tick(self) -> None:
        self._timer = None
        began = time.monotonic()
        try:
            self._redraw()
        except Exception as error:
            # A timer has no caller who could be told: the next `start` has.
            self._failed = error
            return
        # A slow terminal or a huge block must not take the time the model's deltas need.
        pause = max(TICK_S, 5 * (time.monotonic() - began))
        self._timer = asyncio.get_running_loop().call_later(pause, self._tick)

    def _redraw(self) -> None:
        content = self._draw()
        if self._live is not None:
            self._live.update(content, refresh=True)
            return
        self._live = Live(
            content,
            console=self._console,
            auto_refresh=False,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
            vertical_overflow="crop",
        )
        self._live.start(refresh=True)
