"""What runs in the user's interpreter: Python 3.9 or newer, the standard library, nothing else.

The host starts `start.py` by its path. These modules then live in a package of their own name,
`_cellwright_runner`, so that nothing of Cellwright has to be importable there. They import each
other relatively, since they have two names, and load as little as possible before the first cell:
no `json`, `signal`, `threading`, `pathlib`, `contextlib` or `ast`. Cold start is a promise.

One JSON object a line. To the runner, on stdin, whose end means to leave:

    {"id", "code", "silent"?, "storeHistory"?, "cwd"?, "env"?}                  a cell
    {"type": "input", "id", "request", "data"}          an answer; null: there is none
    {"type": "ping", "id"}   {"type": "exit"}

From the runner, on stdout, with the `id` of their cell, or an empty one between cells:

    hello{pid, python, implementation, kept}   pong{id}
    started{id, executionCount}   stdout|stderr{id, data}   clear{id, wait}
    display|result{id, bundle, metadata?, displayId?, update?, executionCount?}
    input{id, prompt, password, request}   error{id, ename, evalue, traceback[]}
    done{id, status: "ok"|"error", executionCount, cancelled}      exactly one, and the last
"""
