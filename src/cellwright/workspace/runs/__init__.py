"""One run: cells in order, in a session, with their outputs landed through the notebook's host.

It knows sessions, hosts and the journal; it does not know verbs, doors or sockets.
"""
