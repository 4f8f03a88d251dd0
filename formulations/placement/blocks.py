"""Bytes on chip by time, as those who write C count them: a size for every time, and what may be shared."""

from __future__ import annotations

from dataclasses import dataclass

from instances.buffers import Buffer, Gap


@dataclass(frozen=True)
class Block:
    """A buffer: bytes by time, one after the other from `begin` on, at one address all the time."""

    name: str
    begin: int
    sizes: tuple[int, ...]

    @property
    def end(self) -> int:
        """The time after the last one."""
        return self.begin + len(self.sizes)

    def buffer(self, *memories: str) -> Buffer:
        """The same with gaps where it takes less than its most."""
        size, gaps = max(self.sizes), list[Gap]()
        for time, number in enumerate(self.sizes, self.begin):
            if number < size:
                window = (0, number) if number else None
                if gaps and (gaps[-1].upper, gaps[-1].window) == (time, window):
                    gaps[-1] = gaps[-1].model_copy(update={"upper": time + 1})
                else:
                    gaps.append(Gap(lower=time, upper=time + 1, window=window))
        return Buffer(
            name=self.name, lower=self.begin, upper=self.end, size=size, gaps=tuple(gaps), memories=memories
        )  # fmt: skip
