"""Thirty tasks with notebooks, for agents: played by scripts, or by any model.

    python -m benchmarks.agents                        scripts, with every side that is installed
    python -m benchmarks.agents --address URL --model NAME      a model, by an OpenAI-compatible API
    python -m benchmarks.agents --task fix-typo --side cellwright

A side is what an agent works with: the tools of Cellwright, those of jupyter-mcp-server, or plain
files, which it reads and writes as JSON and runs with nbclient. Each task is a notebook, a request,
a plan by which a script carries it out on every side, and a check of the notebook at the end. The
table has success, calls, tokens asked and answered, and seconds.

`tasks` has the tasks, `sides` what agents work with, `players` who decides: a script or a model.
"""
