"""Markup as it streams in: what it stands for, and that a parser of whole documents finds the same words."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from markdown_it import MarkdownIt
from reading import AWKWARD, said

from gateway.text.markup import Markup


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("He is **very** _kind_, *really*.", "He is very kind, really."),
        ("un**believ**able ***both*** __init__", "unbelievable both init"),
        ("今天*很*好", "今天很好"),
        ("2 * 3 = 6, a*b, 2**3, snake_case, a__b", "2 * 3 = 6, a*b, 2**3, snake_case, a__b"),
        ("Use `make` now ~~or never~~", "Use make now or never"),
        ("## Title ##\nText", "Title. Text"),
        ("Title!\n===\nText", "Title! Text"),
        ("C#, #1, #tag", "C#, #1, #tag"),
        ("- one\n- two\n\nEnd", "one. two. End"),
        ("1. one\n2. two", "1. one. 2. two"),
        ("- [ ] open\n- [x] done", "open. done"),
        ("一\n- 二\n- 三", "一。二。三"),
        ("> said\n> so", "said so"),
        ("a\n\n---\n\nb", "a. b"),
        ("-5 to 5 > 4", "-5 to 5 > 4"),
        ("```python\nprint(1)\n```\nDone", "print(1) Done"),
        ("| a | b |\n|---|:-:|\n| 1 | 2 |", "a, b. 1, 2"),
        ("a | b\n--- | ---\n1 | 2", "a, b. 1, 2"),
        ("a || b, c|d", "a || b, c|d"),
        ("See [the docs](https://a.b/c_d?e \"f\").", "See the docs."),
        ("![a cat](cat.png) sleeps", "a cat sleeps"),
        ("array[0] = x, f[1](y)", "array 0 = x, f 1(y)"),
        ("[Level Up] He cast [Fireball].", "Level Up He cast Fireball."),
        ("(sighs) {so} [laughs] Hi", "(sighs) {so} laughs Hi"),
        ("note[^1]\n\n[^1]: here", "note. here"),
        ("See https://www.a.b/c/?d=e#f.", "See a.b/c."),
        ("(http://a.b/c_d) <https://e.f> <g@h.io>", "(a.b/c_d) e.f g@h.io"),
        ("参见https://a.b/c。好", "参见a.b/c。好"),
        ("https://a.b/" + "very/" * 20 + " x", "a.b x"),
        ("Mail a_b.c@d-e.org, see a.b/c", "Mail a_b.c@d-e.org, see a.b/c"),
        ("<b>Bold</b>, un<i>believ</i>able<br>new<p>par</p>", "Bold, unbelievable new. par"),
        ("<think>Hm</think>So it is.", "Hm. So it is."),
        ("$$E = m$$ is $5, \\(a\\) \\[b\\]", "E = m is $5, (a) b"),
        ("List<String> a<b and c>d x<y>", "List<String> a<b and c>d x<y>"),
        ("a &amp; b &lt; c&nbsp;d &unknown; R&D", "a & b < c d &unknown; R&D"),
        ("a <!-- not this --> b", "a b"),
        ("\\*so\\* \\# \\_", "*so* # _"),
        ("Hello <|im_end|> world<|speaker:1|>s", "Hello world s"),
        ("one👍two 1️⃣ 👩‍👩‍👧 3", "one two 1 3"),
        ("𝐁𝐨𝐥𝐝 ⓦⓞⓡⓓ １２ ﬁn", "Bold word 12 fin"),
        ("in\u200bvis\u00adible \x1b[31mred\x1b[0m", "invisible red"),
        ("a\r\nb\rc\u2028d", "a b c d"),
    ],
)  # fmt: skip
def test_what_markup_stands_for(text: str, expected: str) -> None:
    assert said(text) == expected


@pytest.mark.parametrize(
    ("received", "certain"),
    [
        ("Hello", "Hello"),
        ("so *", "so "),  # bullet-like sign or emphasis
        ("see [the docs](htt", "see \ue000the docs"),
        ("see [the docs] a", "see \ue000the docs\ue000 a"),
        ("a <", "a "),
        ("a < b", "a < b"),
        ("line\n", "line\n"),
        ("line\n#", "line\n"),
    ],
)
def test_plain_text_is_handed_on_as_soon_as_it_is_certain(received: str, certain: str) -> None:
    reader = Markup()
    assert "".join(piece.plain for character in received for piece in reader.push(character)) == certain


class Words(HTMLParser):
    """The text of HTML."""

    def __init__(self) -> None:
        super().__init__()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.text += dict(attrs).get("alt") or ""

    def handle_data(self, data: str) -> None:
        self.text += data


DOCUMENTS = [
    "# Plan\n\nSome **bold** and *soft* words with `code`.\n\n- one\n- **two**\n  - three\n\n1. first\n2. second\n",
    '> A quotation with [a link](https://example.com/x_y "title") in it.\n\n![A picture](p.png)\n\n---\n\nThe end.\n',
    "| Name | Age |\n|---|--:|\n| Ann | 30 |\n| *Bob* | 41 |\n\nTwo people, `snake_case` and ~~none~~ left.\n",
    "Setext\n======\n\nHello &amp; goodbye \\*literal\\*, 2 * 3.\n\n```python\nx = 1\n```\n\nDone: ***all*** of it.\n",
    *AWKWARD["conversation"],
]


@pytest.mark.parametrize("document", DOCUMENTS)
def test_a_parser_of_whole_documents_finds_the_same_words(document: str) -> None:
    document = re.sub(r"(?m)^\s*\d+\. ", "- ", document)  # which says the numbers of a list is a matter of taste
    html = Words()
    html.feed(MarkdownIt("gfm-like", {"linkify": False}).disable("linkify").render(document))
    assert re.findall(r"\w+", said(document)) == re.findall(r"\w+", html.text.replace("https://", ""))
