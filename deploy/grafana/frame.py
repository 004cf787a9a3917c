"""Frame: what all of flapd's dashboards share around their panels."""

from collections.abc import Iterator, Sequence
from itertools import count
from typing import NamedTuple

from grafana_foundation_sdk.builders import dashboard as build
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.models import dashboard as model

from deploy.grafana.parts import NODES, SOURCE, Panel

_ALL = model.VariableOption(selected=True, text="All", value="$__all")


class Row(NamedTuple):
    title: str
    panels: Sequence[Panel]


def dashboard(
    name: str,
    description: str,
    rows: Sequence[Row],
    *,
    several_nodes: bool = True,
    more: Sequence[Builder[model.VariableModel]] = (),
) -> model.Dashboard:
    """Of the last day; ids count panels from 1. `more`: variables beside those of all."""
    builder = (
        build.Dashboard(f"flapd: {name}")
        .uid(f"flapd-{name}")
        .description(description)
        .tags(["flapd"])
        .time("now-24h", "now")
        .refresh("1m")
        .tooltip(model.DashboardCursorSync.CROSSHAIR)
        .link(_other_dashboards())
    )
    for variable in (*_variables(several_nodes), *more):
        builder.with_variable(variable)
    ids = count(1)
    for row in rows:
        builder.with_row(build.Row(row.title).id(next(ids)))
        for panel in row.panels:
            builder.with_panel(panel.id(next(ids)))
    return builder.build()


def _other_dashboards() -> build.DashboardLink:
    return (
        build.DashboardLink("flapd")
        .type(model.DashboardLinkType.DASHBOARDS)
        .tags(["flapd"])
        .include_vars(True)
        .keep_time(True)
    )


def _variables(several_nodes: bool) -> Iterator[Builder[model.VariableModel]]:
    """A cluster is all of them also where nothing labels one."""
    nodes = 'label_values(flapd_build_info{cluster=~"$cluster"}, instance)'
    node = _variable("instance", nodes)
    yield build.DatasourceVariable("datasource").label("data source").type("prometheus")
    yield _all_of(_variable("cluster", "label_values(flapd_build_info, cluster)"))
    yield _all_of(node) if several_nodes else node
    yield _all_of(_variable("device", f"label_values(flapd_port_up{{{NODES}}}, device)"))


def _all_of(variable: build.QueryVariable) -> build.QueryVariable:
    return variable.include_all(True).multi(True).all_value(".*").current(_ALL)


def _variable(name: str, query: str) -> build.QueryVariable:
    return (
        build.QueryVariable(name)
        .query(query)
        .datasource(SOURCE)
        .refresh(model.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(model.VariableSort.ALPHABETICAL_ASC)
    )
