"""Tool calls of a chat as cards: what was called, how it stands, and what came of it.

A card has a head of ours in the first columns, and everything else beside a rule, as a cell has in
`show`. So nothing that a notebook or a model says can pass for a head, and all of it is sanitised.
"""
