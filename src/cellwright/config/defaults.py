"""Defaults of settings that other modules use without loading any settings.

Plain constants, because cold start matters there. Durations are in seconds, sizes in bytes. Each is
the default of the field of `Settings` with the same name; all other defaults are in `Settings`.
"""

from __future__ import annotations

MAX_FILE_BYTES = 512 * 2**20
LOCK_TIMEOUT = 30.0
INTERRUPT_GRACE = 5.0
OUTPUT_BYTES_KEPT = 50 * 2**10
OUTPUT_LINES_KEPT = 3_000
ARTIFACT_QUOTA_BYTES = 2**30
ARTIFACT_MAX_BYTES = 256 * 2**20
ASSISTANT_MAX_TOKENS = 16_384
