from __future__ import annotations


def test_help_imports_no_library_of_the_protocol() -> None:
    import subprocess
    import sys

    program = (
        "import sys; from cellwright.cli.main import main; main(['--help']); main(['mcp', '-h']);"
        "sys.exit(any(name.partition('.')[0] in ('mcp', 'mcp_types', 'pydantic', 'asyncio')"
        " for name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False)

    assert done.returncode == 0, done.stdout
    assert b"--print-config" in done.stdout
