"""What the README shows in Python runs as it stands."""

import re
from pathlib import Path

README = Path(__file__).resolve().parents[2] / "README.md"


def test_the_examples_of_the_readme_run(origin):
    blocks = re.findall(r"^```python\n(.*?)^```", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert blocks
    for block in blocks:
        here = block.replace("https://example.com/user", origin.http + "/get")
        assert "example.com" not in here
        names = {}
        exec(compile(here, str(README), "exec"), names)  # noqa: S102
        assert names["user"]["args"] == {"id": "7"}
