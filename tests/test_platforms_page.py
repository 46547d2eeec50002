from tests.refused import PAGE, page


def test_the_page_of_refusals_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run python -m tests.refused"
