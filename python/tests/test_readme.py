"""What the README shows in Python runs as it stands."""

from examples import examples


def test_the_examples_of_the_readme_run(origin):
    shown = examples("README.md")
    assert shown
    for example in shown:
        names = example.run({
            "https://example.com/user": origin.url("/get"),
            "wss://example.com/chat": origin.url("/ws/echo"),
            "https://example.com/events": origin.url("/sse?total=2&ms=0"),
        })
        assert names["user"]["args"] == {"id": "7"}
