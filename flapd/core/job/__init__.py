"""What is known of a training job: its log messages, its timeouts, its dumps, its traffic."""
