"""Words: what ranks and launchers print, in the exact form of their release."""
