"""The page of Faces, against its real services."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from playwright.sync_api import Page, Route, expect

from isthmus.lab.faces.legend import BY_KEY
from isthmus.lab.faces.words import COLORS
from tests.support.faces import HERE, Faces, FacesProcess

ALWAYS = {"ERROR_FRACTION": "100"}
SMALL = {"NUM_ROWS": "3", "NUM_COLS": "3"}
NEVER = "600000"


@pytest.fixture(scope="module")
def faces() -> Iterator[Faces]:
    with Faces(smiley={"FACES_CLUSTER": "east"}, face={"FACES_CLUSTER": "west"}) as made:
        yield made


def cells(page: Page, key: str, count: int) -> None:
    """Wait until so many cells show what the line `key` of the key says."""
    expect(page.locator(f'.cell[data-keys~="{key}"]')).to_have_count(count)


def label(page: Page, at: int) -> str:
    return page.get_by_role("gridcell").nth(at).get_attribute("aria-label") or ""


# -------------------------------------------------------------------------------- what is seen


def test_faces_appear(faces: Faces, page: Page) -> None:
    page.goto(faces.url)
    cells(page, "fine", 16)
    assert label(page, 0) == "Row 1, column 1, edge: \U0001f603 All is well"
    assert label(page, 5) == "Row 2, column 2, center: \U0001f603 All is well"
    face = page.locator(".cell > .face").first
    expect(face).to_have_text("\U0001f603")
    expect(face).to_have_css("background-color", rgb(COLORS["blue"]))
    expect(face).to_have_css("opacity", "1")
    expect(page.locator("#summary")).to_have_text("16 of 16 well")
    expect(page.locator('#entries [data-key="fine"] .count')).to_have_text("16")


def rgb(color: str) -> str:
    red, green, blue = (int(color[at : at + 2], 16) for at in (1, 3, 5))
    return f"rgb({red}, {green}, {blue})"


LATE = {"BACKEND_TIMEOUT_MS": "300"}
TROUBLE: list[tuple[str, dict[str, dict[str, str]]]] = [
    ("smiley", {"smiley": ALWAYS}),
    ("color", {"color": ALWAYS}),
    ("smiley color", {"smiley": ALWAYS, "color": ALWAYS}),
    ("late", {"smiley": {"DELAY_BUCKETS": NEVER}, "face": LATE}),
    ("late", {"color": {"DELAY_BUCKETS": NEVER}, "face": LATE}),
    ("face", {"face": ALWAYS}),
    ("face", {"gui": {"FACE_SERVICE": "127.0.0.1:1"}}),
    ("stuck", {"face": {**ALWAYS, "LATCH_FRACTION": "100"}}),
]


@pytest.mark.parametrize(
    ("keys", "env"), TROUBLE, ids=[f"{keys} by {' '.join(env)}" for keys, env in TROUBLE]
)
def test_failures_look_as_the_key_says(
    keys: str, env: dict[str, dict[str, str]], page: Page
) -> None:
    with Faces(**{**env, "gui": {**SMALL, **env.get("gui", {})}}) as made:
        page.goto(made.url)
        for key in keys.split():
            cells(page, key, 9)
        (shown,) = {tuple(cell["keys"]) for cell in made.gui.json("/state")["cells"]}
        assert shown == tuple(keys.split())  # the gui without a page says the same
        page.get_by_role("gridcell").first.hover()
        here = page.locator("#entries li.here")
        expect(here).to_have_count(len(shown))
        for key in shown:
            expect(page.locator(f'#entries [data-key="{key}"] .count')).to_have_text("9")
        face = page.locator(".cell > .face").first
        if len(shown) == 1 and shown != ("late",):
            expect(face).to_have_css("background-color", rgb(BY_KEY[shown[0]].color))
            same = page.locator(f'#entries [data-key="{shown[0]}"] .face').text_content()
            expect(face).to_have_text(same or "?")
        expect(page.locator(".cell > .alarm").first).to_be_visible()


class Says(ThreadingHTTPServer):
    """A face service that answers everything with one status; None: with a hang-up."""

    def __init__(self, status: int | None) -> None:
        self.status = status
        super().__init__((HERE, 0), Answer)
        self.at = f"{HERE}:{self.server_address[1]}"
        self.thread = threading.Thread(target=self.serve_forever)
        self.thread.start()

    def stop(self) -> None:
        self.shutdown()
        self.server_close()
        self.thread.join()


class Answer(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        assert isinstance(self.server, Says)
        if self.server.status is not None:
            self.send_response(self.server.status)
            self.send_header("Content-Length", "4")
            self.end_headers()
            self.wfile.write(b"why?")

    def log_message(self, *words: object) -> None:
        """Say nothing."""


@pytest.fixture
def says() -> Iterator[Says]:
    made = Says(200)
    yield made
    made.stop()


@pytest.fixture
def alone(says: Says) -> Iterator[str]:
    """The address of a gui whose face is `says`."""
    gui = FacesProcess("gui", FACE_SERVICE=says.at, NUM_ROWS="1", NUM_COLS="2")
    yield f"http://{gui.at}/"
    assert gui.stop() == 0


@pytest.mark.parametrize(
    ("status", "key"),
    [(403, "refused"), (404, "refused"), (503, "face"), (200, "face"), (None, "face")],
)
def test_other_answers(says: Says, alone: str, page: Page, status: int | None, key: str) -> None:
    says.status = status
    page.goto(alone)
    cells(page, key, 2)
    page.get_by_role("gridcell").first.hover()
    details = page.locator("#details")
    expect(details).to_contain_text(BY_KEY[key].title)
    if status not in (None, 200):
        expect(details).to_contain_text(f"HTTP {status}")
        expect(details).to_contain_text("why?")


def test_timeouts_are_counted_and_then_put_to_sleep(says: Says, alone: str, page: Page) -> None:
    says.status = 504
    page.goto(alone)
    cell = page.get_by_role("gridcell").first
    cell.focus()
    for count in range(1, 6):
        expect(page.locator(".cell[data-count]")).not_to_have_count(0)
        expect(cell.locator(".badge")).to_have_text(str(count))
        if count < 5:
            assert "shown" not in (cell.get_attribute("class") or "")
            cell.press("Enter")
    expect(cell.locator(".face")).to_have_text("\U0001f634")
    expect(cell.locator(".badge")).to_be_hidden()
    page.get_by_role("button", name="Counters").click()
    expect(cell.locator(".badge")).to_be_visible()
    assert "timeouts in a row" in label(page, 0)


def test_a_slow_cell_fades_and_says_so(page: Page) -> None:
    with Faces(gui=SMALL) as made:
        page.goto(made.url)
        cells(page, "fine", 9)
        made.face.process.send_signal(19)  # SIGSTOP: it takes connections, and says nothing
        cells(page, "slow", 9)
        expect(page.locator(".cell > .face").first).to_have_css("opacity", "0")
        expect(page.locator("#summary")).to_have_text("0 of 9 well · 9 slow")
        made.face.process.send_signal(18)
        cells(page, "fine", 9)
        expect(page.locator(".cell > .face").first).to_have_css("opacity", "1")


def test_a_gui_that_is_gone(page: Page) -> None:
    with Faces(gui=SMALL) as made:
        page.goto(made.url)
        cells(page, "fine", 9)
        made.gui.stop()
        cells(page, "face", 9)
        page.get_by_role("gridcell").first.hover()
        expect(page.locator("#details")).to_contain_text("no connection")


# --------------------------------------------------------------------------------- who answers


def test_who_answered_is_shown(faces: Faces, page: Page) -> None:
    page.goto(faces.url)
    cells(page, "fine", 16)
    details = page.locator("#details")
    expect(details).to_have_text("Point at a cell, or move to one with the arrow keys.")
    page.get_by_role("gridcell").nth(5).hover()
    for text in ("Row 2, column 2, center", "smiley-pod · cluster east", "face-pod · cluster west",
                 "color-pod", "All is well", COLORS["blue"]):  # fmt: skip
        expect(details).to_contain_text(text)
    page.get_by_role("button", name="Pods").click()
    shares = page.locator("#shares")
    for text in ("face-pod", "cluster west", "smiley-pod", "cluster east", "color-pod", "100 %"):
        expect(shares).to_contain_text(text)


# ------------------------------------------------------------------------------- the keyboard


def test_it_can_be_used_by_keyboard(faces: Faces, page: Page) -> None:
    page.goto(faces.url)
    cells(page, "fine", 16)
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to the faces")).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.press("ArrowDown")
    moves = "ArrowRight=1 ArrowDown=5 End=7 ArrowRight=7 PageDown=15 ArrowDown=15 Home=12 ArrowUp=8"
    moves += " Control+End=15 ArrowLeft=14 PageUp=2 Control+Home=0"
    for move in moves.split():
        key, at = move.split("=")
        page.keyboard.press(key)
        expect(page.get_by_role("gridcell").nth(int(at))).to_be_focused()
        expect(page.locator('.cell[tabindex="0"]')).to_have_count(1)
    expect(page.locator("#details")).to_contain_text("Row 1, column 1, edge")
    page.get_by_role("button", name="Stop").press("Enter")
    page.get_by_role("gridcell").nth(6).focus()
    with page.expect_request(lambda request: "face/center/?row=1&col=2" in request.url):
        page.keyboard.press("Enter")


def test_stop_and_start(faces: Faces, page: Page) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(faces.url)
    cells(page, "fine", 16)
    button = page.locator("#run")
    button.click()
    expect(button).to_have_text("Start")
    before = len(asked)
    page.wait_for_function(
        "start => performance.now() - start > 2600", arg=page.evaluate("performance.now()")
    )
    assert len(asked) <= before + 1  # one may have been on its way
    cells(page, "fine", 16)  # and nothing fades meanwhile
    with page.expect_request(lambda request: "face/edge/?row=3&col=3" in request.url):
        button.click()
    expect(button).to_have_text("Stop")


# ------------------------------------------------------------------------------------ the user


def test_a_user_can_be_named(faces: Faces, page: Page) -> None:
    page.goto(faces.url)
    cells(page, "fine", 16)
    expect(page.locator("#user-now")).to_have_text("asking without a name")
    page.get_by_label("User").fill("  Center ")
    with page.expect_response(lambda response: "face/center/" in response.url) as heard:
        page.keyboard.press("Enter")
    assert heard.value.request.header_value("x-faces-user") == "Center"
    assert heard.value.json()["headers"]["x-faces-user"] == ["Center"]
    expect(page.locator("#user-now")).to_have_text("asking as Center")
    page.get_by_label("User").fill("")
    with page.expect_request(lambda request: "face/center/" in request.url) as asked:
        page.get_by_role("button", name="Apply").click()
    assert asked.value.header_value("x-faces-user") is None


EVIL = "</script><img src=x onerror=document.title='got'>"


def test_the_name_with_which_the_page_came_is_kept_and_is_no_markup(page: Page) -> None:
    with Faces(
        gui={**SMALL, "USER_HEADER_NAME": "X-Who"}, face={"USER_HEADER_NAME": "X-Who"}
    ) as made:
        page.set_extra_http_headers({"X-Who": EVIL})
        page.goto(made.url)
        cells(page, "fine", 9)
        expect(page.get_by_label("User")).to_have_value(EVIL)
        expect(page).to_have_title("Faces")
        assert page.locator("img").count() == 0


def test_the_page_begins_as_the_environment_says(page: Page) -> None:
    env = {
        **SMALL,
        "START_ACTIVE": "false",
        "SHOW_PODS": "true",
        "HIDE_KEY": "true",
        "COLOR": "#123456",
    }
    with Faces(gui=env) as made:
        page.goto(made.url)
        expect(page.get_by_role("button", name="Start")).to_be_visible()
        expect(page.locator("#answers")).to_be_visible()
        expect(page.locator("#key")).to_be_hidden()
        expect(page.locator("body")).to_have_css("background-color", rgb("#123456"))
        assert page.locator(".cell").count() == 9


def test_it_works_behind_a_path(faces: Faces, page: Page) -> None:
    def pass_on(route: Route) -> None:
        connection = http.client.HTTPConnection(HERE, faces.gui.port, timeout=30)
        connection.request("GET", route.request.url.partition("/a/b")[2])
        answer = connection.getresponse()
        kind = answer.headers["Content-Type"]
        route.fulfill(status=answer.status, body=answer.read(), headers={"Content-Type": kind})
        connection.close()

    page.route("http://front.test/a/b/**", pass_on)
    page.goto("http://front.test/a/b/")
    cells(page, "fine", 16)


# ----------------------------------------------------------------------------- for everybody

SIZES = [(1360, 900), (900, 700), (390, 844), (320, 640)]


@pytest.mark.parametrize(("width", "height"), SIZES)
def test_nothing_jumps_and_nothing_is_cut_off(page: Page, width: int, height: int) -> None:
    """While faces come, fail, fade and are pointed at."""
    page.set_viewport_size({"width": width, "height": height})
    half = {"ERROR_FRACTION": "50"}
    with Faces(smiley=half, color=half, face={"ERROR_FRACTION": "20"}, gui=SMALL) as made:
        page.goto(made.url)
        expect(page.locator(".cell.shown")).to_have_count(9)
        for at in range(9):
            page.get_by_role("gridcell").nth(at).focus()
            page.keyboard.press("Enter")
        page.wait_for_function(
            "start => performance.now() - start > 2200", arg=page.evaluate("performance.now()")
        )
    assert page.evaluate("window.shifts.reduce((sum, each) => sum + each, 0)") < 0.01
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_nothing_moves_for_those_who_want_that(faces: Faces, page: Page) -> None:
    moving = "document.getAnimations().length"
    page.goto(faces.url)
    page.wait_for_function(f"() => {moving} > 0")
    page.emulate_media(reduced_motion="reduce")
    page.goto(faces.url)
    cells(page, "fine", 16)
    assert page.evaluate(moving) == 0


CONTRAST = """
() => {
  const parse = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((v) => v / 255)
    .map((v) => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4)
    .reduce((sum, v, at) => sum + v * [.2126, .7152, .0722][at], 0);
  const behind = (node) => {
    for (let at = node; at; at = at.parentElement) {
      const color = parse(getComputedStyle(at).backgroundColor);
      if (color.length === 3 || color[3] > .99) return color;
    }
    return parse(getComputedStyle(document.body).backgroundColor);
  };
  const found = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode.parentElement;
    if (!walker.currentNode.textContent.trim()) continue;
    if (node.closest(".face, .unseen, .skip, script, noscript")) continue;
    if (!node.checkVisibility()) continue;
    const [a, b] = [light(parse(getComputedStyle(node).color)), light(behind(node))];
    const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
    if (ratio < 4.5) found.push(`${ratio.toFixed(2)} ${walker.currentNode.textContent.trim()}`);
  }
  return found;
}
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_stands_out(page: Page, scheme: str) -> None:
    """WCAG 2.2, 1.4.3: 4.5 to 1."""
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    with Faces(smiley=ALWAYS, gui={**SMALL, "SHOW_PODS": "true"}) as made:
        page.goto(made.url)
        cells(page, "smiley", 9)
        page.get_by_role("gridcell").first.hover()
        expect(page.locator("#shares")).to_contain_text("smiley-pod")
        assert page.evaluate(CONTRAST) == []


def test_everything_has_a_name_and_a_role(faces: Faces, page: Page) -> None:
    page.goto(faces.url)
    cells(page, "fine", 16)
    expect(page.get_by_role("grid", name="Faces, 4 rows of 4")).to_be_visible()
    assert page.get_by_role("row").count() == 4
    assert page.get_by_role("gridcell", name="Row").count() == 16
    for name in ("Who answered", "Key"):
        expect(page.get_by_role("region", name=name)).to_be_visible()
    for name in ("Counters", "Pods", "Key"):
        button = page.get_by_role("button", name=name, exact=True)
        before = button.get_attribute("aria-pressed")
        button.click()
        assert button.get_attribute("aria-pressed") != before
    expect(page.get_by_role("status")).to_have_text("16 of 16 well", timeout=30_000)
