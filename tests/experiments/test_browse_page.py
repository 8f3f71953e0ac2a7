import threading

import pytest

from experiments.browse import reader
from experiments.browse_server import Site, server
from tests.experiments.chromium import complaints, needs_chromium, screenshots
from tests.experiments.kept_runs import answers, keep, turns

pytestmark = [pytest.mark.slow, needs_chromium]

KEY = "k" * 32
SCRIPT = "<script>document.title='caught'</script><img src=x onerror=\"document.title='caught'\">"
HOSTILE = {
    f"a/b?{SCRIPT}&\"'": f"{SCRIPT} \"quoted\" 'too' &amp; end",
    "rtl": "שלום\u202e abc",
    "long": "word " * 20_000,
}


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    folder = tmp_path_factory.mktemp("browse")
    few = turns(folder / "few", HOSTILE, context=SCRIPT)
    wrote = answers(few, "AO", 2, text=SCRIPT)
    keep(folder / "outputs", few, "one", wrote, answers(few, "TO"))
    two = keep(folder / "outputs", few, "two", answers(few, "AO"))
    answers(few, "AO.noise_10", 2).to_parquet(two / "variants.parquet")
    many = turns(folder / "many", {f"turn {n}": "I suppose so." for n in range(1802)})
    for model in range(10):
        told = [answers(many, c, model % 3) for c in ("AO", "AT", "TO")]
        keep(folder / "outputs", many, f"model {model}", *told)
    with server(Site(KEY, reader(folder / "outputs", None)), 0) as listening:
        threading.Thread(target=listening.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{listening.server_port}/"
        listening.shutdown()


@pytest.fixture(scope="module")
def chromium(address):
    with screenshots().browser() as driver:
        driver.get(f"{address}?key={KEY}")
        yield driver


@pytest.fixture
def page(chromium, address):
    """Opens the set of this many items, with further words of an address."""

    def open_page(items, words=""):
        sets = chromium.execute_async_script("fetch('sets').then(r=>r.json()).then(arguments[0])")
        (key,) = (found["key"] for found in sets if found["items"] == items)
        chromium.get(f"{address}?set={key}{words}")
        until(chromium, "return !!document.querySelector('#item h2')")
        return chromium

    return open_page


def until(chromium, script):
    from selenium.webdriver.support.ui import WebDriverWait

    return WebDriverWait(chromium, 30).until(lambda c: c.execute_script(script))


def shown(chromium):
    return chromium.execute_script("return document.querySelector('#item h2').textContent")


def press(chromium, key):
    chromium.find_element("tag name", "body").send_keys(key)


def choose(chromium, name, value):
    chromium.execute_script(
        "const s = document.getElementById(arguments[0]); s.value = arguments[1];"
        "s.dispatchEvent(new Event('change'))",
        name,
        value,
    )


def test_hostile_words_are_text_and_nothing_of_them_runs(page):
    chromium = page(3)
    first, *_ = HOSTILE
    text = chromium.execute_script("return document.getElementById('item').textContent")

    assert shown(chromium) == first
    assert HOSTILE[first] in text
    # Context, transcript, and the answer that is the same markup.
    assert text.count(SCRIPT) == 4
    assert chromium.title != "caught"
    assert chromium.execute_script("return document.querySelectorAll('#item img').length") == 0
    assert complaints(chromium) == []


def test_a_link_opens_the_item_with_the_filters_it_was_taken_with(page):
    chromium = page(3, "&item=long&model=one&error=2")

    assert shown(chromium) == "long"
    assert chromium.find_element("id", "model").get_property("value") == "one"
    assert len(chromium.find_element("css selector", "#item .words:last-of-type").text) > 99_000


def test_keys_go_to_the_next_item_and_back_and_the_address_follows(page):
    chromium = page(3)
    press(chromium, "j")
    until(chromium, "return location.search.includes('item=rtl')")
    press(chromium, "k")
    until(chromium, "return location.search.includes('item=a%2Fb')")
    press(chromium, "?")

    assert chromium.find_element("id", "help").get_attribute("open")


def test_a_clip_plays_and_seeks(page):
    chromium = page(3)
    until(chromium, "return document.querySelector('audio').readyState >= 1")
    chromium.execute_script("document.querySelector('audio').currentTime = 0.7")
    until(chromium, "return document.querySelector('audio').currentTime >= 0.7")
    press(chromium, " ")
    until(chromium, "return document.querySelector('audio').currentTime > 0.8")

    assert chromium.execute_script("return document.querySelector('audio').error") is None


def test_1802_items_with_30_predictions_each_are_filtered_at_once(page):
    chromium = page(1802)
    timed = """
      const done = arguments[0], box = document.getElementById('error');
      box.value = '2';
      const since = performance.now();
      box.dispatchEvent(new Event('change'));
      requestAnimationFrame(() => done(performance.now() - since));
    """
    took_ms = chromium.execute_async_script(timed)
    until(chromium, "return document.getElementById('count').textContent.startsWith('1,802 of')")
    choose(chromium, "model", "model 0")
    until(chromium, "return document.getElementById('count').textContent.startsWith('0 of')")
    choose(chromium, "error", "")
    until(chromium, "return document.getElementById('count').textContent.startsWith('1,802 of')")

    # Ten times what a quiet machine takes: a list that is not virtual takes seconds.
    assert took_ms < 500
    assert chromium.execute_script("return document.querySelectorAll('.row').length") < 60


def test_models_that_disagree_are_found(page):
    chromium = page(3, "&apart=models-2")

    # "one" in AO is two off, "two" is right; label 5 plus two wraps to 2.
    assert chromium.find_element("id", "count").text == "3 of 3 items"
    choose(chromium, "condition", "TO")
    until(chromium, "return document.getElementById('count').textContent.startsWith('0 of')")


@pytest.mark.parametrize("asked", ["apart=conditions-1", "error=1", "answer=3&gold=1"])
def test_a_variant_counts_only_where_it_is_chosen(page, asked):
    # "two" is right in AO and two off with noise.
    chromium = page(3, "&model=two&error=none")
    assert chromium.find_element("id", "count").text == "3 of 3 items"
    sets = chromium.current_url.partition("&")[0]
    chromium.get(f"{sets}&model=two&{asked}")
    until(chromium, "return document.getElementById('count').textContent.startsWith('0 of')")
    if asked.startswith("error"):
        choose(chromium, "condition", "AO.noise_10")
        until(chromium, "return document.getElementById('count').textContent.startsWith('3 of')")


def test_words_of_a_transcript_are_searched(page):
    chromium = page(3)
    chromium.find_element("id", "words").send_keys("שלום")
    until(chromium, "return document.getElementById('count').textContent.startsWith('1 of')")

    assert shown(chromium) == "rtl"


def test_everything_that_is_worked_has_a_name_for_a_screen_reader(page):
    chromium = page(3)
    unnamed = chromium.execute_script(
        "return [...document.querySelectorAll('select, input, button, audio, [role=img]')]"
        ".filter((e) => !(e.labels?.length || e.textContent.trim() || e.ariaLabel))"
        ".map((e) => e.outerHTML)"
    )
    assert unnamed == []
