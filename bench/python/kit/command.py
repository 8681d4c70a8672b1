"""The command line of a measured client: that of the kit in Rust (`bench/kit/src/lib.rs`)."""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from importlib.metadata import version
from typing import Any

from kit.job import Job
from kit.measure import Blocking, OnLoop
from kit.peer import Client, Setup
from kit.startup import StartUp


def say(line: dict[str, Any]) -> None:
    """Says a line to the runner."""
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def hello(name: str, client: Client, config: str) -> dict[str, Any]:
    """What the client is."""
    of = f"Python {platform.python_version()}"
    return {
        "name": name,
        "version": version(client.distribution) if client.distribution else of,
        "config": config,
        "about": f"{client.configs[config].about}; {of}",
    }


def session(client: Client, options: argparse.Namespace) -> Blocking | OnLoop | StartUp:
    """The client, made for what the command line says."""
    config = client.configs[options.config]
    if options.protocol == "start-up":
        return StartUp(client, config)
    setup = Setup(http2=options.protocol == "http2", ca=options.ca)
    return Blocking(config, setup) if config.loop is None else OnLoop(config, setup)


def parse(client: Client, arguments: list[str]) -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("verb", choices=["hello", "serve", "once"])
    parser.add_argument("--config", choices=list(client.configs))
    parser.add_argument("--ca")
    parser.add_argument("--job")
    parser.add_argument("--protocol", choices=["http1", "http2", "start-up"], default="http1")
    parser.add_argument("--runtime", help="of Rust's clients; an event loop is a configuration here")
    options = parser.parse_args(arguments)
    if options.verb != "hello" and options.config is None:
        parser.error("--config is missing")
    if options.verb == "once" and options.job is None:
        parser.error("--job is missing")
    return options


def run(name: str, client: Client, arguments: list[str]) -> None:
    """Does what the command line says."""
    options = parse(client, arguments)
    if options.verb == "hello":
        for config in [options.config] if options.config else client.configs:
            say(hello(name, client, config))
        return
    measured = session(client, options)
    if options.verb == "once":
        say(measured.answer(Job.read(options.job)))
    else:
        say(hello(name, client, options.config))
        for line in sys.stdin:
            say(measured.answer(Job.read(line)))
    measured.close()
    # The interpreter's own end is no part of it: not all clients' threads survive that.
    sys.stdout.flush()
    os._exit(0)
