"""What a model may ask for: tools with their schemas, and the profiles that select them.

A tool is data and one coroutine: name, description, a pydantic model of its parameters, the effect
of each of its actions. It calls the verbs of a workspace and answers with text within a budget.
Doors (MCP, the assistant) list tools and call them; they add nothing of their own.
"""
