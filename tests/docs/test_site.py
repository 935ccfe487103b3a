"""The documentation site builds without warnings, its pages link to each other, and its search finds Fluid's terms."""

from __future__ import annotations

import functools
import importlib
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote

import pytest

from tests.browser.lab import chromium

ROOT = Path(__file__).parents[2]
#: Terms of Fluid users -> a page that the search has to list.
TERMS = {
    "append_backward": "api/backward", "LoDTensor": "guide/03_tensor_and_lod", "DynamicRNN": "api/layers_control_flow",
    "sequence_pool": "operators/sequence_pool", "program_guard": "api/fluid", "CUDAPlace": "guide/18_devices",
    "save_inference_model": "api/io", "DataFeeder": "api/fluid", "batch_norm": "operators/batch_norm",
    "conv2d": "operators/conv2d", "ParamAttr": "api/", "Executor": "api/", "memory_optimize": "api/",
    "piecewise_decay": "api/layers_learning_rate", "WeightNormParamAttr": "api/", "FLAGS_check_nan_inf": "flags",
    "While": "api/layers_control_flow_while", "Evaluator": "guide/14_evaluation", "startup program": "glossary",
    "breakpoint": "debugging",
}  # fmt: skip

AXE = Path(os.environ.get("FLUIDNB_VENVS", ROOT / ".venvs")) / "node" / "node_modules" / "axe-core" / "axe.min.js"
#: A plain page, pages with outputs, and a generated one.
PAGES = ("index", "notebooks/debugging", "notebooks/guide/27_widgets", "api/io")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the built site."""
    folder = tmp_path_factory.mktemp("docs")
    command = [sys.executable, str(ROOT / "docs" / "build.py"), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    return folder / "html"


def test_layers_link_to_the_operators_that_they_append(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "docs"))
    monkeypatch.chdir(tmp_path)
    layers = importlib.import_module("reference").layer_operators()
    assert layers["fc"] == ["mul", "elementwise_add", "relu"]
    assert layers["argmax"] == ["arg_max"]
    assert layers["While"] == ["while"]
    assert {name for name, types in layers.items() if not types} == {
        "ParallelDo", "create_array", "create_global_var", "create_parameter", "create_tensor", "data", "get_places",
        "random_data_generator", "set_defaults",
    }  # fmt: skip
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_links_lead_to_pages(site: Path) -> None:
    broken = []
    for page in (p for p in site.rglob("*.html") if "_static" not in p.parts):
        for link in re.findall(r'(?:href|src)="([^"#?]+)', page.read_text()):
            if not re.match(r"\w+:|//", link) and not (page.parent / unquote(link)).exists():
                broken.append(f"{page.relative_to(site)}: {link}")
    assert broken == []


@pytest.fixture
def url(site: Path) -> Iterator[str]:
    """The site's address on a server of this process."""
    handler = functools.partial(SimpleHTTPRequestHandler, directory=str(site))
    handler.log_message = lambda *_: None  # type: ignore[attr-defined]
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_search_finds_the_terms_of_fluid(url: str) -> None:
    missing = {}
    with chromium() as browser:
        page = browser.new_page()
        for term, wanted in TERMS.items():
            page.goto(f"{url}/search.html?q={term}")
            page.locator("#search-results .search-summary", has_text=re.compile("found|did not match")).wait_for()
            links = [a.get_attribute("href") for a in page.locator("#search-results ul.search li a").all()[:15]]
            if not any(wanted in link for link in links):
                missing[term] = links[:5]
    assert missing == {}


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_serious(url: str, theme: str) -> None:
    if not AXE.is_file():
        pytest.skip("no axe-core: `make node` installs it, where node and npm are")
    found = {}
    with chromium() as browser:
        page = browser.new_page(color_scheme=theme)
        page.route(lambda address: not address.startswith(url), lambda route: route.abort())
        for name in PAGES:
            page.goto(f"{url}/{name}.html")
            assert page.evaluate("() => document.documentElement.dataset.theme") == theme
            page.evaluate(AXE.read_text("utf-8"))
            violations = page.evaluate("async () => (await axe.run({ resultTypes: ['violations'] })).violations")
            wrong = [(v["id"], v["nodes"][0]["target"]) for v in violations if v["impact"] in ("serious", "critical")]
            if wrong:
                found[name] = wrong
    assert found == {}
