"""Page in a headless Chromium: views, controls, stopping, and an uploaded table."""

import ast
import csv
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

pytestmark = pytest.mark.browser

FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip
WAIT = 240_000  # milliseconds, enough for a busy machine


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """Error log of the server of the page."""
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
        url = server.stdout.readline().split()[0]
        wait_until_up(url, server)
        yield url
        server.terminate()
        server.wait(timeout=20)


def wait_until_up(url, server):
    deadline = time.monotonic() + 240
    while time.monotonic() < deadline and server.poll() is None:
        try:
            with urllib.request.urlopen(url, timeout=5):
                return
        except OSError:
            time.sleep(0.2)
    raise AssertionError("the page is not served")


@pytest.fixture(scope="module")
def page(address):
    """Page in the browser, with its requests and errors."""
    from playwright.sync_api import sync_playwright

    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    assert path, "Chromium is not installed"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        page = browser.new_page(viewport={"width": 1280, "height": 1000})
        page.set_default_timeout(WAIT)
        page.asked, page.errors = [], []
        page.on("request", lambda request: page.asked.append(request.url))
        page.on("websocket", lambda socket: page.asked.append(socket.url))
        page.on("console", lambda said: page.errors.append(said.text) if said.type == "error" else None)
        page.on("pageerror", lambda error: page.errors.append(f"{error}\n{error.stack}"))
        page.goto(f"{address}&experts=1")
        page.locator("[data-view=comparison] table").wait_for()
        yield page
        browser.close()


def view(page, name):
    return page.locator(f"[data-view={name}]")


def control(page, name):
    return page.locator(f"[data-control={name}]:visible").first


def pick(page, name, option):
    """Toggle an option of a multiple choice."""
    control(page, name).locator("button, [role=combobox]").first.click()
    page.get_by_role("option", name=option, exact=True).click()
    page.keyboard.press("Escape")


def open_menu(page, name):
    if not view(page, name).locator(".menu[open]").count():
        view(page, name).locator(".menu > summary").click()


def upload(page, text):
    control(page, "file").locator("input[type=file]").first.set_input_files(
        {"name": "mine.csv", "mimeType": "text/csv", "buffer": text.encode()}
    )


@pytest.mark.parametrize("width", [1280, 420])
def test_picture_and_sentence_are_on_the_first_screen_and_nothing_for_experts(page, address, width):
    other = page.context.browser.new_page(viewport={"width": width, "height": 900})
    other.set_default_timeout(WAIT)
    other.goto(address)
    for part in ("marimo-matplotlib canvas", ".hero .keys", ".hero .proof", ".hero .remarks"):
        other.locator(part).first.wait_for()
        box = other.locator(part).first.bounding_box()
        assert box["y"] + box["height"] <= 900, part
        assert box["x"] + box["width"] <= width, part
    assert view(other, "spectra").count() == view(other, "brackets").count() == 0
    other.close()


def test_every_view_is_there_with_its_picture_or_table(page):
    from diffrac_cvx.app.page.views import views_for

    for shown in views_for(2):
        view(page, shown.name).locator("table" if shown.is_table else "img").first.wait_for()
    headings = page.locator("h2").all_inner_texts()
    assert headings[-4:] == [
        "Clusters in detail", "For experts: solution and certified bounds", "For experts: regularization paths",
        "For experts: comparison of methods",
    ]  # fmt: skip
    assert "No disagreement" in page.locator(".remarks").last.inner_text()


def test_the_answer_is_in_words_and_its_clusters_can_be_saved(page):
    words = page.locator(".answer")
    assert "Cost of this split" in words.inner_text()
    assert "Certified:" in words.inner_text()
    with page.expect_download() as download:
        page.get_by_text("Download clusters (CSV)").click()
    with Path(download.value.path()).open(newline="") as file:
        head, *rows = csv.reader(file)
    assert head == ["row", "cluster", "score", "known_group"]
    assert len(rows) == 150


@pytest.mark.parametrize(
    ("name", "label"), [("nu", "equal sizes (nu)"), ("lam", "feature selection (lam)"), ("n", "points")]
)
def test_a_screen_reader_is_told_the_name_the_value_and_the_meaning_of_a_slider(page, name, label):
    slider = control(page, name).get_by_role("slider", name=label)
    slider.wait_for()
    shown = control(page, name).locator(".text-muted-foreground").first.inner_text()
    assert slider.get_attribute("aria-valuetext") == shown
    assert "tart at" in slider.get_attribute("aria-description")


def test_every_choice_of_the_panel_has_a_name(page):
    for label in ("relaxations", "solvers", "further computations", "rounding", "tolerance (tol)"):
        page.locator(f'[data-name="{label}"]:visible [aria-label="{label}"]').first.wait_for()


def test_a_narrow_page_is_not_wider_than_its_window(page):
    page.set_viewport_size({"width": 420, "height": 900})
    widths = page.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")
    boxes = page.locator(".view").all()
    assert all(box.bounding_box()["width"] <= 420 for box in boxes)
    tables = [box.bounding_box() for box in page.locator(".view > .wide-table").all()]
    overflow = page.evaluate(
        "[...document.querySelectorAll('.wide-table')].map(box => box.scrollWidth - box.clientWidth)"
    )
    page.set_viewport_size({"width": 1280, "height": 1000})
    assert widths[0] <= widths[1]
    assert tables
    assert all(box["x"] + box["width"] <= 420 for box in tables)
    assert max(overflow) <= 0, "a table is cut off by its card"


def test_moving_a_slider_changes_picture_caption_and_table(page):
    image = view(page, "projection").locator("img")
    before, table = image.get_attribute("src"), view(page, "roundings").locator("table").inner_text()
    slider = control(page, "noise").get_by_role("slider")
    slider.focus()
    for _ in range(6):
        slider.press("ArrowRight")
    page.wait_for_function("old => document.querySelector('[data-view=projection] img')?.src != old", arg=before)
    page.wait_for_function("old => document.querySelector('[data-view=roundings] table')?.innerText != old", arg=table)
    slider = control(page, "nu").get_by_role("slider")
    slider.focus()
    slider.press("ArrowLeft")
    view(page, "projection").locator(".note", has_text="nu = 0.95").wait_for(state="attached")


@pytest.mark.parametrize(("kind", "start"), [("PNG", b"\x89PNG"), ("PDF", b"%PDF"), ("Python", b"import ")])
def test_a_view_is_saved(page, kind, start):
    page.locator(".status[data-state=done]").wait_for()
    open_menu(page, "spectra")
    with page.expect_download() as download:
        view(page, "spectra").get_by_text(kind, exact=True).click()
    content = Path(download.value.path()).read_bytes()
    assert content.startswith(start)
    if kind == "Python":
        ast.parse(content)


def test_the_python_of_a_view_is_shown(page):
    open_menu(page, "spectra")
    view(page, "spectra").get_by_text("SpectrumDisplay").first.wait_for()


def test_the_state_survives_a_reload(page):
    slider = control(page, "lam").get_by_role("slider")
    slider.focus()
    for _ in range(3):
        slider.press("ArrowRight")
    note = view(page, "projection").locator(".note", has_text="nu = 0.95, lam = 0.0003, ridge = 0.3")
    note.wait_for(state="attached")
    page.wait_for_function("location.search.includes('lam=0.0003')")
    caption = note.text_content()
    assert "access_token" not in page.url
    page.reload()
    note.wait_for(state="attached")
    assert note.text_content() == caption
    assert (
        control(page, "lam").get_by_role("slider", name="feature selection (lam)").get_attribute("aria-valuetext")
        == "0.0003"
    )
    page.locator(".status[data-state=done]").wait_for()


def test_a_point_that_is_clicked_has_the_cluster_that_is_said_and_the_search_respects_it(page):
    canvas = page.locator("marimo-matplotlib canvas")
    canvas.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    for right in range(150, 500, 30):
        page.mouse.click(box["x"] + right, box["y"] + 200)
        page.wait_for_timeout(1000)
        if "Row" in page.locator(".chosen").inner_text():
            break
    page.locator(".point th", has_text="x9").wait_for()
    page.locator("button:not([disabled])", has_text="Cluster 0").click()
    page.wait_for_function("location.search.includes('marks=')")
    page.locator(".answer", has_text="that satisfies the constraints").wait_for()
    page.get_by_role("button", name="Search for the optimum").click()
    page.locator(".best", has_text="that satisfies the constraints").wait_for()
    view(page, "search").locator("img").wait_for()
    page.get_by_text("Labelled points as text").click()
    known = control(page, "marks").get_by_role("textbox", name="labelled points")
    known.fill("")
    known.press("Enter")
    page.wait_for_function("!location.search.includes('marks=')")
    page.locator(".best").wait_for(state="detached")
    page.locator(".status[data-state=done]").wait_for()


def test_three_clusters_take_the_place_of_two_and_give_it_back(page):
    slider = control(page, "n_clusters").get_by_role("slider", name="clusters")
    slider.focus()
    slider.press("ArrowRight")
    view(page, "clusters_found").locator("img").wait_for()
    view(page, "cluster_table").locator("td", has_text="x0").first.wait_for()
    assert view(page, "projection").count() == view(page, "roundings").count() == 0
    page.locator(".answer", has_text="Certified: no 3 clusters").wait_for()
    page.wait_for_function("location.search.includes('n_clusters=3')")
    page.locator(".status[data-state=done]").wait_for()
    with page.expect_download() as download:
        page.get_by_text("Download clusters (CSV)").click()
    with Path(download.value.path()).open(newline="") as file:
        head, *rows = csv.reader(file)
    assert head[1:5] == ["cluster", "score_0", "score_1", "score_2"]
    assert {row[1] for row in rows} == {"0", "1", "2"}
    slider.press("End")
    page.locator(".answer", has_text="Certified: no 12 clusters").wait_for()
    page.locator(".answer th", has_text="cluster 11").wait_for()
    box = page.locator(".answer .wide-table").bounding_box()
    assert box["x"] + box["width"] <= 1280, "the contingency table is cut off by the window"
    slider.press("Home")
    view(page, "projection").locator("img").wait_for()
    view(page, "clusters_found").wait_for(state="detached")
    page.locator(".status[data-state=done]").wait_for()


def test_stop_ends_a_long_solve(page):
    pick(page, "forms", "correlation (trivial for all data) (24)")
    pick(page, "solvers", "SCS")
    status = page.locator(".status", has_text="(24) SCS")  # takes minutes
    status.wait_for()
    page.wait_for_timeout(1000)
    started = time.monotonic()
    page.get_by_role("button", name="Stop").click()
    page.locator(".status[data-state=stopped]").wait_for()
    assert time.monotonic() - started < 60
    assert not status.is_visible()
    page.locator(".remarks", has_text="(24) SCS: stopped before a solution was found").wait_for()
    pick(page, "forms", "correlation (trivial for all data) (24)")
    page.locator(".status[data-state=done]").wait_for()


def test_a_table_with_a_bad_value_gets_a_message_that_names_row_and_column(page):
    page.get_by_role("radio", name="own table").click()
    page.locator(".wrong", has_text="choose a file").wait_for()
    upload(page, "a,b\n1,2\n3,oops\n4,5\n")
    message = page.locator(".wrong", has_text="oops")
    message.wait_for()
    assert "column 'b'" in message.inner_text()
    assert "row 1" in message.inner_text()
    # Views of the previous data are removed, at the latest after the cells below have run.
    page.wait_for_function("document.querySelectorAll('[data-view] img').length === 0")


def test_a_table_with_a_column_of_text_as_label_is_clustered(page):
    rows = [f"{(-1) ** i + 0.1 * (i % 7):.1f},{i % 5},{'cat' if i % 2 else 'dog'}" for i in range(40)]
    upload(page, "\n".join(["height,weight,species", *rows]))
    page.locator(".summary", has_text="mine.csv: 40 points, 2 features, no reference classes").wait_for()
    page.locator(".assumed", has_text="they may be reference labels, or categories for one-hot: 'species'").wait_for()
    page.locator(".chip[data-name=species]:visible select").select_option("reference labels")
    page.locator(
        ".summary", has_text="mine.csv: 40 points, 2 features, 2 reference classes: cat (20), dog (20)"
    ).wait_for()
    view(page, "projection").locator(".note", has_text="mine.csv").wait_for(state="attached")


def test_nothing_outside_this_machine_was_asked_for_and_nothing_complained(page):
    inside = ("http://127.0.0.1:", "ws://127.0.0.1:", "data:", "blob:http://127.0.0.1:")
    assert page.asked
    assert [url for url in page.asked if not url.startswith(inside)] == []
    assert not page.errors, "\n".join(page.errors)


def test_tabs_that_close_fill_no_log(page, address, log):
    for pause in (500, 3000):
        other = page.context.browser.new_page()
        other.goto(address)
        other.wait_for_timeout(pause)
        other.close()
    page.wait_for_timeout(2000)
    assert log.read_text() == ""
