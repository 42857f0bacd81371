"""Start the runner: requests on stdin, frames on stdout.

    python start.py [CHANNEL_FD OWNER_PID [BYTECODE_FOLDER]]

Old interpreters must get as far as the check of their version: nothing newer may stand here.
"""

import gc
import sys

NAME = "_cellwright_runner"


def start():  # type: ignore[no-untyped-def]  # noqa: ANN201, D103
    if sys.version_info < (3, 9):  # noqa: UP036
        sys.exit("the runner needs Python 3.9 or newer, and this is " + sys.version.split()[0])
    folder = __file__.rpartition("/")[0] or "."
    if sys.path and sys.path[0] == folder:
        del sys.path[0]
    # A script is compiled anew at every start, a module is cached: so the rest is a package.
    package = type(sys)(NAME)
    package.__path__ = [folder]
    sys.modules[NAME] = package
    gc.disable()  # until `serve`
    before = sys.dont_write_bytecode, sys.pycache_prefix
    sys.dont_write_bytecode = False
    if len(sys.argv) > 3:
        sys.pycache_prefix = sys.argv[3]
    # Every module of ours asks for `__future__`, and none uses it at run time: to load it takes long.
    stand_in = None
    if "__future__" not in sys.modules:
        stand_in = sys.modules["__future__"] = type(sys)("__future__")
        stand_in.__dict__["annotations"] = None
    loop = __import__(NAME + ".loop", fromlist=["loop"])
    sys.dont_write_bytecode, sys.pycache_prefix = before
    if stand_in is not None:
        del sys.modules["__future__"]
    loop.serve(*map(int, sys.argv[1:3]))


start()  # type: ignore[no-untyped-call]
