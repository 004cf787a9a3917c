import pytest
from hypothesis import given
from hypothesis import strategies as st

from flapd.store.size import RIGHT_SIZE, Size, parse_size


@pytest.mark.parametrize(
    ("written", "number"),
    [
        (0, 0),
        (2147483648, 2 << 30),
        ("2GiB", 2 << 30),
        ("500MB", 500_000_000),
        ("1.5 kB", 1500),
        (" 16MiB ", 16 << 20),
        ("7B", 7),
    ],
)
def test_a_size_is_bytes_or_a_number_with_a_unit(written: object, number: int) -> None:
    assert parse_size(written) == Size(number)


@pytest.mark.parametrize("written", [True, -1, 1.5, "2", "2gib", "1e3MB", "-1MB", "9999TiB", None])
def test_anything_else_is_refused_with_what_would_be_right(written: object) -> None:
    with pytest.raises(ValueError, match="number of bytes") as refused:
        parse_size(written)
    assert str(refused.value) == RIGHT_SIZE


@given(st.integers(0, 1 << 40))
def test_a_size_reads_back_as_it_is_written(number: int) -> None:
    assert parse_size(str(Size(number))) == Size(number)
