"""What is known of ports: the counter catalogue, the ledger, the view of a port."""
