"""Options that commands share: evidence, system, language model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from whichsense.errors import BadInput

if TYPE_CHECKING:
    from whichsense.index import Index
    from whichsense.index.cluster import Cluster
    from whichsense.index.search import SavedHits
    from whichsense.jobs.workers import Executor
    from whichsense.models.llm.prompts import LLMSettings
    from whichsense.types import Method


Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
PATH = click.Path(path_type=Path)


def path_option(
    name: str, help: str, metavar: str = "DIR", *, to: str = "", required: bool = False
) -> Decorator:
    """Make an option whose value is a path; `to` is the parameter that takes it, if not the option's own name."""
    names = (name, to) if to else (name,)
    return click.option(*names, type=PATH, metavar=metavar, help=help, required=required)


def choice_option(name: str, choices: Sequence[str], default: str, help: str) -> Decorator:
    """Make an option with a few values, one of which is the default."""
    return click.option(
        name, type=click.Choice(choices), default=default, show_default=True, help=help
    )


def count_option(name: str, help: str, metavar: str = "N") -> Decorator:
    """Make an option whose value is a number from 1 on."""
    return click.option(name, type=click.IntRange(1), metavar=metavar, help=help)


def number_option(
    name: str,
    default: int,
    least: int,
    most: int | None = None,
    *,
    help: str,
    metavar: str | None = None,
) -> Decorator:
    """Make an option whose value is a whole number between two bounds."""
    bounds = click.IntRange(least, most)
    return click.option(
        name, default=default, show_default=True, type=bounds, metavar=metavar, help=help
    )


def flag_option(name: str, help: str, *, to: str | None = None) -> Decorator:
    """Make an option without a value."""
    return click.option(*([name, to] if to else [name]), is_flag=True, help=help)


def repeated_option(name: str, to: str, metavar: str, help: str) -> Decorator:
    """Make an option that may be given several times; all values go to the parameter `to`."""
    return click.option(name, to, multiple=True, metavar=metavar, help=help)


def _all_of(*options: Decorator) -> Decorator:
    """Make one decorator of several options, which the help lists in this order."""

    def add(command: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            command = option(command)
        return command

    return add


# What commands share, whatever they do.

json_option = flag_option("--json", "Print JSON.", to="as_json")
data_dir_option = path_option(
    "--data-dir", "The data folder. [default: WHICHSENSE_DATA, or the user's cache]"
)
limit_option = count_option("--limit", "Use only the first N questions.")

# The options of commands that search: which index, and how.

index_option = path_option(
    "--index",
    "Index folder to search, or handbook, the embedded documents. [default: the embedded sample]",
    to="folder",
)
method_option = click.option(
    "--method",
    type=click.Choice(["bm25", "dense", "hybrid"]),
    help="Search by words, by meaning, or by both. [default: hybrid if there are vectors]",
)
evidence_options = _all_of(index_option, method_option)
hits_option = path_option(
    "--hits", "Hits saved by whichsense retrieve, in place of --index.", "FILE"
)

indexes_option = repeated_option(
    "--index",
    "places",
    "[NAME=]DIR",
    "Index folder to serve, or handbook, the embedded documents. Repeatable, each with a name by which requests "
    "choose it; the first is the default. [default: the embedded sample]",
)


def named_places(places: Sequence[str], *, is_stored: bool = False) -> dict[str, str]:
    """Return the indexes that --index names: name → folder, each opened to see that it is one; a URL, where machines
    fetch their own shards, stays.
    """
    from whichsense import config, sample

    named: dict[str, str] = {}
    for given in places or [config.find_config().retrieve.index]:
        name, equals, place = given.partition("=")
        if not equals or Path(given).exists():
            name, place = "", given
        url = _place_of(place, is_stored)
        name = name or sample.corpus_name(url)
        if name in named:
            raise BadInput(f"Two indexes are called '{name}'. Name them: --index NAME={place}")
        named[name] = url
    return named


def _place_of(place: str, is_stored: bool) -> str:
    from whichsense import sample

    url = stored_index(Path(place)) if is_stored and place else None
    if url:
        return url
    with closing(sample.open_index(place or None)) as index:
        return str(index.folder)


# The options of commands whose work is spread.

cluster_option = click.option(
    "--cluster",
    metavar="ADDRESS",
    help="Work on the Ray cluster at HOST:PORT; local: a cluster of this machine's own cores.",
)
workers_option = count_option(
    "--workers", "With --cluster: workers, of one core each. [default: one for each core]"
)
gpus_option = click.option(
    "--gpus",
    type=click.FloatRange(0),
    default=0,
    metavar="N",
    help="With --cluster: GPUs of each worker; at 0.5, two share one.",
)


spread_options = _all_of(cluster_option, workers_option, gpus_option)


def use_executor(address: str | None, workers: int | None = None, gpus: float = 0) -> Executor:
    """Return workers on the cluster at an address, until the command ends; this process without one."""
    from whichsense.jobs.workers import run_here

    connected = use_cluster(address)
    if connected is None:
        return run_here
    from whichsense.index.cluster import run_on

    return run_on(connected, workers, gpus)


def use_cluster(address: str | None) -> Cluster | None:
    """Return the cluster at an address, until the command ends; None without an address."""
    if address is None:
        return None
    from whichsense.index.cluster import connect

    return click.get_current_context().with_resource(connect(address))


def open_evidence(
    folder: Path | None, method: str | None, cluster: str | None = None
) -> tuple[Index, Method]:
    """Return the index and the method: as given, as whichsense.toml says, or the embedded sample and its best."""
    from whichsense import config, sample

    place = folder or config.find_config().retrieve.index or None
    if use_cluster(cluster):
        from whichsense.index.cluster import ClusterIndex

        index: Index = ClusterIndex.on_cluster(sample.place_of(place))
    else:
        index = sample.open_index(place)
    return index, index.method(named_method(method))


def named_method(method: str | None) -> Method | None:
    """Return the method that the option or whichsense.toml names; None leaves the choice to each index."""
    from whichsense import config

    return cast("Method | None", method) or config.find_config().retrieve.method


def stored_index(folder: Path | None) -> str | None:
    """Return the URL of an index in an object store, if that is what is meant: machines of a cluster fetch it
    themselves.
    """
    from whichsense import config
    from whichsense.index.object_store import fetch_manifest, url_of

    url = url_of(folder or config.find_config().retrieve.index)
    if url:
        fetch_manifest(url)  # an error, if there is none
    return url


def open_hits_or_index(
    hits: Path | None, folder: Path | None, method: str | None
) -> tuple[Index | SavedHits, Method | None]:
    """Return the saved hits, or else the index and the method."""
    if hits is None:
        return open_evidence(folder, method)
    if folder is not None:
        raise click.UsageError("Give either --hits FILE or --index DIR.")
    from whichsense.index.search import SavedHits

    return SavedHits.open(hits), cast("Method | None", method)


# The options of commands that answer: which system, on how many cores, and what a service keeps.


def system_option(verb: str = "Ask") -> Decorator:
    """Make --system for a command that does this with a system."""
    return path_option(
        "--system", f"{verb} this system instead of the embedded model.", "FILE.toml"
    )


def threads_option(default: int = 2, each: str = "") -> Decorator:
    """Add --threads to a command; `each` says what the cores are for."""
    return number_option(
        "--threads", default, 1, 64, help=f"Processor cores that the embedded model uses{each}."
    )


threshold_option = click.option(
    "--threshold",
    type=click.FloatRange(0, 1, min_open=True),
    metavar="X",
    help="Show every answer that is at least this probable, and the best one in any case.  "
    "[0<x<=1; default: a number of the model's for each kind of corpus]",
)

weights_option = path_option(
    "--weights", "Weights folder of the embedded model.  [default: the one that ships]"
)


def _state(context: click.Context, option: click.Parameter, value: Path | None) -> Path:
    from whichsense.serve.settings import state_folder

    return value or state_folder()


state_option = click.option(
    "--state",
    type=PATH,
    metavar="DIR",
    callback=_state,
    help="Folder of keys and traces.  [default: the user's state folder]",
)


def service_options(threads: int) -> Decorator:
    """Make what every face of the service has: --threshold, --threads, --deadline, --state and --no-traces."""
    return _all_of(
        threshold_option,
        threads_option(threads, " for one question"),
        click.option(
            "--deadline",
            default=60.0,
            show_default=True,
            type=click.FloatRange(0, 3600, min_open=True),
            metavar="SECONDS",
            help="Most time for one answer, with its time in the queue.",
        ),
        state_option,
        flag_option("--no-traces", "Keep no case longer than a stream may need it."),
    )


# The options of commands that may ask a language model.

llm_options = _all_of(
    click.option(
        "--llm",
        "llm_url",
        metavar="URL",
        help="Let the language model of this OpenAI-compatible server do all thinking. Its key: WHICHSENSE_LLM_KEY.",
    ),
    click.option(
        "--model",
        "llm_model",
        metavar="NAME",
        help="Its name on that server.  [default: WHICHSENSE_LLM_MODEL, or the only one there]",
    ),
)


def choose_system(
    system: Path | None, url: str | None, model: str | None
) -> tuple[str | Path, LLMSettings | None]:
    """Return the system that options ask for, and how its language model is reached where they say so. A system's
    file keeps its other settings of the language model.
    """
    if not url and not model:
        return system or "compact", None
    from whichsense.models.llm.prompts import LLMSettings
    from whichsense.systems import load_settings

    chosen = system or "llm"
    own = load_settings(chosen).llm or LLMSettings()
    return chosen, replace(own, url=url or own.url, model=model or own.model)
