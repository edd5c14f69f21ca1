"""A person at a browser without a mouse: keys only, and at every stop they must see where they are."""

from playwright.sync_api import Download, Locator, Page

WAIT = 30_000
# More stops than any page has: whoever pressed Tab so often has been everywhere.
STOPS = 150
# Within 300 ms after a new question the label page takes a key or a click for one that was meant for the last.
READING_MS = 350

# What is wrong with where the focus is, or nothing.
LOST = """
() => {
  const here = document.activeElement;
  if (here === null || here === document.body || here === document.documentElement) return null;
  const name = here.outerHTML.slice(0, 150);
  const drawn = [here, here.closest("label")].some((element) => {
    if (element === null) return false;
    const style = getComputedStyle(element);
    const clear = /^rgba\\(.*, 0\\)$/.test(style.outlineColor) || style.outlineColor === "transparent";
    return !["none", "hidden"].includes(style.outlineStyle) && parseFloat(style.outlineWidth) >= 2 && !clear;
  });
  if (!drawn) return "no focus ring: " + name;
  const box = here.getClientRects()[0];
  if (!here.checkVisibility({ opacityProperty: true, visibilityProperty: true }) || !box) return "unseen: " + name;
  const [left, top] = [Math.max(box.left, 0), Math.max(box.top, 0)];
  const [right, bottom] = [Math.min(box.right, innerWidth), Math.min(box.bottom, innerHeight)];
  if (right - left < 2 || bottom - top < 2) return "outside the window: " + name;
  const above = document.elementFromPoint((left + right) / 2, (top + bottom) / 2);
  if (above === null || !(here.contains(above) || above.contains(here))) return "covered: " + name;
  return null;
}
"""


def settle(page: Page) -> None:
    page.wait_for_function("() => document.querySelector('.htmx-swapping, .htmx-settling') === null", timeout=WAIT)


def read_first(page: Page) -> None:
    settle(page)
    page.wait_for_timeout(READING_MS)


class Keyboard:
    """Tab, Shift+Tab, Enter, Space, arrows and typing; every stop on the way is looked at."""

    def __init__(self, page: Page) -> None:
        self.page = page

    def reach(self, target: Locator, *, back: bool = False) -> None:
        target.wait_for(timeout=WAIT)
        # A page may still be about to put the focus somewhere.
        self.page.wait_for_function(
            "() => !document.querySelector('[autofocus]') || document.activeElement !== document.body", timeout=WAIT
        )
        for _ in range(STOPS):
            if self._is_at(target):
                return
            self.page.keyboard.press("Shift+Tab" if back else "Tab")
            self._look()
        raise AssertionError(f"no number of Tabs reaches {target}")

    def type(self, target: Locator, text: str) -> None:
        """Go to a field and write into it; what is in it already is selected by arriving."""
        self.reach(target)
        self.page.keyboard.type(text)
        assert target.input_value() == text

    def tick(self, target: Locator) -> None:
        self.reach(target)
        self.page.keyboard.press("Space")
        assert target.is_checked()

    def choose(self, target: Locator, name: str) -> None:
        self.reach(target)
        for _ in range(STOPS):
            if target.evaluate("list => list.selectedOptions[0]?.text") == name:
                return
            self.page.keyboard.press("ArrowDown")
        raise AssertionError(f"no number of arrows reaches {name}")

    def follow(self, target: Locator, *, back: bool = False, key: str = "Enter") -> None:
        self.reach(target, back=back)
        self.submit(key=key)

    def submit(self, *, key: str = "Enter") -> None:
        with self.page.expect_navigation(timeout=WAIT):
            self.page.keyboard.press(key)

    def download(self, target: Locator) -> Download:
        self.reach(target)
        with self.page.expect_download(timeout=WAIT) as file:
            self.page.keyboard.press("Enter")
        return file.value

    def _is_at(self, target: Locator) -> bool:
        if not target.evaluate("element => element === document.activeElement"):
            return False
        self._look()
        return True

    def _look(self) -> None:
        lost = self.page.evaluate(LOST)
        assert lost is None, f"{self.page.url}: {lost}"
