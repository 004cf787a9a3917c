from flapd.cli.main import entry

entry()
