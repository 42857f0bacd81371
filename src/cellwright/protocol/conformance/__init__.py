"""The conformance kit: every statement of the protocol as a row that a peer passes or fails.

Frontends and clients under test are small protocols here; the caller provides one.
"""
