"""Log metrics: how reading the logs and dumps of jobs goes."""

from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from flapd.sources.job_reader_link import JobReaderHealth


def log_families(health: JobReaderHealth) -> Iterator[Metric]:
    """What a reader counts begins at 0 again with the next one."""
    reads = health.reads
    yield CounterMetricFamily(
        "flapd_job_reader_restarts",
        "Times the process that reads logs of jobs was started again.",
        health.restarts,
    )
    yield GaugeMetricFamily("flapd_logs_followed", "Logs that are read as they grow.", reads.files)
    yield CounterMetricFamily("flapd_log_bytes_read", "Bytes of logs that were read.", reads.bytes)
    yield GaugeMetricFamily(
        "flapd_log_bytes_behind", "Bytes that are in logs and not read yet.", reads.behind_bytes
    )
    yield GaugeMetricFamily(
        "flapd_log_read_failures",
        "Files, patterns and processes that cannot be read now.",
        len(reads.failures),
    )
    yield CounterMetricFamily(
        "flapd_log_unknown_warnings",
        "Warnings of NCCL in forms that flapd does not know.",
        reads.unknown_warnings,
    )
    yield CounterMetricFamily(
        "flapd_log_faults_held_back",
        "Faults that logs told and that said the same as many before them.",
        reads.faults_held_back,
    )
    yield CounterMetricFamily(
        "flapd_dumps_read", "Flight-recorder dumps that were read.", reads.dumps
    )
