"""Open notebooks of one root folder, and the verbs on them that every door speaks.

Knows documents, their text view and their history. Knows nothing of terminals, models or wires:
verbs take and return data that can be written as JSON.
"""
