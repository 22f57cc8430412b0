"""Page in a headless Chromium: comparison, controls, a narrow window, and an uploaded table."""

import contextlib
import csv
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.browser

WAIT = 240_000  # milliseconds, enough for a busy machine


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    return tmp_path_factory.mktemp("served") / "log.txt"


@pytest.fixture(scope="module")
def address(log):
    """Address of a page served for this module."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "diffrac_cvx.app.page", "--headless", "--port", str(port)]
    streams = {"stdout": subprocess.PIPE, "stderr": log.open("w")}
    with subprocess.Popen(command, cwd=Path(__file__).parents[2], text=True, **streams) as server:
        yield server.stdout.readline().split()[0]
        server.terminate()
        server.wait(timeout=20)


@pytest.fixture(scope="module")
def page(address, browser):
    """Page in the browser, with its requests and errors."""
    from playwright.sync_api import Error

    page = browser.new_page(viewport={"width": 1280, "height": 1000})
    page.set_default_timeout(WAIT)
    page.asked, page.errors = [], []
    page.on("request", lambda request: page.asked.append(request.url))
    page.on("websocket", lambda socket: page.asked.append(socket.url))
    page.on("console", lambda said: page.errors.append(said.text) if said.type == "error" else None)
    page.on("pageerror", lambda error: page.errors.append(f"{error}\n{error.stack}"))
    for _ in range(100):  # the server is starting
        with contextlib.suppress(Error):
            page.goto(address)
            break
        page.wait_for_timeout(500)
    page.get_by_role("heading", name="Python").wait_for()
    yield page
    page.close()


def move(page, name, key, times=1):
    slider = page.get_by_role("slider", name=name)
    slider.focus()
    for _ in range(times):
        slider.press(key)


def wait_for_code(page, text):
    page.locator("pre", has_text=text).wait_for()


PARTS = ", ".join(f"#App {tag}" for tag in ("h1", "h2", "h3", "p", "th", "td", "figure", "img", "pre"))
CUT = """parts => [...document.querySelectorAll(parts)].filter((part) => {
    const box = part.getBoundingClientRect();
    const inside = box.left >= 0 && box.right <= window.innerWidth && part.scrollWidth <= part.clientWidth + 1;
    return box.width > 0 && !inside;
}).map((part) => part.outerHTML.slice(0, 200))"""


def cut_at(page, width):
    page.set_viewport_size({"width": width, "height": 1000})
    page.wait_for_timeout(500)
    cut = page.evaluate(CUT, PARTS)
    assert page.locator(".stacked th").first.is_visible() == (width == 1280), "on a narrow page every row is a list"
    page.set_viewport_size({"width": 1280, "height": 1000})
    page.get_by_role("slider", name="ridge").wait_for()
    return cut


def test_every_method_has_a_row_and_a_card_with_y_and_its_spectrum_and_nothing_is_cut_at_either_width(page):
    assert cut_at(page, 1280) == cut_at(page, 420) == []
    methods = ["low_rank (15)", "fista (15)", "v_space/CLARABEL (15)", "lifted/CLARABEL (11)"]
    methods.append("penalized_nu/CLARABEL (8)")
    assert page.locator(".stacked").first.locator("td:first-child").all_inner_texts() == methods
    assert page.locator(".card h3").all_inner_texts() == methods
    parts = (".card img[alt='heat map of Y']", ".card img[alt='heat map of V']", ".card .bars")
    assert [page.locator(part).count() for part in parts] == [5, 4, 5]
    assert page.locator("p.fine").inner_text() == "No disagreement beyond the certified bounds of 5 methods."


@pytest.mark.parametrize(("name", "value"), [("nu (equal sizes)", "1"), ("lam (sparsity)", "0"), ("ridge", "0.3")])
def test_a_screen_reader_is_told_the_name_and_the_value_of_a_slider(page, name, value):
    slider = page.get_by_role("slider", name=name)
    page.wait_for_timeout(600)
    assert slider.get_attribute("aria-valuetext") == value
    assert "<" not in page.get_by_role("textbox", name="points n").get_attribute("aria-label")


def test_two_changes_in_a_row_both_count(page):
    move(page, "lam (sparsity)", "ArrowRight", 3)
    move(page, "ridge", "ArrowLeft")
    move(page, "nu (equal sizes)", "ArrowLeft")
    wait_for_code(page, "nu=0.95, lam=0.001, ridge=0.2")
    page.locator("p.note", has_text="penalized_nu/CLARABEL was skipped: it takes no l1 penalty").wait_for()


def test_methods_are_compared_when_they_are_all_chosen(page):
    page.get_by_role("checkbox", name="(21) normalised direction").click()
    page.get_by_role("checkbox", name="SCS").click()
    page.get_by_role("checkbox", name="fista", exact=True).click()
    page.get_by_role("button", name="Compare").click()
    page.locator(".card h3", has_text="v_space_normalized/SCS").wait_for()
    assert page.locator(".card h3", has_text="fista").count() == 0
    wait_for_code(page, "'v_space_normalized/SCS'")


def test_three_clusters_are_found_by_every_method_and_saved(page):
    move(page, "clusters K", "ArrowRight")
    wait_for_code(page, "kmeans_rows(F[name], 3, n_init=3, rng=0)")
    page.locator(".stacked th", has_text="adjusted Rand").first.wait_for()
    page.locator(".stacked").last.locator("th", has_text="cluster 2").wait_for()
    with page.expect_download() as download:
        page.get_by_text("Download labels (CSV)").click()
    with Path(download.value.path()).open(newline="") as file:
        head, *rows = csv.reader(file)
    assert head == ["row", "cluster", "decision_0", "decision_1", "decision_2", "margin", "class"]
    assert len(rows) == 30
    move(page, "clusters K", "ArrowLeft")
    page.locator(".stacked").last.locator("th", has_text="cluster 2").wait_for(state="detached")


def test_a_change_of_a_large_table_is_shown_soon_and_a_limit_is_reported(page):
    for name, value in (("points n", "10000"), ("features d", "10")):
        page.get_by_role("textbox", name=name, exact=True).fill(value)
        page.keyboard.press("Enter")
    page.locator("p.note", has_text="10000 points, 10 features").wait_for()
    wait_for_code(page, "time_limit=0.4")
    page.locator("p.note", has_text="omitted at this size: v_space/SCS").wait_for()
    page.locator("figcaption", has_text="240 of 10000 points").first.wait_for()
    page.wait_for_timeout(3000)  # until the clusters of the table are shown too
    maps = page.locator(".cards").inner_html()
    started = time.monotonic()
    move(page, "lam (sparsity)", "ArrowRight")
    page.wait_for_function("old => document.querySelector('.cards')?.innerHTML != old", arg=maps, polling=20)
    assert time.monotonic() - started < 10, "a second on a machine that does nothing else"
    stopped = page.locator("p.alarm", has_text="The time limit, 0.4 s for all methods, stopped low_rank").count()
    gap = page.locator(".stacked td[data-title=gap]").first.inner_text()
    assert stopped == (float(gap) > 1e-4)


def test_a_known_set_is_compared_and_a_table_with_text_gets_a_message_instead(page):
    page.get_by_role("radio", name="known set").click()
    page.locator("p.note", has_text="breast_cancer: 683 points").wait_for()
    wait_for_code(page, "dc.datasets.load('breast_cancer')")
    page.get_by_role("radio", name="file").click()
    page.get_by_text("Choose a table: one point per row").wait_for()
    rows = [f"{(-1) ** i + 0.1 * (i % 7):.1f},{i % 5},{'cat' if i % 2 else 'dog'}" for i in range(40)]
    content = "\n".join(["height,weight,species", *rows]).encode()
    table = {"name": "mine.csv", "mimeType": "text/csv", "buffer": content}
    page.locator("input[type=file]").first.set_input_files(table)
    page.locator("p.alarm", has_text="text in column 'species' ('dog'").wait_for()
    page.locator(".cards").wait_for(state="detached")


def test_a_table_with_reference_labels_is_compared_at_either_width(page):
    page.get_by_role("complementary").get_by_label("reference labels").select_option("species")
    page.locator("p.note", has_text="mine.csv: 40 points, 2 features, 2 reference classes: cat (20)").wait_for()
    wait_for_code(page, "dc.datasets.read_table('mine.csv', 'species')")
    assert cut_at(page, 1280) == cut_at(page, 420) == []


def test_nothing_outside_this_machine_was_asked_for_and_nothing_complained(page):
    inside = ("http://127.0.0.1:", "ws://127.0.0.1:", "data:", "blob:http://127.0.0.1:")
    assert page.asked
    assert [url for url in page.asked if not url.startswith(inside)] == []
    assert not page.errors, "\n".join(page.errors)


def test_a_tab_that_closes_fills_no_log(page, address, log):
    other = page.context.browser.new_page()
    other.goto(address)
    other.wait_for_timeout(500)
    other.close()
    page.wait_for_timeout(2000)
    assert log.read_text() == ""
