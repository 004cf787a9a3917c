"""One identity belongs to one device, whatever the devices say of themselves."""

from collections.abc import Iterable

from flapd.model.port import Port
from flapd.sources.claims import DISPUTED_ROUNDS, Claims

GUID = "0002:c903:0000:0001"


def port(device: str, pci: str | None = None, member: str | None = None) -> Port:
    key = f"{GUID}/1" + (f"/{member}" if member else "")
    return Port(key, device, 1, "InfiniBand", guid=GUID, pci=pci, member=member)


def keys_of(claims: Claims, *claimed: Port, rounds: int) -> Iterable[str | None]:
    """What each holds after so many looks of all of them, each of which lets go of the rest."""
    held: list[str | None] = []
    for _ in range(rounds):
        held = []
        for one in claimed:
            own = claims.claim(one.device, one)
            claims.release(one.device, but=frozenset({own.key} if own else ()))
            held.append(own.key if own else None)
    return held


def test_an_identity_is_held_until_it_is_let_go() -> None:
    claims = Claims()

    assert claims.claim("mlx5_0", port("mlx5_0")) == port("mlx5_0")
    assert claims.claim("mlx5_1", port("mlx5_1")) is None

    claims.release("mlx5_0")

    assert claims.claim("mlx5_1", port("mlx5_1")) == port("mlx5_1")
    assert claims.keys() == {f"{GUID}/1"}


def test_cards_with_one_guid_are_told_apart_by_their_addresses() -> None:
    twins = (port("mlx5_0", "0000:3b:00.0"), port("mlx5_1", "0000:5e:00.0"))

    assert keys_of(Claims(), *twins, rounds=2 * DISPUTED_ROUNDS) == [
        f"{GUID}@0000:3b:00.0/1",
        f"{GUID}@0000:5e:00.0/1",
    ]


def test_devices_of_one_card_with_one_guid_are_told_apart_by_their_names() -> None:
    planes = (port("mlx5_0", "0000:3b:00.0"), port("mlx5_0_smi", "0000:3b:00.0"))

    assert keys_of(Claims(), *planes, rounds=4 * DISPUTED_ROUNDS) == [
        f"{GUID}@mlx5_0/1",
        f"{GUID}@mlx5_0_smi/1",
    ]


def test_it_does_not_matter_which_of_them_came_first() -> None:
    planes = (port("mlx5_0_smi", "0000:3b:00.0"), port("mlx5_0", "0000:3b:00.0"))

    assert keys_of(Claims(), *planes, rounds=4 * DISPUTED_ROUNDS) == [
        f"{GUID}@mlx5_0_smi/1",
        f"{GUID}@mlx5_0/1",
    ]


def test_members_of_bonds_with_one_guid_stay_members() -> None:
    twins = (port("bond_0", "0000:3b:00.0", "eth0"), port("bond_1", "0000:5e:00.0", "eth0"))

    assert keys_of(Claims(), *twins, rounds=2 * DISPUTED_ROUNDS) == [
        f"{GUID}@0000:3b:00.0/1/eth0",
        f"{GUID}@0000:5e:00.0/1/eth0",
    ]


def test_names_that_were_swapped_are_no_twins() -> None:
    claims = Claims()
    claims.claim("mlx5_0", port("mlx5_0"))

    assert claims.claim("mlx5_1", port("mlx5_1")) is None

    claims.release("mlx5_0")

    assert claims.claim("mlx5_1", port("mlx5_1")) == port("mlx5_1")
    assert claims.claim("mlx5_0", port("mlx5_0")) is None
