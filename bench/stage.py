"""How the demonstration looks: numbered acts, a spinner while something happens, a line with its time when it has."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table

Row = tuple[str, ...]


class Stage:
    """Prints to one console. On anything but a terminal: the same lines, plain, without spinner and colour."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._acts = 0

    def act(self, title: str, why: str = "") -> None:
        """Begin the next act."""
        self._acts += 1
        self.console.print(f"\n[bold cyan]{self._acts}  {escape(title)}[/]")
        if why:
            self.aside(why)

    def aside(self, text: str) -> None:
        """Something to know."""
        self.console.print(Padding(f"[dim]{escape(text)}[/]", (0, 0, 0, 3), expand=False))

    @contextmanager
    def step(self, doing: str, done: str = "") -> Iterator[list[str]]:
        """Show `doing` while the block runs, then one line with its time. Texts put into the list follow in that line."""
        notes: list[str] = []
        began = time.perf_counter()
        with self.console.status(f"   {escape(doing)} …"):
            yield notes
        took = time.perf_counter() - began
        self.good("  ".join([done or doing, *notes]), f"{took:.1f} s")

    def good(self, text: str, detail: str = "") -> None:
        """One thing that is as it should be."""
        line = escape(text) + (f"  [dim]{escape(detail)}[/]" if detail else "")
        grid = Table.grid(padding=(0, 1, 0, 0))
        grid.add_row("[green]✓[/]", line)  # a grid, so that a long line goes on below its beginning
        self.console.print(Padding(grid, (0, 0, 0, 3), expand=False))

    def bad(self, text: str) -> None:
        """What went wrong."""
        self.console.print(f"\n[bold red]✗ {escape(text)}[/]")

    def table(self, headings: Row, rows: list[Row]) -> None:
        """A small table; the first column holds names, the others figures."""
        table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
        for number, heading in enumerate(headings):
            table.add_column(heading, justify="right" if number else "left")
        for row in rows:
            table.add_row(*row)
        self.console.print(Padding(table, (0, 0, 0, 5), expand=False))

    def output(self, command: str, text: str) -> None:
        """What a command printed, as a person would see it."""
        self.console.print(f"\n   [bold]$ {escape(command)}[/]")
        for line in text.rstrip().splitlines():
            self.console.print(f"   {line}", markup=False, highlight=False, no_wrap=True, overflow="ignore", crop=False)
        self.console.print()
