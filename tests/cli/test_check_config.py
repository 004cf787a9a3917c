"""`flapd check-config` looks into the files that a configuration names."""

from pathlib import Path

import pytest

from flapd.cli.main import main


def test_a_token_file_that_cannot_be_used_is_a_fault(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "flapd.toml"
    config.write_text(f'[http]\ntoken_file = "{tmp_path}/none"\nclient_ca = "{tmp_path}/none"\n')

    status = main(["check-config", "--config", str(config)])

    assert status == 2
    assert capsys.readouterr().err.splitlines() == [
        f'http.token_file = "{tmp_path}/none": cannot be read: No such file or directory',
        f'http.client_ca = "{tmp_path}/none": needs http.tls_cert beside it',
    ]
