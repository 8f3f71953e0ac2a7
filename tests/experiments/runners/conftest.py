import pytest


@pytest.fixture(scope="session", autouse=True)
def images_of_tests():
    """Names of their own, so that testing leaves a user's images as they are."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("UNDERTONE_IMAGES", "undertone-tests")
        yield
