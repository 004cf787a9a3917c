"""The correlator: which flap hurt which job, how sure that is, and what it cost. Pure."""
