"""One node: its ports over time, how clean their links are, its jobs, and the agent itself."""

from grafana_foundation_sdk.models.dashboard import Dashboard

from deploy.grafana.frame import Row, dashboard
from deploy.grafana.parts import (
    FULL,
    LATE,
    NODES,
    PORTS,
    SENT_AGAIN,
    SENT_AGAIN_TOLD,
    THIRD,
    Panel,
    Query,
    bars,
    curves,
    logarithmic,
    ranking,
    states,
)

_PORT = "{{device}}/{{port}}"


def node() -> Dashboard:
    return dashboard(
        "node",
        "The ports of one node: what they did, how clean they are, what jobs felt.",
        [_ports(), _links(), _jobs(), _agent()],
        several_nodes=False,
    )


def _ports() -> Row:
    downs = f"increase(flapd_link_downs_total{{{PORTS}}}[$__rate_interval])"
    by_cause = f"sum by (device, port, cause) ({downs})"
    down_seconds = f"increase(flapd_link_down_seconds_total{{{PORTS}}}[$__rate_interval])"
    return Row(
        "Ports",
        [
            _states(f"sum without (cause) ({downs})"),
            bars("downs", [Query(by_cause, f"{_PORT} {{{{cause}}}}")], width=THIRD),
            bars(
                "down seconds",
                [Query(down_seconds, _PORT)],
                "Of outages that ended, at their end.",
                "s",
                THIRD,
            ),
            curves(
                "penalty",
                [Query(f"flapd_link_penalty{{{PORTS}}}", _PORT)],
                "Flapping from flap.suspect (2000) until flap.clear (750).",
                width=THIRD,
            ),
            ranking("what the ports are", f"flapd_port_info{{{PORTS}}}", width=FULL),
        ],
    )


def _states(downs: str) -> Panel:
    return states(
        "state",
        Query(f"flapd_port_up{{{PORTS}}} * (1 + ({downs} > bool 0))", _PORT),
        "A flap shorter than the scrape interval is seen too: the counter has it. A gap: not"
        " known.",
        {
            "0": ("down", "dark-red"),
            "1": ("up", "green"),
            "2": ("went down and came back", "orange"),
        },
    )


def _links() -> Row:
    return Row("How clean the links are", [*_errors(), *_abilities()])


def _errors() -> list[Panel]:
    symbol_errors = f"rate(flapd_port_symbol_error_total{{{PORTS}}}[$__rate_interval])"
    return [
        logarithmic(
            curves(
                "bit error ratio",
                [Query(f"flapd_port_bit_error_ratio{{{PORTS}}}", _PORT)],
                "After correction, of 12 minutes; nothing where it cannot be told.",
            )
        ),
        curves("symbol errors", [Query(symbol_errors, _PORT)], unit="ops"),
        curves(
            "retransmissions by cause",
            [Query(SENT_AGAIN, f"{_PORT} {{{{cause}}}}")],
            SENT_AGAIN_TOLD,
            "ops",
        ),
    ]


def _abilities() -> list[Panel]:
    witness = f"flapd_link_witness_status{{{PORTS}}} == 1"
    saturated = f"flapd_port_counter_saturated{{{PORTS}}} == 1"
    return [
        curves(
            "rate",
            [Query(f"flapd_port_rate_bytes_per_second{{{PORTS}}}", _PORT)],
            "A step down: a lane was lost.",
            "Bps",
        ),
        curves(
            "what counts downs",
            [Query(witness, f"{_PORT} {{{{status}}}}")],
            "saturated, lying, unreadable, none: short downs may be missed.",
        ),
        curves(
            "counters at their stop",
            [Query(saturated, f"{_PORT} {{{{counter}}}}")],
            "They count no further until they are cleared.",
        ),
    ]


def _jobs() -> Row:
    stalls = f"sum by (class) (increase(flapd_stall_seconds_total{{{NODES}}}[$__rate_interval]))"
    faults = f"sum by (kind) (increase(flapd_faults_total{{{NODES}}}[$__rate_interval]))"
    return Row(
        "Jobs",
        [
            _endured(),
            bars("traffic stood still", [Query(stalls, "{{class}}")], unit="s", width=THIRD),
            bars("errors in logs and counters", [Query(faults, "{{kind}}")], width=THIRD),
            curves("ranks that use a port", [Query(f"flapd_port_job_ranks{{{PORTS}}}", _PORT)]),
            curves("incidents that go on", [Query(f"flapd_incident_open{{{NODES}}}", "open")]),
        ],
    )


def _endured() -> Panel:
    budget = f"min(flapd_job_retry_budget_seconds{{{NODES}}})"
    queries = [
        Query(f"flapd_link_last_down_seconds{{{PORTS}}} > 0", _PORT),
        Query(budget, "retry budget"),
        Query(f"min(flapd_job_watchdog_seconds{{{NODES}}})", "watchdog"),
    ]
    return logarithmic(
        curves(
            "last outage and what jobs endure",
            queries,
            "Above the retry budget the transport gives up. Series of jobs need a scrape with"
            " the token.",
            "s",
            THIRD,
        )
    )


def _agent() -> Row:
    reads = f"sum by (le, tier) (rate(flapd_read_seconds_bucket{{{PORTS}}}[$__rate_interval]))"
    errors = f"rate(flapd_read_errors_total{{{PORTS}}}[$__rate_interval]) > 0"
    read_99 = Query(f"histogram_quantile(0.99, {reads})", "{{tier}}")
    late_999 = Query(f"histogram_quantile(0.999, {LATE})", "99.9 %")
    stuck = Query(f"flapd_reader_stuck_seconds{{{PORTS}}}", "{{device}}")
    history = Query(f"flapd_history_bytes{{{NODES}}}", "on disk")
    return Row(
        "The agent",
        [
            curves("time to read a device, 99 %", [read_99], unit="s", width=THIRD),
            curves("lateness of samples", [late_999], unit="s", width=THIRD),
            curves("readers that hang", [stuck], unit="s", width=THIRD),
            curves(
                "read errors", [Query(errors, "{{device}} {{reason}}")], unit="ops", width=THIRD
            ),
            curves(
                "sources",
                [Query(f"flapd_source_up{{{NODES}}}", "{{source}}")],
                "1 where it tells of at least one port; `flapd ports` says why one does not.",
                width=THIRD,
            ),
            curves("history", [history], unit="bytes", width=THIRD),
        ],
    )
