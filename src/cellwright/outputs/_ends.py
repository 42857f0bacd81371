"""The first and the last bytes of something that may be long without end."""

from __future__ import annotations


class Ends:
    """Keeps so many bytes of the beginning and of the end, and counts those between.

    Of the end a quarter more is kept than was asked for, so that little is moved around. What is
    kept depends only on the bytes that were added, never on how they were cut into pieces.
    """

    __slots__ = ("_most", "_tail_limit", "head", "head_limit", "lost", "tail")

    def __init__(self, head_limit: int, tail_limit: int) -> None:
        self.head_limit = head_limit
        self.head = bytearray()
        self.lost = 0
        self.tail = bytearray()
        self._tail_limit = tail_limit
        self._most = tail_limit + max(1, tail_limit // 4)

    def __len__(self) -> int:
        return len(self.head) + self.lost + len(self.tail)

    def add(self, data: bytes | bytearray) -> None:
        """Put bytes to the end."""
        room = self.head_limit - len(self.head)
        if room > 0 and not (self.tail or self.lost):
            self.head += data[:room]
            data = data[room:]
        over = len(self.tail) + len(data) - self._most
        if over >= 0:  # whenever it is full the first part goes, however often that is by now
            part = self._most - self._tail_limit
            cut = part * (over // part + 1)
            data = data[max(0, cut - len(self.tail)) :]
            del self.tail[:cut]
            self.lost += cut
        self.tail += data

    def add_all(self, other: Ends) -> None:
        """Put to the end what others were added to; it must have limits like ours."""
        self.add(other.head)
        if other.lost:
            # Its beginning has filled ours, and its end is longer than what we would keep.
            self.lost += len(self.tail) + other.lost
            self.tail.clear()
        self.add(other.tail)

    def take_back_character(self) -> bool:
        """Remove the last character of UTF-8; False if there is none that is still kept."""
        while kept := self.tail or (bytearray() if self.lost else self.head):
            if kept.pop() & 0xC0 != 0x80:
                return True
        return False

    def clear(self) -> None:
        """Forget everything."""
        self.head.clear()
        self.tail.clear()
        self.lost = 0

    def copy(self) -> Ends:
        """Another one with the same content."""
        other = Ends(self.head_limit, self._tail_limit)
        other.add_all(self)
        return other


def whole_start(data: bytes | bytearray | memoryview, position: int) -> int:
    """The first place from `position` on where a character of UTF-8 begins."""
    while position < len(data) and data[position] & 0xC0 == 0x80:
        position += 1
    return position


def whole_end(data: bytes | bytearray | memoryview, position: int) -> int:
    """The last place up to `position` where a character of UTF-8 ends."""
    if position >= len(data):
        return len(data)
    while position > 0 and data[position] & 0xC0 == 0x80:
        position -= 1
    return position
