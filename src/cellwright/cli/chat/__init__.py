"""`cellwright chat`: the assistant at a terminal, and in pipes.

Knows what the person has open, how a turn is shown, and what Ctrl-C does. The chat itself is in
`assistant`; prompt_toolkit is imported only where a person types.
"""
