"""`blake2b` of the standard library; `hashlib` would load OpenSSL, which costs every command 2 ms."""

from __future__ import annotations

try:
    from _blake2 import blake2b
except ImportError:  # another Python than CPython
    from hashlib import blake2b

__all__ = ["blake2b"]
