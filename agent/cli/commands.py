"""The command group: it imports a command when it is called, and turns errors into messages and exit codes."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from io import TextIOWrapper
from typing import Any

import click

from .output.exits import BAD_INPUT, INTERRUPTED, OUR_BUG, READER_LEFT
from .output.write import emptied_at_the_end

# Commands in modules of their own: the module, and what `linkgauge --help` says. The help imports none of them.
_MODULES = {
    "collective": ("model.collective", "Show the time of a collective: its bound, and what good machines reach."),
    "compare": ("compare", "Show what differs between two nodes or two times."),
    "diagnose": ("diagnose", "Find faults of the links of a node."),
    "expect": ("model.expect", "Show the expected rates of links and flows, and their bottlenecks."),
    "fabric": ("fabric", "Find slow nodes, ports, leaves and uplinks between nodes."),
    "fleet": ("fleet", "Compare the nodes of a fleet, and find those to drain first."),
    "formula": ("model.formula", "Compute a formula of collectives, networks or rooflines."),
    "gate": ("gate", "Check whether a job may start on this node."),
    "history": ("history", "Show past verdicts, findings and rates of this node."),
    "hold": ("hold", "Stop measurements on this machine for a while."),
    "plan": ("model.plan", "Predict the step time of a training job, and find the best layout."),
    "profile": ("model.profile", "Show a machine type, or write one from this node."),
    "release": ("hold", "Close the GPU driver for a while."),
    "serve": ("serve", "Run as a service: diagnose in a loop, export metrics."),
    "status": ("status", "Show the verdict and the state of the running service."),
    "top": ("top", "Show the live traffic of every link."),
    "topology": ("topology", "Show the devices of this node and the rates of its links."),
    "window": ("window", "Show errors, flaps, throttling and traffic during a job."),
}
GROUPS: Mapping[str, tuple[str, ...]] = {
    "Inspect": ("diagnose", "explain", "status", "top", "history", "topology", "expect", "compare", "ticket"),
    "Many nodes": ("fabric", "fleet"),
    "Serve": ("serve", "hold", "release", "window"),
    "Gate": ("gate", "accept"),
    "Model": ("collective", "formula", "plan", "profile"),
    "Data": ("capture", "completion"),
}
START = (  # what a newcomer needs
    ("linkgauge diagnose", "find the faults of this node"),
    ("linkgauge explain CODE", "what a fault means, and how to repair it"),
    ("linkgauge serve", "the same in a loop, with Prometheus metrics"),
)


class Commands(click.Group):
    """The command group. Bad usage exits with 64, since 2 means a failed node."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of all commands."""
        return sorted({*self.commands, *_MODULES})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command with this name, imported if necessary."""
        if cmd_name in _MODULES and cmd_name not in self.commands:
            module, says = _MODULES[cmd_name]
            command: click.Command = getattr(import_module(f".{module}", __package__), cmd_name)
            command.short_help = says
            self.add_command(command)
        return super().get_command(ctx, cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the arguments name. For an unknown name, click suggests one of the imported commands."""
        if args[0] not in self.list_commands(ctx):
            for name in _MODULES:
                self.get_command(ctx, name)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write what a newcomer needs, and the commands in groups with one line each."""
        lines = {name: says for name, (_, says) in _MODULES.items()}
        lines |= {name: command.get_short_help_str(limit=80) for name, command in self.commands.items()}
        with formatter.section("Start with"):
            formatter.write_dl(START)
        for title, names in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(name, lines[name]) for name in names])

    @emptied_at_the_end()
    def main(self, *args: Any, **kwargs: Any) -> Any:
        """Run a command and turn errors into messages on standard error and exit codes."""
        # A closed stream (">&-") is None, which other code does not expect.
        sys.stdout, sys.stderr = (stream or open(os.devnull, "w") for stream in (sys.stdout, sys.stderr))  # noqa: SIM115
        output = sys.stdout
        if isinstance(output, TextIOWrapper):
            output.reconfigure(errors="backslashreplace")  # the terminal's encoding may lack letters of a device name
        try:
            return super().main(*args, **{**kwargs, "standalone_mode": False})
        except (click.exceptions.Abort, KeyboardInterrupt):
            sys.exit(INTERRUPTED)
        except SystemExit as leave:
            # If the reader of our output closed the pipe, click wraps stdout and exits with 1, our "degraded".
            sys.exit(leave.code if sys.stdout is output else READER_LEFT)
        except click.ClickException as wrong:
            error = wrong
        except OSError as refused:
            error = click.ClickException(f"{refused.filename or 'standard output'}: {refused.strerror or refused}")
        except Exception:  # Python's own exit code 1 would mean "degraded"
            import traceback

            traceback.print_exc()
            click.echo("This is a bug in linkgauge: please report it, with a capture.", err=True)
            sys.exit(OUR_BUG)
        from ...exporters.text.terminal import safe

        # It may have the names of files, which can contain escape sequences. Click declares the message as final.
        vars(error)["message"] = safe(error.message)
        with suppress(OSError):  # standard error may be a file on a full disk
            error.show()
        sys.exit(BAD_INPUT)
