"""The door for agents: an MCP server over stdio or HTTP.

It has no logic of its own. Tools come from `cellwright.tools`, notebooks and kernels from the
engine; here they meet the protocol, whose library is imported only when a server is made.
"""
