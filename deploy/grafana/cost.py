"""The cost: what flaps are held to have taken from jobs, by what became of them."""

from grafana_foundation_sdk.builders.dashboard import TextBoxVariable
from grafana_foundation_sdk.models.dashboard import Dashboard

from deploy.grafana.frame import Row, dashboard
from deploy.grafana.parts import (
    FULL,
    NODES,
    PORTS,
    THIRD,
    Query,
    bars,
    curves,
    ranking,
)

_CLAIMED = f"increase(flapd_gpu_seconds_claimed_total{{{PORTS}}}[$__range])"
_AT_LEAST = f"increase(flapd_gpu_seconds_claimed_low_total{{{PORTS}}}[$__range])"
_NO_SUM = (
    "An agent claims for causes on its own ports; several may claim the same job, so these are"
    " not summed over nodes."
)


def cost() -> Dashboard:
    price = TextBoxVariable("price").label("price of a GPU-hour").default_value("2.50")
    return dashboard(
        "cost",
        "GPU-seconds that flaps are held to have cost, counted at the close of incidents.",
        [_links(), _regimes(), _near()],
        more=[price],
    )


def _links() -> Row:
    ranked = "topk(20, sum by (instance, device, port)"
    return Row(
        "The dearest links, of the time shown",
        [
            ranking("GPU-hours, likely", f"{ranked} ({_CLAIMED}) / 3600 > 0)", _NO_SUM),
            ranking("GPU-hours, at least", f"{ranked} ({_AT_LEAST}) / 3600 > 0)", _NO_SUM),
            ranking("money, likely", f"{ranked} ({_CLAIMED}) / 3600 * $price > 0)", _NO_SUM),
        ],
    )


def _regimes() -> Row:
    claimed = f"increase(flapd_gpu_seconds_claimed_total{{{PORTS}}}[$__rate_interval])"
    stalls = f"increase(flapd_stall_seconds_total{{{NODES}}}[$__rate_interval])"
    ended = f"increase(flapd_incidents_total{{{NODES}}}[$__rate_interval])"
    return Row(
        "What became of flaps",
        [
            bars(
                "GPU-seconds by regime",
                [Query(f"sum by (instance, regime) ({claimed}) > 0", "{{instance}} {{regime}}")],
                "hidden: nobody felt it; absorbed: all waited and went on; transport_abort, "
                f"watchdog: the job died; failover: another port took over. {_NO_SUM}",
                "s",
                FULL,
            ),
            bars(
                "incidents by verdict",
                [Query(f"sum by (verdict) ({ended})", "{{verdict}}")],
                "As agents see them: one of a job is told by each of its nodes.",
            ),
            bars(
                "traffic stood still, by class",
                [Query(f"sum by (class) ({stalls})", "{{class}}")],
                "Seconds of nodes.",
                "s",
            ),
        ],
    )


def _near() -> Row:
    budget = f"min by (instance) (flapd_job_retry_budget_seconds{{{NODES}}})"
    used = f"flapd_link_last_down_seconds{{{PORTS}}} and flapd_port_job_ranks{{{PORTS}}} > 0"
    return Row(
        "How near jobs are to their end",
        [
            ranking(
                "last outage over retry budget",
                f"topk(20, ({used}) / on (instance) group_left () {budget})",
                "From 1 on the transport gives up. Series of jobs need a scrape with the token.",
                "percentunit",
                THIRD,
            ),
            curves(
                "retry budgets",
                [
                    Query(
                        f"flapd_job_retry_budget_seconds{{{NODES}}}",
                        "{{instance}} {{exported_job}}",
                    )
                ],
                unit="s",
                width=THIRD,
            ),
            curves(
                "down seconds, 99 % of outages",
                [
                    Query(
                        "histogram_quantile(0.99, sum by (le)"
                        f" (increase(flapd_link_down_seconds_bucket{{{NODES}}}[$__range])))",
                        "99 %",
                    )
                ],
                "A timeout above this endures all but 1 in 100: `flapd advise` works it out.",
                "s",
                THIRD,
            ),
        ],
    )
