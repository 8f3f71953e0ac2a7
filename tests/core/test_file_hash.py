from hashlib import sha256

import pytest

from core.file_hash import sha256_of


def test_a_file_is_known_by_its_bytes(tmp_path):
    (tmp_path / "a").write_bytes(b"sound" * 100_000)

    assert sha256_of(tmp_path / "a") == sha256(b"sound" * 100_000).hexdigest()
    with pytest.raises(FileNotFoundError):
        sha256_of(tmp_path / "absent")
