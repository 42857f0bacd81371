"""Language models of Anthropic, OpenAI, and of servers that speak as they do, behind `Model`.

Choosing one imports nothing and asks nobody; libraries, key and network come with the first call.
"""
