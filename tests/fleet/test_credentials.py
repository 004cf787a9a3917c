"""Files of keys and certificates: what cannot be used is named before anything depends on it."""

from pathlib import Path

import nkeys
import pytest
import trustme

from flapd.fleet.credentials import Credentials, check_files, read_credentials, tls_context
from flapd.fleet.settings import FleetSettings
from flapd.model.errors import FlapdError

SEED = nkeys.encode_seed(bytes(range(32)), nkeys.PREFIX_BYTE_USER).decode()


def test_the_seed_of_a_user_is_found_in_a_file_with_it(tmp_path: Path) -> None:
    file = tmp_path / "node.seed"
    file.write_text(f"# of node17\n{SEED}\n")

    assert read_credentials(str(file)) == Credentials(seed=SEED)


def test_credentials_with_a_jwt_are_left_to_the_library(tmp_path: Path) -> None:
    file = tmp_path / "node.creds"
    file.write_text(f"-----BEGIN NATS USER JWT-----\neyJ\n-----BEGIN USER NKEY SEED-----\n{SEED}\n")

    assert read_credentials(str(file)) == Credentials(jwt_file=str(file))


def test_without_a_file_nothing_is_shown() -> None:
    assert read_credentials("") == Credentials()


@pytest.mark.parametrize("text", ["", "user:password", f"{SEED[:-1]}", "SAAIBADKEY"])
def test_a_file_that_holds_neither_is_refused_by_its_name(tmp_path: Path, text: str) -> None:
    file = tmp_path / "node.seed"
    file.write_text(text)

    with pytest.raises(FlapdError, match=r"fleet\.credentials: .*node\.seed holds neither") as told:
        read_credentials(str(file))
    assert SEED[:-1] not in str(told.value)


def test_a_missing_file_is_refused_by_its_name(tmp_path: Path) -> None:
    with pytest.raises(FlapdError, match="none cannot be read: No such file"):
        check_files(FleetSettings(("nats://a",), credentials=str(tmp_path / "none")))


def test_with_a_ca_of_its_own_nobody_elses_is_trusted(tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    trustme.CA().cert_pem.write_to_path(file)

    assert len(tls_context(FleetSettings(tls_ca=str(file))).get_ca_certs()) == 1


@pytest.mark.parametrize("text", [None, "", "no certificate"])
def test_a_ca_that_is_none_is_refused_by_its_name(tmp_path: Path, text: str | None) -> None:
    file = tmp_path / "ca.pem"
    if text is not None:
        file.write_text(text)

    with pytest.raises(FlapdError, match=r"fleet\.tls_ca: .*ca\.pem cannot be used"):
        tls_context(FleetSettings(tls_ca=str(file)))
