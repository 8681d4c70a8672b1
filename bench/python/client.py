"""A measured client in Python: `client.py ADAPTER hello|serve|once ..`, in its virtual environment."""

import importlib
import sys

from kit.command import run

if __name__ == "__main__":
    adapter = sys.argv[1]
    run(adapter, importlib.import_module(f"adapters.{adapter}").CLIENT, sys.argv[2:])
