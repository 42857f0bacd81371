"""`cellwright chat`: the assistant at a terminal, and in pipes.

Knows what lies on the person's desk, how a turn is shown, and what Ctrl-C means. What a chat is,
`assistant` knows; prompt_toolkit is imported only where somebody types.
"""
