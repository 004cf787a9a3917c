"""The fleet: what is wrong now, which links are worst, and what nobody sees."""

from grafana_foundation_sdk.models.dashboard import Dashboard

from deploy.grafana.frame import Row, dashboard
from deploy.grafana.parts import (
    HALF,
    LATE,
    NODES,
    PORTS,
    SENT_AGAIN,
    SENT_AGAIN_TOLD,
    Panel,
    Query,
    bars,
    curves,
    durations,
    logarithmic,
    number,
    ranking,
)

_PORT = "instance, device, port"
_WATCHED = f"flapd_port_watched{{{PORTS}}}"


def fleet() -> Dashboard:
    return dashboard(
        "fleet",
        "Which links flap, how much, and which nobody can see.",
        [_now(), _worst(), _over_time(), _blind()],
    )


def _now() -> Row:
    return Row("Now", [*_wrong_now(), *_unseen_now()])


def _wrong_now() -> list[Panel]:
    downs = f"sum by (instance) (increase(flapd_link_downs_total{{{PORTS}}}[5m]))"
    lacking = f"flapd_ports_expected{{{NODES}}} - flapd_ports_found{{{NODES}}}"
    return [
        number(
            "ports down",
            f"sum({_WATCHED} * (1 - flapd_port_up{{{PORTS}}}))",
            "Watched and not up. Planned work counts here too.",
        ),
        number(
            "links flapping",
            f"sum(flapd_link_flapping{{{PORTS}}})",
            "Their penalty reached flap.suspect and has not fallen to flap.clear since.",
        ),
        number(
            "nodes with a down in 5 min",
            f"sum({downs} > bool 0)",
            "Many at once: a switch or the subnet manager, not their cables.",
            worst_from=5,
        ),
        number(
            "ports missing",
            f"sum(clamp_min({lacking}, 0))",
            "Expected, or up there once, and not found now.",
        ),
    ]


def _unseen_now() -> list[Panel]:
    uncounted = f'flapd_link_witness_status{{{PORTS}, status=~"saturated|lying|unreadable|none"}}'
    return [
        number(
            "agents gone",
            f'sum(up{{job="flapd", {NODES}}} == bool 0)',
            "Of these nodes nothing at all is known.",
        ),
        number(
            "ports not seen well",
            f"sum({_WATCHED} * (1 - flapd_port_readable{{{PORTS}}}))"
            f" + sum({uncounted} * on ({_PORT}) group_left () {_WATCHED})",
            "Watched, and not readable, or without a counter that counts.",
        ),
    ]


def _worst() -> Row:
    ranked = f"topk(20, sum by ({_PORT})"
    flaps = f"increase(flapd_link_flaps_total{{{PORTS}}}[$__range])"
    drops = f"increase(flapd_link_drops_total{{{PORTS}}}[$__range])"
    down_seconds = f"increase(flapd_link_down_seconds_total{{{PORTS}}}[$__range])"
    return Row(
        "The worst links, of the time shown",
        [
            ranking("flaps", f"{ranked} ({flaps} + {drops}) > 0.5)", "Outages that ended."),
            ranking("down for", f"{ranked} ({down_seconds}) > 0)", "In all.", "s"),
            ranking(
                "penalty",
                f"topk(20, flapd_link_penalty{{{PORTS}}} > 0)",
                "1000 a down, halved every flap.half_life (6 h); flapping from 2000 on.",
            ),
        ],
    )


def _over_time() -> Row:
    downs = f"sum by (cause) (increase(flapd_link_downs_total{{{PORTS}}}[$__rate_interval]))"
    lengths = f"increase(flapd_link_down_seconds_bucket{{{NODES}}}[$__rate_interval])"
    ratios = f"topk(10, flapd_port_bit_error_ratio{{{PORTS}}} > 0)"
    return Row(
        "Over time",
        [
            bars(
                "downs by cause",
                [Query(downs, "{{cause}}")],
                "link: the link went; subnet: no ACTIVE while the link was up.",
            ),
            durations(
                "how long outages were", f"sum by (le) ({lengths})", "Of all ports of the nodes."
            ),
            logarithmic(
                curves(
                    "worst bit error ratios",
                    [Query(ratios, "{{instance}} {{device}}/{{port}}")],
                    "After correction, of 12 minutes; a link without errors is not drawn."
                    " InfiniBand allows 1e-12.",
                )
            ),
            curves(
                "retransmissions by cause",
                [Query(f"sum by (cause) ({SENT_AGAIN})", "{{cause}}")],
                SENT_AGAIN_TOLD,
                "ops",
            ),
        ],
    )


def _blind() -> Row:
    return Row("What is not seen", [*_blind_ports(), *_ailing_agents()])


def _blind_ports() -> list[Panel]:
    unread = f"{_WATCHED} == 1 and flapd_port_readable{{{PORTS}}} == 0"
    by_witness = f"sum by (status) (flapd_link_witness_status{{{PORTS}}})"
    stuck = f"flapd_reader_stuck_seconds{{{PORTS}}} > 0"
    return [
        curves(
            "agents that do not answer",
            [Query(f'up{{job="flapd", {NODES}}} == 0', "{{instance}}")],
            "A line for each, while it is so.",
        ),
        curves(
            "ports that cannot be read",
            [Query(unread, "{{instance}} {{device}}/{{port}}")],
            "A line for each, while it is so.",
        ),
        curves(
            "ports by what counts their downs",
            [Query(by_witness, "{{status}}")],
            "live and unproven count. saturated, lying, unreadable and none do not: short downs"
            " may be missed there.",
        ),
        curves(
            "readers that hang",
            [Query(stuck, "{{instance}} {{device}}")],
            "How long they have waited in one read: the firmware does not answer.",
            "s",
        ),
        ranking(
            "sources that tell nothing",
            f"sum by (instance, source) (1 - flapd_source_up{{{NODES}}}) > 0",
            "`flapd ports` on the node says why.",
            width=HALF,
        ),
    ]


def _ailing_agents() -> list[Panel]:
    errors = f"rate(flapd_read_errors_total{{{PORTS}}}[$__rate_interval])"
    return [
        curves(
            "lateness of samples",
            [
                Query(f"histogram_quantile(0.5, {LATE})", "median"),
                Query(f"histogram_quantile(0.999, {LATE})", "99.9 %"),
            ],
            unit="s",
        ),
        curves(
            "read errors by reason",
            [Query(f"sum by (reason) ({errors})", "{{reason}}")],
            unit="ops",
        ),
        curves(
            "events not on disk",
            [Query(f"flapd_events_not_durable{{{NODES}}} > 0", "{{instance}}")],
            "They are in no total until they are.",
        ),
        curves(
            "agents by version",
            [Query(f"count by (version) (flapd_build_info{{{NODES}}})", "{{version}}")],
        ),
    ]
