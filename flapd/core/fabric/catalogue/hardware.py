"""Counters in hw_counters, which each driver names in its own way.

Names and widths: hw/mlx5/counters.c, hw/mlx4/main.c, hw/bnxt_re/hw_counters.c (with the
names of Broadcom's own releases, which are those of mlx5), hw/irdma/verbs.c (with those
of Intel's), hw/efa/efa_verbs.c, hw/mana/counters.c, sw/rxe/rxe_hw_counters.c,
hw/hfi1/chip.c, hw/hns/hns_roce_main.c, hw/erdma/erdma_verbs.c, all of
drivers/infiniband. A name that stands here for no driver is exported as it is.
"""

import re
from collections.abc import Iterator

from flapd.core.fabric.catalogue.counter import Class, Counter, Meaning
from flapd.core.fabric.catalogue.port_files import SW_LINK_DOWN
from flapd.model.times import SECOND_NS

_NODE_EXPORTER = {
    "duplicate_request": "duplicate_requests_packets",
    "implied_nak_seq_err": "implied_nak_seq_errors",
    "local_ack_timeout_err": "local_ack_timeout_errors",
    "np_cnp_sent": "np_cnp_packets_sent",
    "np_ecn_marked_roce_packets": "np_ecn_marked_roce_packets_received",
    "out_of_buffer": "out_of_buffer_drops",
    "out_of_sequence": "out_of_sequence_packets_received",
    "packet_seq_err": "packet_sequence_errors",
    "req_cqe_error": "req_cqes_errors",
    "req_cqe_flush_error": "req_cqes_flush_errors",
    "req_remote_invalid_request": "req_remote_invalid_request_errors",
    "resp_cqe_error": "resp_cqes_errors",
    "resp_cqe_flush_error": "resp_cqes_flush_errors",
    "resp_local_length_error": "resp_local_length_errors",
    "rnr_nak_retry_err": "rnr_nak_retry_packets_received",
    "roce_adp_retrans": "roce_adp_retransmits",
    "roce_adp_retrans_to": "roce_adp_retransmits_timeout",
    "roce_slow_restart": "roce_slow_restart_used",
    "roce_slow_restart_trans": "roce_slow_restart",
    "rp_cnp_handled": "rp_cnp_packets_handled",
    "rp_cnp_ignored": "rp_cnp_ignored_packets_received",
    "rx_dct_connect": "rx_dct_connect_requests",
    "rx_icrc_encapsulated": "rx_icrc_encapsulated_errors",
}
"""What node_exporter calls some files (collector/infiniband_linux.go)."""

_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")


def _metric(file: str) -> str:
    """`SwLinkDown,32` is `sw_link_down`; the number is the width (hw/hfi1/verbs.c)."""
    return _NODE_EXPORTER.get(file) or _WORDS.sub("_", file.partition(",")[0]).lower()


def _counters(
    klass: Class, meaning: Meaning | None, names: str, bits: int = 64
) -> Iterator[Counter]:
    for file in names.split():
        yield Counter(
            f"hw_counters/{file}", _metric(file), "slow", bits, klass=klass, meaning=meaning
        )


def _errors(meaning: Meaning | None, names: str, bits: int = 64) -> Iterator[Counter]:
    return _counters("error", meaning, names, bits)


def _traffic(names: str, meaning: Meaning = "traffic", bits: int = 64) -> Iterator[Counter]:
    return _counters("traffic", meaning, names, bits)


def _gauges(names: str) -> Iterator[Counter]:
    for file in names.split():
        yield Counter(f"hw_counters/{file}", _metric(file), "slow", klass="state", kind="gauge")


def _mlx5_names(bits: int) -> Iterator[Counter]:
    """Q counters have the given width, those of congestion and of the wire 64 bits."""
    yield from _errors("ack_timeout", "local_ack_timeout_err", bits)
    yield from _errors("retransmitted", "roce_adp_retrans", bits)
    yield from _errors("adaptive_timeout", "roce_adp_retrans_to", bits)
    yield from _errors("sequence_nak", "packet_seq_err", bits)
    yield from _errors("implied_nak", "implied_nak_seq_err", bits)
    yield from _errors("out_of_sequence", "out_of_sequence", bits)
    yield from _errors("duplicate", "duplicate_request", bits)
    yield from _errors("rnr_nak_received", "rnr_nak_retry_err", bits)
    yield from _errors("rnr_nak_sent", "out_of_buffer", bits)
    yield from _errors("retries_exhausted", "req_transport_retries_exceeded", bits)
    yield from _errors("rnr_retries_exhausted", "req_rnr_retries_exceeded", bits)
    yield from _errors("completion_error", "req_cqe_error resp_cqe_error", bits)
    yield from _errors("completion_flushed", "req_cqe_flush_error resp_cqe_flush_error", bits)
    yield from _errors(
        None,
        "req_remote_access_errors req_remote_invalid_request "
        "resp_local_length_error resp_remote_access_errors",
        bits,
    )
    yield from _errors(
        "slow_restart", "roce_slow_restart roce_slow_restart_cnps roce_slow_restart_trans", bits
    )
    yield from _errors("icrc", "rx_icrc_encapsulated")
    yield from _errors(None, "rp_cnp_ignored")
    yield from _traffic("rp_cnp_handled", "cnp_received")
    yield from _traffic("np_cnp_sent", "cnp_sent")
    yield from _traffic("np_ecn_marked_roce_packets", "ecn_marked")
    yield from _traffic(
        "rx_write_requests rx_read_requests rx_atomic_requests rx_dct_connect", bits=bits
    )


def _mlx5() -> Iterator[Counter]:
    """With the counters that netlink has once somebody enabled them."""
    yield from _mlx5_names(32)
    yield from _traffic("cc_rx_ce_pkts", "ecn_marked")
    yield from _traffic("cc_rx_cnp_pkts", "cnp_received")
    yield from _traffic("cc_tx_cnp_pkts", "cnp_sent")
    yield from _traffic("rdma_tx_packets rdma_tx_bytes rdma_rx_packets rdma_rx_bytes")


def _mlx4() -> Iterator[Counter]:
    yield from _errors("ack_timeout", "sq_num_to", 32)
    yield from _errors("sequence_nak", "sq_num_oos", 32)
    yield from _errors("out_of_sequence", "rq_num_oos", 32)
    yield from _errors("duplicate", "rq_num_dup", 32)
    yield from _errors("rnr_nak_received", "sq_num_rnr", 32)
    yield from _errors("rnr_nak_sent", "rq_num_rnr", 32)
    yield from _errors("retries_exhausted", "sq_num_tree", 32)
    yield from _errors("rnr_retries_exhausted", "sq_num_rree", 32)
    yield from _errors("completion_flushed", "sq_num_wrfe rq_num_wrfe", 32)
    yield from _errors(
        None,
        "rq_num_lle sq_num_lle rq_num_lqpoe sq_num_lqpoe rq_num_lpe sq_num_lpe sq_num_mwbe "
        "sq_num_bre sq_num_rire rq_num_rire sq_num_rae rq_num_rae sq_num_roe",
        32,
    )


def _bnxt_re() -> Iterator[Counter]:
    yield from _mlx5_names(64)
    yield from _errors("ack_timeout", "to_retransmits")
    yield from _errors("sequence_nak", "seq_err_naks_rcvd")
    yield from _errors("implied_nak", "missing_resp")
    yield from _errors("out_of_sequence", "oos_drop_count")
    yield from _errors("duplicate", "dup_req")
    yield from _errors("rnr_nak_received", "rnr_naks_rcvd")
    yield from _errors("rnr_nak_sent", "rx_out_of_buffer")
    yield from _errors("retries_exhausted", "max_retry_exceeded")
    yield from _errors("completion_error", "unrecoverable_err")
    yield from _errors("discard", "rx_roce_discards tx_roce_discards rx_roce_errors tx_roce_errors")
    yield from _errors(
        None,
        "bad_resp_err local_qp_op_err local_protection_err mem_mgmt_op_err "
        "remote_invalid_req_err remote_access_err remote_op_err res_exceed_max "
        "res_length_mismatch res_exceeds_wqe res_opcode_err res_rx_invalid_rkey "
        "res_rx_domain_err res_rx_no_perm res_rx_range_err res_tx_invalid_rkey "
        "res_tx_domain_err res_tx_no_perm res_tx_range_err res_irrq_oflow res_unsup_opcode "
        "res_unaligned_atomic res_rem_inv_err res_mem_err res_srq_err res_cmp_err "
        "res_invalid_dup_rkey res_wqe_format_err res_cq_load_err res_srq_load_err "
        "res_tx_pci_err res_rx_pci_err recoverable_errors",
    )
    yield from _bnxt_re_traffic()


def _bnxt_re_traffic() -> Iterator[Counter]:
    yield from _traffic("rx_cnp_pkts", "cnp_received")
    yield from _traffic("tx_cnp_pkts np_cnp_pkts", "cnp_sent")
    yield from _traffic("rx_ecn_marked_pkts", "ecn_marked")
    yield from _traffic(
        "rx_pkts rx_bytes tx_pkts tx_bytes tx_atomic_req tx_read_req tx_read_resp tx_write_req "
        "tx_send_req rx_atomic_req rx_read_req rx_read_resp rx_write_req rx_send_req "
        "rx_roce_good_pkts rx_roce_good_bytes rx_good_pkts rx_good_bytes tx_roce_only_pkts "
        "tx_roce_only_bytes rx_roce_only_pkts rx_roce_only_bytes"
    )
    yield from _counters("state", None, "pacing_reschedule pacing_complete pacing_alerts")
    yield from _gauges(
        "active_pds active_ahs active_qps active_rc_qps active_ud_qps active_srqs active_cqs "
        "active_mrs active_mws watermark_pds watermark_ahs watermark_qps watermark_rc_qps "
        "watermark_ud_qps watermark_srqs watermark_cqs watermark_mrs watermark_mws "
        "db_fifo_register"
    )


def _irdma() -> Iterator[Counter]:
    yield from _errors("retransmitted", "tcpRetransSegs RetransSegs")
    yield from _errors("discard", "ip4InDiscards ip6InDiscards rxVlanErrors")
    yield from _errors(
        None,
        "ip4InTruncatedPkts ip6InTruncatedPkts ip4OutNoRoutes ip6OutNoRoutes cnpIgnored "
        "tcpInOptErrors tcpInProtoErrors InOptErrors InProtoErrors",
    )
    yield from _traffic("cnpHandled", "cnp_received")
    yield from _traffic("cnpSent", "cnp_sent")
    yield from _traffic("RxECNMrkd", "ecn_marked")
    for ip in ("ip4", "ip6"):
        for way in ("In", "Out"):
            whole = f"{ip}{way}"
            yield from _traffic(
                f"{whole}Octets {whole}Pkts {whole}McastOctets {whole}McastPkts "
                f"{whole}{'ReasmRqd' if way == 'In' else 'SegRqd'}"
            )
    yield from _traffic("tcpInSegs tcpOutSegs InSegs OutSegs RxUDP TxUDP")
    for prefix in ("iw", ""):
        yield from _traffic(
            f"{prefix}InRdmaReads {prefix}InRdmaSends {prefix}InRdmaWrites "
            f"{prefix}OutRdmaReads {prefix}OutRdmaSends {prefix}OutRdmaWrites "
            f"{prefix}RdmaBnd {prefix}RdmaInv"
        )


def _efa() -> Iterator[Counter]:
    yield from _errors("ack_timeout", "retrans_timeout_events")
    yield from _errors("retransmitted", "retrans_pkts")
    yield from _errors("retransmitted_bytes", "retrans_bytes")
    yield from _errors("retries_exhausted", "unresponsive_remote_events")
    yield from _errors("completion_error", "rdma_read_wr_err rdma_write_wr_err")
    yield from _errors("discard", "rx_drops")
    yield from _errors("path_impaired", "impaired_remote_conn_events")
    yield from _traffic(
        "tx_bytes tx_pkts rx_bytes rx_pkts send_bytes send_wrs recv_bytes recv_wrs "
        "rdma_read_wrs rdma_read_bytes rdma_read_resp_bytes "
        "rdma_write_wrs rdma_write_bytes rdma_write_recv_bytes"
    )


def _mana() -> Iterator[Counter]:
    yield from _errors("ack_timeout", "requester_timeout")
    yield from _errors("sequence_nak", "requester_oos_nak")
    yield from _errors("implied_nak", "requester_implicit_nak requester_readresp_psn_mismatch")
    yield from _errors("out_of_sequence", "responder_oos")
    yield from _errors("duplicate", "responder_dup_request dup_rx_requests")
    yield from _errors("rnr_nak_received", "requester_rnr_nak")
    yield from _errors("rnr_nak_sent", "responder_rnr_nak")
    yield from _errors("retries_exhausted", "requester_retries_exceeded")
    yield from _errors("rnr_retries_exhausted", "requester_rnr_nak_retries_exceeded")
    yield from _errors("completion_error", "total_fatal_error")
    yield from _errors("path_impaired", "num_qps_congested")
    yield from _errors(
        None,
        "nak_inv_req nak_access_error nak_opp_error nak_inv_read responder_local_len_error "
        "requestor_local_prot_error responder_rem_access_error responder_local_qp_error "
        "responder_malformed_wqe general_hw_error",
    )
    yield from _traffic("received_cnps", "cnp_received")
    yield from _traffic(
        "tx_bytes rx_bytes tx_packets rx_packets rx_send_requests rx_write_requests "
        "rx_read_requests"
    )
    yield from _counters("state", None, "rate_inc_events num_qps_recovered")
    yield from _gauges("current_rate")


def _rxe() -> Iterator[Counter]:
    yield from _errors("ack_timeout", "completer_retry_err")  # and every other reason to retry
    yield from _errors("sequence_nak", "rcvd_seq_err")
    yield from _errors("out_of_sequence", "out_of_seq_request")
    yield from _errors("duplicate", "duplicate_request")
    yield from _errors("rnr_nak_received", "rcvd_rnr_err")
    yield from _errors("rnr_nak_sent", "send_rnr_err")
    yield from _errors("retries_exhausted", "retry_exceeded_err")
    yield from _errors("rnr_retries_exhausted", "retry_rnr_exceeded_err")
    yield from _errors("completion_error", "send_err")
    # Of notifications while the netdev is down, whatever they are about: no count of downs.
    yield Counter("hw_counters/link_downed", "link_down_notifications", "slow")
    yield from _traffic("sent_pkts rcvd_pkts rdma_sends rdma_recvs")
    yield from _counters("state", None, "ack_deferred")


def _hfi1() -> Iterator[Counter]:
    yield from _errors("ack_timeout", "RcTimeOut")
    yield from _errors("retransmitted", "RcResend")
    yield from _errors("sequence_nak", "SeqNak")
    yield from _errors("implied_nak", "RdmaSeq")
    yield from _errors("out_of_sequence", "RcSeqNak")  # NAKs sent (hw/hfi1/rc.c: rc_rcv_error)
    yield from _errors("duplicate", "RcDupRew")
    yield from _errors("rnr_nak_received", "RnrNak")
    yield from _errors("discard", "PktDrop XmitDscd")
    yield Counter(SW_LINK_DOWN, "sw_link_down", "fast", 32, meaning="link_down", lag_ns=SECOND_NS)
    yield from _counters("state", None, "SwLinkUp,32", 32)
    yield from _traffic("TxPkt RxPkt")


def _hns() -> Iterator[Counter]:
    yield from _errors("discard", "rx_err_pkt tx_err_pkt")
    yield from _errors(None, "trp_get_mpt_err_pkt trp_get_irrl_err_pkt")
    yield from _traffic("rx_cnp_pkt", "cnp_received")
    yield from _traffic("tx_cnp_pkt", "cnp_sent")
    yield from _traffic(
        "rx_pkt rx_rc_pkt rx_uc_pkt rx_ud_pkt rx_xrc_pkt "
        "tx_pkt tx_rc_pkt tx_uc_pkt tx_ud_pkt tx_xrc_pkt"
    )


def _erdma() -> Iterator[Counter]:
    """Alibaba's own releases prefix `hw_`, and drop the `tx_` behind it where packets are lost."""
    yield from _errors(
        "discard",
        "tx_disable_drop_cnt tx_bps_limit_drop_cnt tx_pps_limit_drop_cnt "
        "rx_disable_drop_cnt rx_bps_limit_drop_cnt rx_pps_limit_drop_cnt "
        "hw_disable_drop_cnt hw_bps_limit_drop_cnt hw_pps_limit_drop_cnt "
        "hw_rx_disable_drop_cnt hw_rx_bps_limit_drop_cnt hw_rx_pps_limit_drop_cnt",
    )
    for prefix in ("", "hw_"):
        yield from _traffic(
            f"{prefix}tx_reqs_cnt {prefix}tx_packets_cnt {prefix}tx_bytes_cnt "
            f"{prefix}rx_packets_cnt {prefix}rx_bytes_cnt"
        )


HARDWARE_COUNTERS: dict[str, tuple[Counter, ...]] = {
    "mlx5": tuple(_mlx5()),
    "mlx4": tuple(_mlx4()),
    "bnxt_re": tuple(_bnxt_re()),
    "irdma": tuple(_irdma()),
    "efa": tuple(_efa()),
    "mana": tuple(_mana()),
    "rxe": tuple(_rxe()),
    "hfi1": tuple(_hfi1()),
    "hns": tuple(_hns()),
    "erdma": tuple(_erdma()),
}
"""By RDMA driver; siw, qedr, cxgb4, ocrdma, mthca and qib have none of a port."""
