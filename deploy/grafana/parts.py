"""Parts: panels as flapd's dashboards use them."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, TypeAlias, TypeVar

from grafana_foundation_sdk.builders import (
    common,
    heatmap,
    prometheus,
    stat,
    statetimeline,
    table,
    timeseries,
)
from grafana_foundation_sdk.builders import dashboard as build
from grafana_foundation_sdk.models import common as common_model
from grafana_foundation_sdk.models import dashboard as model
from grafana_foundation_sdk.models.heatmap import HeatmapColorMode
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

HEIGHT = 8
FULL, HALF, THIRD, SIXTH = 24, 12, 8, 4
"""Widths, of 24 columns."""

_LEGEND = (
    common.VizLegendOptions()
    .show_legend(True)
    .display_mode(common_model.LegendDisplayMode.LIST)
    .placement(common_model.LegendPlacement.BOTTOM)
)
SOURCE = model.DataSourceRef(type_val="prometheus", uid="$datasource")
NODES = 'cluster=~"$cluster", instance=~"$instance"'
PORTS = f'{NODES}, device=~"$device"'
LATE = f"sum by (le) (rate(flapd_sample_lateness_seconds_bucket{{{NODES}}}[$__rate_interval]))"
SENT_AGAIN = f"rate(flapd_port_retransmissions_total{{{PORTS}}}[$__rate_interval])"
SENT_AGAIN_TOLD = "One loss may be seen by several causes: not to be summed."

Panel: TypeAlias = stat.Panel | timeseries.Panel | table.Panel | statetimeline.Panel | heatmap.Panel
_P = TypeVar("_P", stat.Panel, timeseries.Panel, table.Panel, statetimeline.Panel, heatmap.Panel)


class Query(NamedTuple):
    expr: str
    legend: str = ""


def number(title: str, expr: str, description: str, worst_from: float = 1) -> stat.Panel:
    """Green below `worst_from`; nothing where nothing is known."""
    panel = _panel(stat.Panel(), title, description, SIXTH, [Query(expr)], instant=True)
    return (
        panel.height(4)
        .thresholds(steps((None, "green"), (worst_from, "red")))
        .color_mode(common_model.BigValueColorMode.BACKGROUND)
        .graph_mode(common_model.BigValueGraphMode.NONE)
        .no_value("not known")
    )


def curves(
    title: str,
    queries: Sequence[Query],
    description: str = "",
    unit: str = "short",
    width: int = HALF,
) -> timeseries.Panel:
    panel = _panel(timeseries.Panel(), title, description, width, queries)
    all_at_once = common.VizTooltipOptions().mode(common_model.TooltipDisplayMode.MULTI)
    points = common_model.VisibilityMode.AUTO
    return panel.unit(unit).fill_opacity(0).show_points(points).legend(_LEGEND).tooltip(all_at_once)


def bars(
    title: str,
    queries: Sequence[Query],
    description: str = "",
    unit: str = "short",
    width: int = HALF,
) -> timeseries.Panel:
    """What happened in each interval, stacked."""
    return (
        curves(title, queries, description, unit, width)
        .draw_style(common_model.GraphDrawStyle.BARS)
        .fill_opacity(80)
        .stacking(common.StackingConfig().mode(common_model.StackingMode.NORMAL))
        .min(0)
    )


def logarithmic(panel: timeseries.Panel) -> timeseries.Panel:
    scale = common.ScaleDistributionConfig().type(common_model.ScaleDistribution.LOG).log(10)
    return panel.scale_distribution(scale)


def ranking(
    title: str, expr: str, description: str = "", unit: str = "short", width: int = THIRD
) -> table.Panel:
    """One number a row, the largest first; a row leads to its node."""
    panel = _panel(table.Panel(), title, description, width, [Query(expr)], instant=True)
    to_node = (
        build.DashboardLink("this node")
        .url("/d/flapd-node?var-instance=${__data.fields.instance}&${__url_time_range}")
        .build()
    )
    hidden = [model.DynamicConfigValue(id_val="custom.hidden", value=True)]
    for column in ("Time", "__name__", "job"):
        panel.override_by_name(column, hidden)
    link = {"title": to_node.title, "url": to_node.url}
    panel.override_by_name("instance", [model.DynamicConfigValue(id_val="links", value=[link])])
    panel.override_by_name("Value", [model.DynamicConfigValue(id_val="unit", value=unit)])
    return panel.sort_by([common.TableSortByFieldState().display_name("Value").desc(True)])


def states(
    title: str, query: Query, description: str, named: dict[str, tuple[str, str]]
) -> statetimeline.Panel:
    """`named` is what a value is called, and its colour."""
    options = {
        value: model.ValueMappingResult(text=text, color=color, index=index)
        for index, (value, (text, color)) in enumerate(named.items())
    }
    panel = _panel(statetimeline.Panel(), title, description, FULL, [query])
    return (
        panel.mappings([model.ValueMap(options=options)])
        .show_value(common_model.VisibilityMode.NEVER)
        .merge_values(True)
        .legend(_LEGEND)
    )


def durations(title: str, expr: str, description: str, width: int = HALF) -> heatmap.Panel:
    """Of a histogram: how many of which length, over time."""
    query = _query(Query(expr, "{{le}}"), "A").format(PromQueryFormat.HEATMAP)
    panel = heatmap.Panel().title(title).description(description).datasource(SOURCE)
    color = heatmap.HeatmapColorOptions().mode(HeatmapColorMode.SCHEME).scheme("Oranges").steps(64)
    return panel.with_target(query).color(color).height(HEIGHT).span(width)


def steps(*levels: tuple[float | None, str]) -> build.ThresholdsConfig:
    found = [model.Threshold(value=value, color=color) for value, color in levels]
    return build.ThresholdsConfig().mode(model.ThresholdsMode.ABSOLUTE).steps(found)


def _panel(
    panel: _P,
    title: str,
    description: str,
    width: int,
    queries: Sequence[Query],
    instant: bool = False,
) -> _P:
    panel.title(title).description(description).datasource(SOURCE).height(HEIGHT).span(width)
    for query, letter in zip(queries, _letters(), strict=False):
        target = _query(query, letter)
        panel.with_target(target.instant().format(PromQueryFormat.TABLE) if instant else target)
    return panel


def _query(query: Query, letter: str) -> prometheus.Dataquery:
    return prometheus.Dataquery().expr(query.expr).legend_format(query.legend).ref_id(letter)


def _letters() -> Iterator[str]:
    yield from "ABCDEFGH"
