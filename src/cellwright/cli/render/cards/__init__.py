"""Cards show the tool calls of a chat: what was called, its status, and its result.

A card has a head of ours in the first columns, and everything else beside a rule, as a cell has in
`show`. So no text of a notebook or a model can look like a head, and all of it is sanitised.
"""
