"""Counters of each driver as data: names from the kernel's source, and what moves each.

counters/: drivers/infiniband/core/sysfs.c and include/rdma/ib_pma.h, which stop at all
ones. hw_counters/: the file named at each table. That they stand together like this,
and how far each moves with a down, is from source and not from a capture, but for rxe.
"""

from collections.abc import Mapping

from simulators.fabric.counters import Rule, stops, wraps

Rules = Mapping[str, Rule]

# What one loss of the link costs a busy port: time-outs of requests, then answers out of order.
_TIMEOUTS = 7
_NAKS = 3

_PACKET_BYTES = 4096
_WRITE_BYTES = 1 << 20
_WORD_BYTES = 8
_DATA_UNIT_BYTES = 4


def _pma(name: str, rule: Rule) -> dict[str, Rule]:
    return {f"counters/{name}": rule}


def _hw(
    still: str = "",
    *,
    bits: int = 64,
    octets: str = "",
    packets: str = "",
    writes: str = "",
    timeouts: str = "",
    naks: str = "",
) -> dict[str, Rule]:
    """Hardware counters by what moves them; each a list of names in one string."""
    moved = (
        (still, wraps(bits)),
        (octets, wraps(bits, bytes_per_step=1)),
        (packets, wraps(bits, bytes_per_step=_PACKET_BYTES)),
        (writes, wraps(bits, bytes_per_step=_WRITE_BYTES)),
        (timeouts, wraps(bits, per_down=_TIMEOUTS)),
        (naks, wraps(bits, per_down=_NAKS)),
    )
    return {f"hw_counters/{name}": rule for names, rule in moved for name in names.split()}


LINK_DOWNED: Rules = _pma("link_downed", stops(8, per_down=1))

PMA_ERRORS_STILL: Rules = {
    **_pma("link_downed", stops(8)),
    **_pma("symbol_error", stops(16)),
    **_pma("link_error_recovery", stops(8)),
    **_pma("port_rcv_errors", stops(16)),
    **_pma("port_rcv_remote_physical_errors", stops(16)),
    **_pma("port_rcv_switch_relay_errors", stops(16)),
    **_pma("port_xmit_discards", stops(16)),
    **_pma("port_xmit_constraint_errors", stops(8)),
    **_pma("port_rcv_constraint_errors", stops(8)),
    **_pma("local_link_integrity_errors", stops(4)),
    **_pma("excessive_buffer_overrun_errors", stops(4)),
    **_pma("VL15_dropped", stops(16)),
    **_pma("port_xmit_wait", stops(32)),
}
"""Nothing moves them: on Ethernet nobody has confirmed that firmware fills them."""

PMA_TRAFFIC: Rules = {
    **_pma("port_xmit_data", wraps(64, bytes_per_step=_DATA_UNIT_BYTES)),
    **_pma("port_rcv_data", wraps(64, bytes_per_step=_DATA_UNIT_BYTES)),
    **_pma("port_xmit_packets", wraps(64, bytes_per_step=_PACKET_BYTES)),
    **_pma("port_rcv_packets", wraps(64, bytes_per_step=_PACKET_BYTES)),
    **_pma("unicast_xmit_packets", wraps(64, bytes_per_step=_PACKET_BYTES)),
    **_pma("unicast_rcv_packets", wraps(64, bytes_per_step=_PACKET_BYTES)),
    **_pma("multicast_xmit_packets", wraps(64)),
    **_pma("multicast_rcv_packets", wraps(64)),
}

PMA: Rules = {**PMA_ERRORS_STILL, **LINK_DOWNED, **PMA_TRAFFIC}
PMA_WITHOUT_DOWNS: Rules = {**PMA_ERRORS_STILL, **PMA_TRAFFIC}

PPCNT = tuple(PMA_ERRORS_STILL)
"""What mlx5 reads with the access register command (hw/mlx5/mad.c), a command each."""

MLX5: Rules = {
    # hw/mlx5/counters.c; 32-bit registers, but those that count congestion.
    **_hw(
        "rx_read_requests rx_atomic_requests rx_dct_connect out_of_buffer out_of_sequence"
        " duplicate_request rnr_nak_retry_err implied_nak_seq_err resp_local_length_error"
        " resp_cqe_error req_cqe_error req_remote_invalid_request req_remote_access_errors"
        " resp_remote_access_errors resp_cqe_flush_error req_cqe_flush_error"
        " req_transport_retries_exceeded req_rnr_retries_exceeded roce_adp_retrans"
        " roce_adp_retrans_to roce_slow_restart roce_slow_restart_cnps roce_slow_restart_trans",
        bits=32,
        writes="rx_write_requests",
        timeouts="local_ack_timeout_err",
        naks="packet_seq_err",
    ),
    **_hw(
        "rp_cnp_ignored rp_cnp_handled np_ecn_marked_roce_packets np_cnp_sent rx_icrc_encapsulated"
    ),
}

MLX4: Rules = _hw(  # hw/mlx4/main.c
    "rq_num_lle sq_num_lle rq_num_lqpoe sq_num_lqpoe rq_num_lpe sq_num_lpe rq_num_wrfe sq_num_wrfe"
    " sq_num_mwbe sq_num_bre sq_num_rire rq_num_rire sq_num_rae rq_num_rae sq_num_roe sq_num_tree"
    " sq_num_rree rq_num_rnr sq_num_rnr rq_num_oos rq_num_dup",
    bits=32,
    timeouts="sq_num_to",
    naks="sq_num_oos",
)

BNXT_RE: Rules = _hw(  # hw/bnxt_re/hw_counters.c
    "active_pds active_ahs active_qps active_srqs active_cqs active_mrs active_mws watermark_qps"
    " recoverable_errors rx_roce_errors rx_roce_discards tx_roce_errors tx_roce_discards"
    " max_retry_exceeded rnr_naks_rcvd missing_resp unrecoverable_err bad_resp_err local_qp_op_err"
    " local_protection_err mem_mgmt_op_err remote_invalid_req_err remote_access_err remote_op_err"
    " dup_req res_exceed_max res_length_mismatch res_exceeds_wqe res_opcode_err res_mem_err"
    " res_tx_pci_err res_rx_pci_err oos_drop_count tx_atomic_req rx_atomic_req rx_out_of_buffer"
    " tx_cnp_pkts rx_cnp_pkts rx_ecn_marked_pkts pacing_reschedule pacing_complete pacing_alerts"
    " db_fifo_register",
    octets="rx_bytes tx_bytes rx_roce_good_bytes",
    packets="rx_pkts tx_pkts rx_roce_good_pkts",
    writes="tx_write_req rx_write_req",
    timeouts="to_retransmits",
    naks="seq_err_naks_rcvd",
)

IRDMA: Rules = _hw(  # hw/irdma/verbs.c
    "ip4InDiscards ip4InTruncatedPkts ip4OutNoRoutes ip6InDiscards ip6InTruncatedPkts"
    " ip6OutNoRoutes tcpRetransSegs tcpInOptErrors tcpInProtoErrors rxVlanErrors cnpHandled"
    " cnpIgnored cnpSent ip4InReasmRqd ip4InMcastPkts ip4OutSegRqd ip4OutMcastPkts ip6InOctets"
    " ip6InPkts ip6OutOctets ip6OutPkts tcpInSegs tcpOutSegs iwInRdmaReads iwInRdmaSends"
    " iwInRdmaWrites iwOutRdmaReads iwOutRdmaSends iwOutRdmaWrites iwRdmaBnd iwRdmaInv RxECNMrkd",
    octets="ip4InOctets ip4OutOctets",
    packets="ip4InPkts ip4OutPkts RxUDP TxUDP",
)

EFA: Rules = _hw(  # hw/efa/efa_verbs.c; the last five of newer kernels
    "rx_drops rdma_read_wrs rdma_read_bytes rdma_read_wr_err rdma_read_resp_bytes rdma_write_wr_err"
    " retrans_bytes impaired_remote_conn_events unresponsive_remote_events",
    octets="tx_bytes rx_bytes send_bytes recv_bytes rdma_write_bytes rdma_write_recv_bytes",
    packets="tx_pkts rx_pkts",
    writes="send_wrs recv_wrs rdma_write_wrs",
    timeouts="retrans_timeout_events",
    naks="retrans_pkts",
)
EFA_DEVICE: Rules = _hw(
    "submitted_cmds completed_cmds cmds_err no_completion_cmds keep_alive_rcvd alloc_pd_err"
    " create_qp_err create_cq_err reg_mr_err alloc_ucontext_err create_ah_err mmap_err"
)

HFI1: Rules = {
    # hw/hfi1/chip.c: names of 32-bit counters end in ",32".
    "hw_counters/SwLinkDown,32": wraps(32, per_down=1),
    **_hw(
        "SwLinkUp,32 SwUnknownFrame,32 XmitConstr,32 RcvConstr,32 TxUnsupVL,32 TxInvalLen,32"
        " TxUnderrun,32 TxDropped,32 TxHdrErr,32",
        bits=32,
    ),
    **_hw(
        "TxWait XmitDscd RcResend RnrNak OtherNaks RcAcks RcDelayComp RcDupRew PktDrop RdmaSeq",
        packets="TxPkt RxPkt",
        timeouts="RcTimeOut",
        naks="RcSeqNak SeqNak",
    ),
    "hw_counters/TxWords": wraps(64, bytes_per_step=_WORD_BYTES),
    "hw_counters/RxWords": wraps(64, bytes_per_step=_WORD_BYTES),
}
HFI1_DEVICE: Rules = _hw("DcRecvDetCnt,32 RxTIDFullEr,32 RxDataFCEr,32 IntrCnt TxFlowStall")

RXE: Rules = {
    # sw/rxe/rxe_hw_counters.c, and a capture.
    "hw_counters/link_downed": wraps(64, per_down=1),
    **_hw(
        "duplicate_request out_of_seq_request rcvd_rnr_err send_rnr_err ack_deferred"
        " retry_exceeded_err retry_rnr_exceeded_err send_err",
        packets="sent_pkts rcvd_pkts",
        writes="rdma_sends rdma_recvs",
        timeouts="completer_retry_err",
        naks="rcvd_seq_err",
    ),
}

MANA: Rules = _hw(  # hw/mana/counters.c
    "requester_rnr_nak responder_rnr_nak responder_oos responder_dup_request requester_implicit_nak"
    " requester_readresp_psn_mismatch nak_inv_req nak_access_error nak_opp_error nak_inv_read"
    " responder_local_len_error requestor_local_prot_error responder_rem_access_error"
    " responder_local_qp_error responder_malformed_wqe general_hw_error"
    " requester_rnr_nak_retries_exceeded requester_retries_exceeded total_fatal_error received_cnps"
    " num_qps_congested rate_inc_events num_qps_recovered current_rate dup_rx_requests"
    " rx_send_requests rx_read_requests",
    octets="tx_bytes rx_bytes",
    packets="tx_packets rx_packets",
    writes="rx_write_requests",
    timeouts="requester_timeout",
    naks="requester_oos_nak",
)
MANA_DEVICE: Rules = _hw(
    "sent_cnps received_ecns received_cnp_count qp_congested_events qp_recovered_events"
    " rate_inc_events"
)

ERDMA: Rules = _hw(  # hw/erdma/erdma_verbs.c
    "tx_disable_drop_cnt tx_bps_limit_drop_cnt tx_pps_limit_drop_cnt rx_disable_drop_cnt"
    " rx_bps_limit_drop_cnt rx_pps_limit_drop_cnt",
    octets="tx_bytes_cnt rx_bytes_cnt",
    packets="tx_packets_cnt rx_packets_cnt",
    writes="tx_reqs_cnt",
)

HNS: Rules = _hw(  # hw/hns/hns_roce_main.c
    "rx_uc_pkt rx_ud_pkt rx_xrc_pkt rx_err_pkt rx_cnp_pkt tx_uc_pkt tx_ud_pkt tx_xrc_pkt tx_err_pkt"
    " tx_cnp_pkt trp_get_mpt_err_pkt trp_get_irrl_err_pkt ecn_doorbell rx_buffer trp_rx_sof cq_cqe"
    " cq_poe cq_notify",
    packets="rx_rc_pkt rx_pkt tx_rc_pkt tx_pkt",
)


def merged(*tables: Rules) -> Rules:
    return {name: rule for table in tables for name, rule in table.items()}
