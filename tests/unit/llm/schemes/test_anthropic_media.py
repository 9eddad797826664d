"""Images and documents in a request to `/v1/messages`."""

from __future__ import annotations

import base64

import pytest

from agentls.core.errors import BadRequest
from agentls.core.messages import (
    AudioBlock,
    ContentBlock,
    DocumentBlock,
    ImageBlock,
    Message,
    TextBlock,
)
from support.anthropic_bodies import (
    from_user,
    messages,
    text,
    user,
)


def asked(*blocks: ContentBlock) -> Message:
    return Message(role="user", content=blocks)


def test_media() -> None:
    markdown = base64.b64encode("\ufeff# Grüße".encode()).decode()
    assert messages(
        asked(
            ImageBlock(mime_type="image/png", data="AAAA"),
            ImageBlock(mime_type="IMAGE/JPG; x=1", data="BBBB", url="https://example.com/b.jpg"),
            ImageBlock(mime_type="image/webp", url="https://example.com/c.webp"),
            DocumentBlock(mime_type="application/pdf", data="DDDD", name="d.pdf"),
            DocumentBlock(mime_type="application/pdf", url="https://example.com/e.pdf"),
            DocumentBlock(mime_type="text/markdown", data=markdown, name="f.md"),
            DocumentBlock(mime_type="image/gif", data="GGGG"),
            TextBlock(text="?"),
        )
    ) == [
        from_user(
            {
                "type": "image",
                "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"},
            },
            {
                "type": "image",
                "source": {"type": "base64", "media_type": "image/jpeg", "data": "BBBB"},
            },
            {"type": "image", "source": {"type": "url", "url": "https://example.com/c.webp"}},
            {
                "type": "document",
                "source": {"type": "base64", "media_type": "application/pdf", "data": "DDDD"},
                "title": "d.pdf",
            },
            {"type": "document", "source": {"type": "url", "url": "https://example.com/e.pdf"}},
            {
                "type": "document",
                "source": {"type": "text", "media_type": "text/plain", "data": "# Grüße"},
                "title": "f.md",
            },
            {
                "type": "image",
                "source": {"type": "base64", "media_type": "image/gif", "data": "GGGG"},
            },
            text("?"),
        )
    ]


@pytest.mark.parametrize(
    "message",
    [
        asked(AudioBlock(mime_type="audio/wav", data="AAAA")),
        asked(ImageBlock(mime_type="image/svg+xml", data="AAAA")),
        asked(ImageBlock(mime_type="image/png")),
        asked(DocumentBlock(mime_type="application/zip", data="AAAA")),
        asked(DocumentBlock(mime_type="text/plain", url="https://example.com/a.txt")),
        asked(DocumentBlock(mime_type="text/plain", data="/w==")),
        asked(DocumentBlock(mime_type="text/plain", data="A")),
        Message(role="assistant", content=(ImageBlock(mime_type="image/png", data="A"),)),
        Message(role="system", content=(ImageBlock(mime_type="image/png", data="A"),)),
    ],
)
def test_what_the_format_cannot_carry_is_refused(message: Message) -> None:
    with pytest.raises(BadRequest, match=r"^fake takes "):
        messages(user("x"), message)
