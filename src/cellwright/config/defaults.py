"""The numbers that hold when nobody says otherwise.

Plain constants, so that code on a hot path can have one without loading any settings.
Durations are seconds, sizes are bytes. `Settings` has a field of the same name for each.
"""

from __future__ import annotations

MAX_FILE_BYTES = 512 * 2**20
"""The largest file that is read as a notebook."""

LOCK_TIMEOUT = 30.0
"""How long a save waits for another writer of the same notebook."""

EVAL_SESSIONS_KEPT = 4
"""Eval sessions kept alive; the least recently used one is evicted, never a busy one."""

EVAL_SESSION_IDLE_TIMEOUT = 300.0
"""An eval session that nobody used for this long is shut down."""

SESSION_SWEEP_INTERVAL = 30.0
"""How often idle and dead sessions are looked for."""

HEARTBEAT_INTERVAL = 5.0
"""How often a kernel is asked whether it lives; the end of its process is noticed at once."""

KERNEL_RESTARTS_ALLOWED = 1
"""Restarts of a session without a success between them; one more is an error."""

INTERRUPT_GRACE = 5.0
"""How long an interrupted kernel may take before its process tree is killed."""

OUTPUT_BYTES_KEPT = 50 * 2**10
"""Output of one execution kept in memory; the whole stream goes to an artifact."""

OUTPUT_LINES_KEPT = 3_000
"""The same limit in lines; whichever is reached first counts."""

NOTEBOOK_OUTPUT_BYTES = 10 * 2**20
"""Output that one cell may keep in its notebook; of more only the end, the rest in an artifact."""

RUN_SAVE_INTERVAL = 2.0
"""How often the outputs of a cell that still runs are saved; 0 is only when it has ended."""

ARTIFACT_QUOTA_BYTES = 2**30
"""What all artifacts together may take; the oldest make room."""

ARTIFACT_MAX_BYTES = 256 * 2**20
"""What one artifact may take; of a longer text the beginning and the end are kept."""

EVAL_TIMEOUT = 30.0
"""How long an eval cell may run when its call gives no timeout; 0 is no limit."""

EVAL_TIMEOUT_MAX = 3_600.0
"""The longest timeout that an eval call may ask for; 0 is no limit."""

NOTEBOOK_SESSION_IDLE_TIMEOUT = 3_600.0
"""A notebook's session that nothing is attached to is shut down after this long."""

SESSION_WAIT_TIMEOUT = 30.0
"""How long a call waits for a session when all that may be kept are busy."""

KERNEL_START_TIMEOUT = 60.0
"""How long a kernel may take from its start to its first answer."""

KERNEL = ""
"""The kernel where a call names none; empty to choose by notebook and environment."""

SPARE_KERNEL = True
"""Whether one kernel is started ahead of need, so that a first cell need not wait for it."""

PASS_VARIABLES: tuple[str, ...] = ()
"""Names of API keys and tokens that kernels may see; all others are withheld."""

ENGINE = "auto"
"""When commands use the background engine: `auto`, `never`, or `always`, also where `CI` is set."""

ENGINE_IDLE_TIMEOUT = 60.0
"""An engine with nothing to do, no session and no client leaves after this long."""

EDIT_MODE_EDITS = False
"""Whether mode `edit` may change notebooks; by default it only reads, and proposes changes."""

ASSISTANT_MODEL = ""
"""The language model of chats, as `provider:name`; empty for the built-in one, without a network."""

ASSISTANT_BASE_URL = ""
"""Where that model's server is; empty for the provider's own address."""

ASSISTANT_MAX_TOKENS = 16_384
"""The longest answer that a model may give, in tokens; servers of your own have their own limit
unless this is set to something else."""

ASSISTANT_TIMEOUT = 120.0
"""How long a model may be silent before it counts as gone."""

ASSISTANT_RETRIES = 4
"""How often a model that is busy or out of reach is asked again."""

ASSISTANT_PROMPTS = ""
"""A folder with prompt files of the user's own."""

ASSISTANT_PROMPTS_OFF: tuple[str, ...] = ()
"""Prompt files that are not used, as `name.md`, or as `mode:name.md` in one mode only."""

ASSISTANT_CONTEXT_IN_SYSTEM_PROMPT = False
"""Whether a notebook's state is part of the system prompt; else it is a message after it."""

ASSISTANT_TRANSCRIPTS = True
"""Whether chats are kept, to be resumed."""

ASSISTANT_IMAGES = True
"""Whether models get pictures; models without eyes get their descriptions."""
